// The list: only the rows in view are elements. Updates that follow each other may be one row.
const list = find("list");
const space = find("space");
const EXTRA = 12;
let items = { first: new Int32Array(0), count: new Int32Array(0) }; // places in shown.rows
let current = -1; // the selected item
let selected = -1; // the selected message

const canJoin = (one, two) =>
  rows.tag[one] >= 0 &&
  ["method", "tag", "session", "connection", "side", "task", "kind"].every((key) => rows[key][one] === rows[key][two]) &&
  worst[one] < 0 &&
  worst[two] < 0;

const makeItems = () => {
  const joins = find("join").checked;
  const [first, count] = [[], []];
  for (let at = 0; at < shown.rows.length; at++) {
    if (joins && at && canJoin(shown.rows[at - 1], shown.rows[at])) count[count.length - 1]++;
    else first.push(at), count.push(1);
  }
  items = { first: Int32Array.from(first), count: Int32Array.from(count) };
};
const rowOf = (item) => shown.rows[items.first[item]];
const membersOf = (item) => [...shown.rows.subarray(items.first[item], items.first[item] + items.count[item])];

/** The item that has a message, or else the last one before it. */
const itemOf = (at) => {
  let [low, high] = [0, items.first.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rowOf(middle) <= at) low = middle + 1;
    else high = middle;
  }
  return low - 1;
};

const cell = (name) => element("span", name);
const CELLS = ["number", "time", "flow", "what", "text", "session", "seconds", "marks"];
const makeRow = () => {
  const row = element("div", "row", ...CELLS.map(cell));
  row.setAttribute("role", "option");
  row.children[2].append(element("i", ""));
  return row;
};

const markOf = (at) => {
  const severity = SEVERITIES[worst[at]];
  const count = findings.get(at).length;
  const made = element("span", `badge ${severity}`, count > 1 ? `${severity} +${count - 1}` : severity);
  return made;
};

const fillRow = (row, item) => {
  const at = rowOf(item);
  const count = items.count[item];
  const [number, time, flow, what, text, session, seconds, marks] = row.children;
  const kind = head.kinds[rows.kind[at]].replace(" ", "-");
  row.className = `row ${kind} ${rows.side[at] < 0 ? "unknown" : head.sides[rows.side[at]]}`;
  row.id = `row-${at}`;
  row.setAttribute("aria-posinset", String(item + 1));
  row.setAttribute("aria-setsize", String(items.first.length));
  row.setAttribute("aria-selected", String(item === current));
  number.textContent = String(at + 1);
  time.textContent = rows.time[at] === null ? "" : clock(rows.time[at]);
  flow.title = rows.side[at] < 0 ? "" : `from the ${head.sides[rows.side[at]]}`;
  const isAnswer = rows.asked[at] >= 0;
  const name = rows.tag[at] < 0 ? titleOf(at) : head.tags[rows.tag[at]];
  const title = element("b", "", visible(name));
  what.title = titleOf(at);
  what.replaceChildren(...(isAnswer ? [element("span", "quiet", kind), title] : [title]));
  if (count > 1) what.append(element("span", "times", `×${amount(count)}`));
  text.textContent = count > 1 ? oneLine(joined(membersOf(item).slice(0, 60))) : preview(at);
  session.textContent = rows.session[at] < 0 ? "" : visible(head.sessions[rows.session[at]]).slice(0, 40);
  const length = isAnswer || answers[at] >= 0 ? lengthOf(at) : null;
  seconds.textContent = length === null ? "" : span(length);
  marks.replaceChildren(...(worst[at] < 0 ? [] : [markOf(at)]));
};

let height = 32;
const live = new Map(); // the elements of items in view
const spare = [];
let viewport = 0; // measured when the size changes: reading it while scrolling would cost a layout
const visibleItems = () => {
  const top = list.scrollTop;
  const from = Math.max(0, Math.floor(top / height) - EXTRA);
  return [from, Math.min(items.first.length, Math.ceil((top + viewport) / height) + EXTRA)];
};
const renderList = () => {
  const [from, to] = visibleItems();
  for (const [item, row] of live) {
    if (item < from || item >= to) {
      live.delete(item);
      spare.push(row);
    }
  }
  for (let item = from; item < to; item++) {
    if (live.has(item)) continue;
    const row = spare.pop() ?? space.appendChild(makeRow());
    row.hidden = false;
    fillRow(row, item);
    row.style.transform = `translateY(${item * height}px)`;
    row.item = item;
    live.set(item, row);
  }
  for (const row of spare) row.hidden = true;
};
const resetList = () => {
  for (const row of live.values()) spare.push(row);
  live.clear();
  height = parseFloat(getComputedStyle(list).getPropertyValue("--row")) || 32;
  viewport = list.clientHeight;
  space.style.height = `${items.first.length * height}px`;
  find("nothing").hidden = items.first.length > 0;
  list.hidden = items.first.length === 0;
  renderList();
};

const markCurrent = (item) => {
  live.get(current)?.setAttribute("aria-selected", "false");
  current = item;
  const row = live.get(item);
  row?.setAttribute("aria-selected", "true");
  if (row) list.setAttribute("aria-activedescendant", row.id);
  else list.removeAttribute("aria-activedescendant");
};
const scrollToItem = (item, isCentred) => {
  const top = item * height;
  const room = list.clientHeight;
  if (isCentred && (top < list.scrollTop || top + height > list.scrollTop + room)) list.scrollTop = top - room / 2;
  else if (top < list.scrollTop) list.scrollTop = top;
  else if (top + height > list.scrollTop + room) list.scrollTop = top + height - room;
  renderList();
};

let waiting = false;
const onScroll = (follow) => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    renderList();
    follow();
  });
};
