// The messages: columns of numbers, and texts that are parsed when they are shown.
const head = JSON.parse(find("index").textContent);
const rows = head.rows;
const total = rows.line.length;
const blocks = [...document.querySelectorAll('script[type="application/x-ndjson"]')];
const KIND = Object.fromEntries(head.kinds.map((name, at) => [name.replace(" ", "_"), at]));

// Times go on where a line has none. Without times, or where they go back, the axis counts messages.
const timed = rows.time.some((each) => each !== null);
const times = new Float64Array(total);
let goesBack = false;
for (let at = 0, last = 0; at < total; at++) {
  const time = rows.time[at] ?? last;
  if (time < last - 1) goesBack = true;
  times[at] = last = time;
}

const answers = new Int32Array(total).fill(-1);
rows.asked.forEach((asked, at) => asked >= 0 && asked < total && (answers[asked] = at));

// What each finding is: its message, severity, code, pointer, text, hint, and anchor in the reference.
const findings = new Map();
const SEVERITIES = ["error", "warning", "note"];
const worst = new Int8Array(total).fill(-1);
for (const [at, severity, code, pointer, text, hint, anchor] of head.findings) {
  if (!findings.has(at)) findings.set(at, []);
  findings.get(at).push({ severity, code, pointer, text, hint, anchor });
  const rank = SEVERITIES.indexOf(severity);
  if (worst[at] < 0 || rank < worst[at]) worst[at] = rank;
}

const cached = (limit, make) => {
  const known = new Map();
  return (key) => {
    if (!known.has(key)) {
      if (known.size >= limit) known.delete(known.keys().next().value);
      known.set(key, make(key));
    }
    return known.get(key);
  };
};
const linesOf = cached(40, (block) => blocks[block].textContent.slice(1, -1).split("\n"));
const bodyOf = (at) => linesOf(Math.floor(at / head.block))[at % head.block];

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;
const escaped = (char) => [...char].map((each) => "\\u" + each.charCodeAt(0).toString(16).padStart(4, "0")).join("");
/** The text with its invisible characters as JSON escapes: they could hide or reorder others. */
const visible = (text) => text.replace(HIDDEN, escaped);

const parsed = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return null; // NaN, for example, which Python reads
  }
};

const LONG = 60_000;
const MOST_PARTS = 12;
const MOST_DEPTH = 30;

/** The texts and numbers of a value in their order, without tags and the members `skipped`. */
const partsOf = (value, skipped, parts = [], name = "") => {
  if (parts.length >= MOST_PARTS) return parts;
  if (Array.isArray(value)) value.forEach((each) => partsOf(each, skipped, parts, name));
  else if (value && typeof value === "object") {
    for (const [key, each] of Object.entries(value)) {
      if (skipped.includes(key) || (head.tagged.includes(key) && typeof each === "string")) continue;
      partsOf(each, skipped, parts, key);
    }
  } else if (typeof value === "string") {
    if (value.trim()) parts.push(value);
  } else if (value !== null && value !== false) parts.push(`${name} ${value}`);
  return parts;
};
const noIds = [...head.skip, ...head.ids];

/** The texts of the content in a value, one after the other: what it says to people. */
const wordsOf = (value, depth = 0) => {
  if (!value || typeof value !== "object" || depth > MOST_DEPTH) return "";
  const name = Object.entries(head.texts).map(([tag, names]) => names[value[tag]]).find((each) => typeof each === "string");
  if (name && typeof value[name] === "string") return value[name];
  return Object.entries(value).map(([key, each]) => (key === "_meta" ? "" : wordsOf(each, depth + 1))).join("");
};

const textsOf = cached(3000, (at) => {
  const body = bodyOf(at);
  if (body.length > LONG) return [body.slice(0, 200)];
  const message = parsed(body);
  if (message === null) return [body.slice(0, 200)];
  if (typeof message !== "object") return [String(message)];
  if (rows.kind[at] === KIND.event) return partsOf(message, head.skip);
  const value = message.params ?? message.result ?? message.error;
  const parts = partsOf(value, noIds);
  return parts.length ? parts : partsOf(value, head.skip); // it says nothing but ids
});
const oneLine = (text) => visible(text.slice(0, 400).replace(/\s+/g, " ").trim()).slice(0, 240);
const preview = (at) => oneLine(textsOf(at).join(" · "));
/** The text of the content of messages, one after the other: the pieces of a text are whole again. */
const joined = (members) => {
  const words = members.map((at) => (bodyOf(at).length > 10 * LONG ? "" : wordsOf(parsed(bodyOf(at)))));
  return words.some((each) => each) ? words.join("") : members.map((at) => textsOf(at).join(" · ")).join(" · ");
};

const titleOf = (at) => {
  const method = rows.method[at] < 0 ? head.kinds[rows.kind[at]] : head.methods[rows.method[at]];
  return rows.tag[at] < 0 ? method : `${method} · ${head.tags[rows.tag[at]]}`;
};
const lengthOf = (at) => {
  const [from, to] = rows.asked[at] >= 0 ? [rows.asked[at], at] : [at, answers[at]];
  return to < 0 || rows.time[from] === null || rows.time[to] === null ? null : rows.time[to] - rows.time[from];
};

const span = (seconds) => {
  if (seconds < 0.001) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
};
const clock = (seconds) => {
  const [sign, all] = [seconds < 0 ? "−" : "", Math.abs(seconds)];
  if (all < 60) return sign + all.toFixed(3);
  const [hours, minutes] = [Math.floor(all / 3600), Math.floor(all / 60) % 60];
  const rest = (all % 60).toFixed(hours ? 0 : 2).padStart(hours ? 2 : 5, "0");
  return sign + (hours ? `${hours}:${String(minutes).padStart(2, "0")}` : minutes) + `:${rest}`;
};
const amount = (count) => count.toLocaleString("en");
const element = (tag, name, ...content) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...content);
  return made;
};
