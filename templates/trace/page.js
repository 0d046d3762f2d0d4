// The page: filters, keys, colours, and paper.
const repaint = () => {
  readColours();
  drawSoon();
};
addEventListener("theme", repaint);
dark.addEventListener("change", repaint);

// --- Filters

const MOST_CHOICES = 1000;
const choices = (id, all, options) => {
  const made = [["", all], ...options.slice(0, MOST_CHOICES)].map(([value, text]) => new Option(visible(text).slice(0, 60), value));
  find(id).replaceChildren(...made);
};
const makeChoices = () => {
  const counts = new Map();
  for (let at = 0; at < total; at++) {
    for (const key of [`${rows.method[at]}`, `${rows.method[at]} ${rows.tag[at]}`]) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const methods = head.methods.flatMap((name, method) => [
    [String(method), `${name} (${amount(counts.get(`${method}`))})`],
    ...head.tags.flatMap((tag, at) => {
      const key = `${method} ${at}`;
      return counts.has(key) ? [[key, `${name} · ${tag} (${amount(counts.get(key))})`]] : [];
    }),
  ]);
  methods.sort(([, one], [, two]) => (one < two ? -1 : 1));
  choices("method", "All methods", methods);
  choices("session", "All sessions", head.sessions.map((name, at) => [String(at), name]));
  choices("side", "Both sides", head.sides.map((name, at) => [String(at), `From the ${name}`]));
  choices("finding", "All messages", [["any", "With a finding"], ["warning", "Warnings and errors"], ["error", "Errors"]]);
};

const refresh = () => {
  makeItems();
  const isAll = shown.rows.length === total;
  find("count").textContent = isAll ? "" : `${amount(shown.rows.length)} of ${amount(total)}`;
  find("clear").hidden = !isFiltered();
  find("chip").hidden = filters.task < 0;
  if (filters.task >= 0) find("chip").textContent = `${head.task} ${visible(head.tasks[filters.task]).slice(0, 40)} ✕`;
  current = selected >= 0 && shown.flags[selected] ? itemOf(selected) : -1;
  resetList();
  if (current >= 0) scrollToItem(current, true);
  markCurrent(current);
  nameLanes();
  drawSoon();
};
const setFilter = (key, value) => {
  filters[key] = value;
  if (find(key)?.matches("select")) find(key).value = value;
  applyFilters(refresh);
};
const clearFilters = (then) => {
  Object.assign(filters, { text: "", method: "", session: "", side: "", finding: "", task: -1 });
  find("filters").reset();
  find("join").checked = joins;
  applyFilters(() => {
    refresh();
    then?.();
  });
};
let joins = true;
for (const id of ["method", "session", "side", "finding"]) {
  find(id).addEventListener("change", (event) => setFilter(id, event.target.value));
}
find("query").addEventListener("input", (event) => setFilter("text", event.target.value.trim()));
find("filters").addEventListener("submit", (event) => event.preventDefault());
find("clear").addEventListener("click", () => clearFilters());
find("chip").addEventListener("click", () => setFilter("task", -1));
find("join").addEventListener("change", (event) => {
  joins = event.target.checked;
  refresh();
});

const toggle = (id, change) => {
  find(id).addEventListener("click", () => {
    const isOpen = find(id).getAttribute("aria-expanded") !== "true";
    find(id).setAttribute("aria-expanded", String(isOpen));
    change(isOpen);
    resetList();
    resizeTimeline();
  });
};
toggle("more", (isOpen) => find("filters").classList.toggle("open", isOpen));
toggle("help", (isOpen) => (find("about").hidden = !isOpen));
toggle("fold", (isOpen) => {
  lanes.hidden = !isOpen;
  find("timeline").classList.toggle("folded", !isOpen);
});

// --- The list

const follow = () => {
  const item = Math.min(Math.round(list.scrollTop / height), items.first.length - 1);
  if (item >= 0 && isMovedByReader) showLane(rowOf(item));
  drawSoon();
};
let isMovedByReader = false;
for (const kind of ["wheel", "pointerdown", "touchmove", "keydown"]) list.addEventListener(kind, () => (isMovedByReader = true), { passive: true });
list.addEventListener("scroll", () => onScroll(follow), { passive: true });
list.addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (row) open(rowOf(row.item), { isCentred: false });
});
const steps = () => ({ ArrowDown: 1, ArrowUp: -1, PageDown: Math.floor(viewport / height) - 1, PageUp: 1 - Math.floor(viewport / height) });
const move = (key) => {
  const last = items.first.length - 1;
  if (last < 0) return;
  const step = steps()[key];
  const item = key === "Home" ? 0 : key === "End" ? last : Math.min(last, Math.max(0, current + step));
  if (narrow.matches) {
    scrollToItem(item, false);
    markCurrent(item);
  } else open(rowOf(item), { isCentred: false });
};
const nextFinding = (step) => {
  const from = selected < 0 ? (step > 0 ? -1 : total) : selected;
  for (let at = from + step; at >= 0 && at < total; at += step) {
    if (worst[at] >= 0 && shown.flags[at]) return open(at);
  }
};
const escape = () => {
  if (!detail.hidden) closeDetail();
  else clearFilters();
};

const onKey = (event) => {
  const isTyping = event.target.matches("input:not([type=checkbox]), select");
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (event.key === "Escape") return escape(), true;
  if (isTyping) return event.key === "ArrowDown" && event.target.id === "query" ? (list.focus(), true) : false;
  const pair = selected < 0 ? -1 : rows.asked[selected] >= 0 ? rows.asked[selected] : answers[selected];
  if (event.key === "/") return find("query").focus(), true;
  if (event.key === "f") return nextFinding(1), true;
  if (event.key === "F") return nextFinding(-1), true;
  if (event.key === "r" && pair >= 0) return open(pair), true;
  if (!list.contains(event.target)) return false;
  if (event.key === "Enter" && current >= 0) return open(selected >= 0 && itemOf(selected) === current ? selected : rowOf(current), { keepsFocus: true }), true;
  if (event.key in steps() || event.key === "Home" || event.key === "End") return move(event.key), true;
  return false;
};
document.addEventListener("keydown", (event) => onKey(event) && event.preventDefault());

// --- The timeline

find("in").addEventListener("click", () => zoom(0.5, selected < 0 ? undefined : placeOf(selected)));
find("out").addEventListener("click", () => zoom(2));
find("fit").addEventListener("click", fitAxis);
find("axis").hidden = !axis.byTime;
find("axis").addEventListener("click", (event) => {
  axis.byTime = !axis.byTime;
  event.target.setAttribute("aria-pressed", String(!axis.byTime));
  fitAxis();
});
lanes.addEventListener("scroll", () => (nameLanes(), drawSoon()), { passive: true });
canvas.addEventListener("pointermove", (event) => (find("hover").textContent = describe(under(event))));
canvas.addEventListener("pointerleave", () => (find("hover").textContent = ""));
canvas.addEventListener("click", (event) => {
  const found = under(event);
  if (found?.task !== undefined) setFilter("task", filters.task === found.task ? -1 : found.task);
  else if (found) open(found.at);
});
canvas.addEventListener(
  "wheel",
  (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const x = event.clientX - canvas.getBoundingClientRect().left;
    zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, axis.from + (x / size.width) * (axis.to - axis.from));
  },
  { passive: false },
);

// --- Paper: the rows that fit the filters, as a list of its own

const MOST_ON_PAPER = 2000;
addEventListener("beforeprint", () => {
  const count = Math.min(items.first.length, MOST_ON_PAPER);
  const paper = find("paper");
  for (let item = 0; item < count; item++) {
    const row = makeRow();
    fillRow(row, item);
    row.removeAttribute("id");
    row.removeAttribute("role");
    paper.append(row);
  }
  if (count < items.first.length) paper.append(element("p", "quiet", `The first ${amount(count)} of ${amount(items.first.length)} rows. Filters choose others.`));
});
addEventListener("afterprint", () => find("paper").replaceChildren());

// --- Start

const resize = () => {
  resetList();
  resizeTimeline();
};
addEventListener("resize", resize);
narrow.addEventListener("change", resize);
const openFromAddress = () => {
  const at = Number(location.hash.slice(1)) - 1;
  if (Number.isInteger(at) && at >= 0 && at < total && at !== selected) open(at);
};
addEventListener("hashchange", openFromAddress);
repaint();
if (timed && total) {
  find("length").textContent = span(times[total - 1] - times[0]);
  find("length").hidden = false;
}
makeChoices();
find("timeline").hidden = total < 2;
if (narrow.matches) {
  lanes.hidden = true;
  find("fold").setAttribute("aria-expanded", "false");
  find("timeline").classList.add("folded");
}
fitAxis();
resizeTimeline();
applyFilters(() => {
  refresh();
  openFromAddress();
});
