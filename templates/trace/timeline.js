// The timeline: a lane for each session and connection, with its requests as bars and other messages as ticks, and
// lanes below it for its tasks.
const lanes = find("lanes");
const names = find("names");
const canvas = find("canvas");
const pen = canvas.getContext("2d");
const LANE = 20;
const TOP = 18; // the axis
const MOST_TASK_LANES = 8;
const axis = { byTime: timed && !goesBack && times[total - 1] > 0, from: 0, to: 1 };
const placeOf = (at) => (axis.byTime ? times[at] : at);
const endOfAxis = () => Math.max(axis.byTime ? times[total - 1] : total - 1, 1e-9);

/** The lanes from top to bottom, each with its marks in order. */
const makeLanes = () => {
  const found = new Map();
  for (let at = 0; at < total; at++) {
    const session = rows.session[at];
    const key = session < 0 ? -1 - rows.connection[at] : session;
    if (!found.has(key)) found.set(key, { key, marks: [], tasks: new Map() });
    const lane = found.get(key);
    lane.marks.push(at);
    const task = rows.task[at];
    if (task < 0) continue;
    if (!lane.tasks.has(task)) lane.tasks.set(task, { task, first: at, last: at, worst: -1 });
    lane.tasks.get(task).last = at;
    if (worst[at] >= 0) lane.tasks.get(task).worst = worst[at];
  }
  return [...found.values()].flatMap((lane) => [lane, ...taskLanes(lane)]);
};
const taskLanes = ({ key, tasks }) => {
  const packed = [];
  for (const each of tasks.values()) {
    const free = packed.find((lane) => lane.end < each.first) ?? (packed.length < MOST_TASK_LANES ? null : packed.at(-1));
    const lane = free ?? { key, bars: [], end: -1 };
    if (!free) packed.push(lane);
    lane.bars.push(each);
    lane.end = each.last;
  }
  return packed;
};
const allLanes = makeLanes();

const laneOf = new Map(allLanes.flatMap((lane, at) => (lane.bars ? [] : [[lane.key, at]])));

const laneName = ({ key, bars }) => {
  if (bars) return bars.length === 1 ? head.task : `${head.task}s`;
  if (key >= 0) return visible(head.sessions[key]);
  const name = head.connections[-1 - key];
  return name ? `connection ${visible(name)}` : "connection";
};

const NAMES = ["accent", "plum", "green", "red", "amber", "line", "soft", "ink", "tint"];
let colours = {};
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  colours.font = `11px ${getComputedStyle(document.body).fontFamily}`;
};

const size = { width: 0, height: 0 };
const xOf = (place) => ((place - axis.from) / (axis.to - axis.from)) * size.width;
const DAY = 86_400;
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY];
/** The distance of ticks: a round number, of seconds, minutes or hours where there is room for so few. */
const stepOf = (least) => {
  const found = axis.byTime && least >= 1 ? SECONDS.find((each) => each >= least) : null;
  if (found) return found;
  const unit = 10 ** Math.floor(Math.log10(least));
  return Math.max(unit * ([1, 2, 5].find((each) => each * unit >= least) ?? 10), axis.byTime ? 0 : 1);
};
const tickName = (place) => {
  if (!axis.byTime) return amount(Math.round(place) + 1);
  if (place < 60) return place < 1e-9 ? "0" : `${Number(place.toPrecision(6))} s`;
  const [hours, minutes, seconds] = [Math.floor(place / 3600), Math.floor(place / 60) % 60, Math.round((place % 60) * 1000) / 1000];
  return [hours && `${hours} h`, minutes && `${minutes} min`, seconds && `${seconds} s`].filter(Boolean).join(" ");
};
const drawAxis = () => {
  const room = axis.to - axis.from;
  const step = stepOf((room * 90) / size.width);
  pen.fillStyle = colours.soft;
  pen.strokeStyle = colours.line;
  pen.font = colours.font;
  pen.beginPath();
  for (let place = Math.ceil(axis.from / step) * step; place <= axis.to; place += step) {
    const x = Math.round(xOf(place)) + 0.5;
    pen.moveTo(x, TOP - 4);
    pen.lineTo(x, size.height);
    if (x < size.width - 50) pen.fillText(tickName(place), x + 3, 11);
  }
  pen.stroke();
};

const colourOf = (at) => {
  if (worst[at] === 0) return colours.red;
  if (worst[at] === 1) return colours.amber;
  return rows.side[at] === head.sides.indexOf("agent") ? colours.plum : colours.accent;
};
const bar = (from, to, y, { colour, tall, alpha }) => {
  const [left, right] = [Math.max(-2, xOf(from)), Math.min(size.width + 2, xOf(to))];
  if (right < 0 || left > size.width) return;
  pen.globalAlpha = alpha;
  pen.fillStyle = colour;
  pen.fillRect(left, y, Math.max(2, right - left), tall);
};
const drawMarks = (marks, y) => {
  let last = -9;
  for (const at of marks) {
    const isAsked = answers[at] >= 0 && rows.kind[at] === KIND.request;
    const x = xOf(placeOf(at));
    if (isAsked && xOf(placeOf(answers[at])) - x > 2) {
      bar(placeOf(at), placeOf(answers[at]), y + 3, { colour: colourOf(at), tall: 5, alpha: shown.flags[at] ? 0.9 : 0.2 });
    } else if (x - last >= 1 || worst[at] === 0 || worst[at] === 1) {
      last = x;
      if (x < 0 || x > size.width) continue;
      const isBad = worst[at] === 0 || worst[at] === 1;
      pen.globalAlpha = shown.flags[at] ? 0.75 : 0.15;
      pen.fillStyle = colourOf(at);
      pen.fillRect(x, isBad ? y + 2 : y + 10, isBad ? 2 : 1, isBad ? LANE - 4 : 7);
    }
  }
};
const drawTasks = (bars, y) => {
  for (const { first, last, worst: rank, task } of bars) {
    const colour = rank === 0 ? colours.red : rank === 1 ? colours.amber : colours.green;
    const alpha = filters.task === task || (filters.task < 0 && shown.flags[first]) ? 0.85 : 0.2;
    bar(placeOf(first), placeOf(last), y + 5, { colour, tall: LANE - 10, alpha });
  }
};
const drawCursor = () => {
  pen.globalAlpha = 1;
  const [from, to] = [Math.floor(list.scrollTop / height), Math.ceil((list.scrollTop + viewport) / height) - 1];
  if (items.first.length) {
    const [left, right] = [rowOf(Math.min(from, items.first.length - 1)), rowOf(Math.min(to, items.first.length - 1))];
    pen.fillStyle = colours.soft;
    pen.fillRect(xOf(placeOf(left)), TOP - 4, Math.max(3, xOf(placeOf(right)) - xOf(placeOf(left))), 3);
  }
  if (selected < 0) return;
  pen.fillStyle = colours.ink;
  pen.fillRect(Math.round(xOf(placeOf(selected))), TOP - 4, 1.5, size.height);
};
const draw = () => {
  if (lanes.hidden || !size.width) return;
  const scale = devicePixelRatio || 1;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, size.width, size.height);
  pen.globalAlpha = 1;
  drawAxis();
  pen.save();
  pen.beginPath();
  pen.rect(0, TOP, size.width, size.height);
  pen.clip();
  const first = Math.floor(lanes.scrollTop / LANE);
  const last = Math.min(allLanes.length, Math.ceil((lanes.scrollTop + size.height) / LANE));
  for (let lane = first; lane < last; lane++) {
    const y = TOP + lane * LANE - lanes.scrollTop;
    if (allLanes[lane].bars) drawTasks(allLanes[lane].bars, y);
    else drawMarks(allLanes[lane].marks, y);
  }
  pen.restore();
  drawCursor();
};

let willDraw = false;
const drawSoon = () => {
  if (willDraw) return;
  willDraw = true;
  requestAnimationFrame(() => {
    willDraw = false;
    draw();
  });
};

// A session is chosen by the name of its lane. Only the names in view are elements.
const nameLanes = () => {
  const first = Math.floor(lanes.scrollTop / LANE);
  const last = Math.min(allLanes.length, Math.ceil((lanes.scrollTop + size.height) / LANE));
  names.replaceChildren();
  for (let lane = first; lane < last; lane++) {
    const { key, bars } = allLanes[lane];
    const made = element(bars || key < 0 ? "span" : "button", bars ? "task" : "", laneName(allLanes[lane]));
    made.style.top = `${TOP + lane * LANE}px`;
    if (made.matches("button")) {
      made.type = "button";
      made.title = laneName(allLanes[lane]);
      made.setAttribute("aria-pressed", String(filters.session === String(key)));
      made.addEventListener("click", () => setFilter("session", filters.session === String(key) ? "" : String(key)));
    }
    names.append(made);
  }
};
const resizeTimeline = () => {
  if (lanes.hidden) return;
  names.style.height = `${TOP + allLanes.length * LANE + 4}px`;
  size.width = lanes.clientWidth - names.offsetWidth - 2 * names.offsetLeft;
  size.height = lanes.clientHeight;
  const scale = devicePixelRatio || 1;
  canvas.width = size.width * scale;
  canvas.height = size.height * scale;
  canvas.style.width = `${size.width}px`;
  canvas.style.height = `${size.height}px`;
  nameLanes();
  drawSoon();
};

const zoom = (factor, at = (axis.from + axis.to) / 2) => {
  const [end, room] = [endOfAxis(), axis.to - axis.from];
  const wanted = Math.min(end, Math.max(room * factor, end / 1e6));
  axis.from = Math.max(0, Math.min(at - ((at - axis.from) * wanted) / room, end - wanted));
  axis.to = axis.from + wanted;
  drawSoon();
};
const fitAxis = () => {
  [axis.from, axis.to] = [0, endOfAxis()];
  drawSoon();
};

/** Scroll to the lane of a message. */
const showLane = (at) => {
  if (lanes.hidden) return;
  const key = rows.session[at] < 0 ? -1 - rows.connection[at] : rows.session[at];
  const top = laneOf.get(key) * LANE;
  if (top >= lanes.scrollTop && top + 2 * LANE + TOP <= lanes.scrollTop + size.height) return;
  lanes.scrollTop = top - LANE;
};

/** The message or task at a place of the canvas. */
const under = (event) => {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const lane = allLanes[Math.floor((y - TOP + lanes.scrollTop) / LANE)];
  if (!lane || y < TOP) return null;
  const place = axis.from + (x / size.width) * (axis.to - axis.from);
  const near = ((axis.to - axis.from) * 4) / size.width;
  if (lane.bars) {
    const task = lane.bars.find(({ first, last }) => placeOf(first) - near <= place && place <= placeOf(last) + near);
    return task ? { at: task.first, task: task.task, last: task.last } : null;
  }
  let [low, high] = [0, lane.marks.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (placeOf(lane.marks[middle]) <= place + near) low = middle;
    else high = middle - 1;
  }
  return { at: lane.marks[low] };
};
const describe = (found) => {
  if (!found) return "";
  if (found.task === undefined) {
    const length = lengthOf(found.at);
    return `#${found.at + 1} ${visible(titleOf(found.at))}${length === null ? "" : `, ${span(length)}`}`;
  }
  const length = timed ? `, ${span(times[found.last] - times[found.at])}` : "";
  return `${visible(head.tasks[found.task])}${length}: ${preview(found.at)}`;
};
