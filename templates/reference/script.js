const [query, results, count, menu, nav] = ["query", "results", "count", "menu", "nav"].map(find);
root.classList.add("scripted");
for (const each of [find("search"), menu, find("theme")]) each.hidden = false;

// The contents, which a narrow screen shows on demand.
const setMenu = (open) => {
  menu.setAttribute("aria-expanded", String(open));
  nav.classList.toggle("open", open);
};
menu.addEventListener("click", () => setMenu(menu.getAttribute("aria-expanded") !== "true"));
nav.addEventListener("click", (event) => event.target.closest("a") && setMenu(false));

// Search in what the page has: types, methods, properties, values and errors. Names are compared by their words:
// `tool_call`, `ToolCall`, `tool/call` and "tool call" are the same.
const words = (name) =>
  name.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2").toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim();
const joined = (text) => text.replaceAll(" ", "");
const entries = [...document.querySelectorAll("[data-name]")].map((node) => {
  const { name, other = "", text = "", kind, of = "" } = node.dataset;
  const names = [name, name.split("/").pop(), other, text];
  return { node, name, kind, of, names: names.map(words), full: words(`${of} ${name}`), fullOther: words(`${of} ${other}`) };
});
const protocols = new Set(entries.map((each) => each.node.id.split("/")[0])).size;

const rankOfName = (name, text) => {
  if (name === text || joined(name) === joined(text)) return 0;
  if (name.startsWith(text)) return 1;
  if (` ${name}`.includes(` ${text}`)) return 2;
  return joined(name).includes(joined(text)) ? 3 : Infinity;
};
const KINDS = { property: 0.5, tag: 0.4, value: 0.4, request: 0, notification: 0 };
const rank = (entry, text, isFull) => {
  const names = isFull ? [entry.full, entry.fullOther] : entry.names;
  return Math.min(...names.map((name) => rankOfName(name, text))) + (KINDS[entry.kind] ?? 0.25);
};
const item = (entry) => {
  const link = document.createElement("a");
  link.href = `#${entry.node.id}`;
  const name = document.createElement("span");
  name.textContent = entry.of ? `${entry.of}.${entry.name}` : entry.name;
  const kind = document.createElement("small");
  kind.textContent = protocols > 1 ? `${entry.node.id.split("/")[0]} ${entry.kind}` : entry.kind;
  link.append(name, kind);
  const line = document.createElement("li");
  line.append(link);
  return line;
};
const search = () => {
  const text = words(query.value);
  const ranks = text ? entries.map((entry) => [rank(entry, text, query.value.includes(".")), entry]) : [];
  const ranked = ranks.filter(([best]) => best < Infinity);
  ranked.sort(([one, a], [two, b]) => one - two || a.name.length - b.name.length);
  results.replaceChildren(...ranked.slice(0, 50).map(([, entry]) => item(entry)));
  results.hidden = !ranked.length;
  find("search").classList.toggle("empty", Boolean(query.value.trim()) && !ranked.length);
  count.textContent = query.value.trim() ? `${ranked.length || "No"} result${ranked.length === 1 ? "" : "s"}` : "";
};
const close = () => {
  query.value = "";
  search();
};
query.addEventListener("input", search);
results.addEventListener("click", (event) => event.target.closest("a") && close());
document.addEventListener("keydown", (event) => {
  const links = [query, ...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const isTyping = event.target.matches("input, textarea");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    query.focus();
  } else if (event.key === "Escape") {
    if (at >= 0) query.focus();
    close();
    setMenu(false);
    return;
  } else if (at >= 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    links[Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), 0), links.length - 1)].focus();
  } else if (event.key === "Enter" && event.target === query && links.length > 1) {
    links[1].click();
    return;
  } else {
    return;
  }
  event.preventDefault();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("#search")) results.hidden = true;
});
query.addEventListener("focus", () => (results.hidden = !results.children.length));

// The place in the contents that the reader is at.
const side = document.querySelector(".side");
const links = new Map([...nav.querySelectorAll("a")].map((link) => [link.getAttribute("href").slice(1), link]));
let current = null;
const mark = (id) => {
  const link = links.get(id);
  if (!link || link === current) return;
  current?.removeAttribute("aria-current");
  link.setAttribute("aria-current", "location");
  current = link;
  const { top } = link.getBoundingClientRect();
  if (top < 120 || top > side.clientHeight - 40) side.scrollTop += top - side.clientHeight / 2;
};
const observer = new IntersectionObserver(
  (seen) => seen.filter((each) => each.isIntersecting).slice(0, 1).forEach((each) => mark(each.target.id)),
  { rootMargin: "-10% 0px -80% 0px" },
);
document.querySelectorAll("section > article").forEach((each) => observer.observe(each));
