// JSON as indented lines, from its text: numbers and repeated keys stay as they came.
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gs;
const LONG_TEXT = 2000;
const DEEPEST = 40;

const inPointer = (key) => (parsed(key) ?? key).replaceAll("~", "~0").replaceAll("/", "~1");

/** The lines of a JSON text: each with its depth, tokens, and the pointer of the value that starts on it. */
const linesOfJson = function* (text) {
  const tokens = text.match(TOKEN) ?? [];
  const stack = [];
  let line = { depth: 0, parts: [], pointer: "" };
  const next = () => {
    const done = line;
    line = { depth: Math.min(stack.length, DEEPEST), parts: [], pointer: null };
    return done;
  };
  const place = () => stack.map((each) => `/${each.key}`).join("");
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    const top = stack.at(-1);
    if (token === "{" || token === "[") {
      line.pointer ??= place();
      const close = token === "{" ? "}" : "]";
      if (tokens[at + 1] === close) {
        line.parts.push(["", token + close]);
        at++;
        continue;
      }
      line.parts.push(["", token]);
      stack.push({ isList: token === "[", key: token === "[" ? 0 : "" });
      yield next();
    } else if (token === "}" || token === "]") {
      stack.pop();
      yield next();
      line.parts.push(["", token]);
      line.pointer = "-"; // no value starts here
    } else if (token === ",") {
      line.parts.push(["", ","]);
      if (top?.isList) top.key++;
      yield next();
    } else if (token === ":") {
      line.parts.push(["", ": "]);
    } else if (top && !top.isList && tokens[at + 1] === ":") {
      top.key = inPointer(token);
      line.parts.push(["key", token]);
      line.pointer = place();
    } else {
      line.pointer ??= place();
      const kind = token.startsWith('"') ? "string" : /^[-\d]/.test(token) ? "literal" : "word";
      line.parts.push([kind, token]);
    }
  }
  if (line.parts.length) yield line;
};

/** A text in quotes, with a new line after each escape for one. A long one is cut until it is wanted. */
const textToken = (token) => {
  const shown = (text) => visible(text).replace(/\\(?:n|.)/gs, (found) => (found === "\\n" ? "\\n\n" : found));
  const made = element("span", "string", shown(token.slice(0, LONG_TEXT)));
  if (token.length <= LONG_TEXT) return made;
  const more = element("button", "more", `… ${amount(token.length - LONG_TEXT)} more characters`);
  more.type = "button";
  more.addEventListener("click", () => made.replaceChildren(shown(token)));
  made.append(more);
  return made;
};

const jsonLine = (line) => {
  const made = element("div", "line");
  made.style.paddingInlineStart = `calc(${line.depth} * var(--indent) + 1.5rem)`;
  for (const [kind, token] of line.parts) {
    made.append(kind === "string" ? textToken(token) : element("span", kind, visible(token)));
  }
  return made;
};

const LINES = 600;

/** The element for a JSON text. `marks` has elements by pointer; each stands below its value, or the nearest. */
const jsonView = (text, marks) => {
  const view = element("div", "json");
  const lines = linesOfJson(text);
  const left = new Map(marks);
  const known = new Map();
  const add = (most) => {
    for (let count = 0; count < most; count++) {
      const { value: line, done } = lines.next();
      if (done) return false;
      const made = jsonLine(line);
      view.append(made);
      if (!known.has(line.pointer)) known.set(line.pointer, made);
      if (left.has(line.pointer)) {
        made.classList.add("marked", left.get(line.pointer)[0].classList[1]);
        view.append(...left.get(line.pointer));
        left.delete(line.pointer);
      }
    }
    return true;
  };
  const rest = () => {
    for (const [pointer, notes] of left) {
      let near = pointer;
      while (near && !known.has(near)) near = near.slice(0, near.lastIndexOf("/"));
      (known.get(near) ?? view.firstElementChild)?.after(...notes);
    }
    left.clear();
  };
  if (!add(LINES)) {
    rest();
    return view;
  }
  const more = element("button", "more", "Show more lines");
  more.type = "button";
  more.addEventListener("click", () => {
    more.remove();
    if (add(LINES * 5)) view.append(more);
    else rest();
  });
  view.append(more);
  if (left.size) view.prepend(...[...left.values()].flat()), left.clear();
  return view;
};
