// The open message: its facts, its findings, and its JSON with the findings at their places.
const detail = find("detail");
const narrow = matchMedia("(max-width: 56rem)");

const button = (text, action, label) => {
  const made = element("button", "", text);
  made.type = "button";
  if (label) made.setAttribute("aria-label", label);
  made.addEventListener("click", action);
  return made;
};
const linkTo = (anchor, text) => {
  if (head.reference === null || !anchor) return text;
  const made = element("a", "", text);
  made.href = `${head.reference}#${anchor}`;
  made.rel = "noreferrer";
  made.target = "_blank";
  return made;
};

const findingView = ({ severity, code, pointer, text, hint, anchor }) => {
  const made = element("div", `finding ${severity}`);
  made.append(element("span", `badge ${severity}`, severity), " ", element("span", "says", visible(text)));
  const more = element("span", "code", " ", linkTo(anchor, code));
  made.append(more);
  if (pointer) made.append(element("code", "pointer", visible(pointer)));
  if (hint) made.append(element("span", "hint", visible(hint)));
  return made;
};

const factsOf = (at) => {
  const facts = [];
  if (rows.side[at] >= 0) facts.push(["From", `${head.sides[rows.side[at]]} to ${head.sides[1 - rows.side[at]]}`]);
  const kind = head.kinds[rows.kind[at]];
  facts.push(["Kind", kind]);
  if (rows.time[at] !== null) facts.push(["Time", clock(rows.time[at])]);
  facts.push(["Line", amount(rows.line[at])]);
  if (head.connections[rows.connection[at]]) facts.push(["Connection", visible(head.connections[rows.connection[at]])]);
  if (rows.session[at] >= 0) facts.push(["Session", pick("session", String(rows.session[at]), head.sessions[rows.session[at]])]);
  if (rows.task[at] >= 0) facts.push([head.task[0].toUpperCase() + head.task.slice(1), pick("task", rows.task[at], head.tasks[rows.task[at]])]);
  const pair = rows.asked[at] >= 0 ? rows.asked[at] : answers[at];
  if (pair >= 0) {
    const name = rows.asked[at] >= 0 ? "Request" : "Answer";
    facts.push([name, button(`#${pair + 1} ${name === "Answer" ? head.kinds[rows.kind[pair]] : ""}`.trim(), () => open(pair))]);
    const length = lengthOf(at);
    if (length !== null) facts.push(["Duration", span(length)]);
  } else if (kind === "request") facts.push(["Answer", "none"]);
  return facts;
};
const pick = (key, value, text) => {
  const made = button(visible(text).slice(0, 80), () => setFilter(key, filters[key] === value ? (key === "task" ? -1 : "") : value));
  made.title = "Show its messages alone";
  return made;
};

const copy = async (at, made) => {
  try {
    await navigator.clipboard.writeText(bodyOf(at));
    made.textContent = "Copied";
  } catch {
    made.textContent = "Not allowed";
  }
  setTimeout(() => (made.textContent = "Copy"), 1500);
};

const groupView = (at) => {
  const item = itemOf(at);
  if (item < 0 || items.count[item] < 2) return [];
  const members = membersOf(item);
  const place = members.indexOf(at);
  const step = (by, label) => {
    const made = button(by < 0 ? "‹" : "›", () => open(members[place + by], { keepsFocus: true }), label);
    made.disabled = !(place + by in members);
    return made;
  };
  const pager = element("p", "pager", step(-1, "Previous update"), `${amount(place + 1)} of ${amount(members.length)} joined updates`, step(1, "Next update"));
  return [pager, element("pre", "joined", visible(joined(members.slice(0, 2000))).replaceAll("\\u000a", "\n").slice(0, 20_000))];
};

const showDetail = (at) => {
  const wasHidden = detail.hidden;
  detail.hidden = false;
  const name = rows.method[at] < 0 ? null : head.methods[rows.method[at]];
  const anchor = name === null ? null : head.anchors[rows.protocol[at]]?.[name];
  const title = element("h2", "", linkTo(anchor, visible(titleOf(at))));
  const copies = button("Copy", () => copy(at, copies));
  const close = button("✕", closeDetail, "Close the message");
  const facts = element("dl", "facts");
  for (const [key, value] of factsOf(at)) facts.append(element("div", "", element("dt", "", key), element("dd", "", value)));
  const marks = new Map();
  const above = [];
  for (const each of findings.get(at) ?? []) {
    if (!each.pointer || rows.kind[at] === KIND.no_message) above.push(findingView(each));
    else if (marks.has(each.pointer)) marks.get(each.pointer).push(findingView(each));
    else marks.set(each.pointer, [findingView(each)]);
  }
  detail.replaceChildren(
    element("div", "head", element("p", "quiet", `#${at + 1}`), title, copies, close),
    facts,
    ...above,
    ...groupView(at),
    jsonView(bodyOf(at), marks),
  );
  detail.scrollTop = 0;
  (detail.querySelector(".json .finding.error") ?? detail.querySelector(".json .finding"))?.scrollIntoView({ block: "nearest" });
  document.body.classList.add("opened");
  if (wasHidden) resetList();
};

const closeDetail = () => {
  detail.hidden = true;
  document.body.classList.remove("opened");
  selected = -1;
  history.replaceState(null, "", location.pathname + location.search);
  resetList();
  drawSoon();
  list.focus({ preventScroll: true });
};

/** Open a message. If the filters hide it, they are cleared. */
const open = (at, { keepsFocus = false, isCentred = true } = {}) => {
  if (!shown.flags[at]) {
    clearFilters(() => open(at, { keepsFocus, isCentred }));
    return;
  }
  selected = at;
  showDetail(at);
  const item = itemOf(at);
  scrollToItem(item, isCentred);
  markCurrent(item);
  showLane(at);
  history.replaceState(null, "", `#${at + 1}`);
  if (narrow.matches || keepsFocus) detail.focus({ preventScroll: true });
  drawSoon();
};
