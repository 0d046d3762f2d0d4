// Which messages are shown. A search in the texts goes through them in pieces, so that the page stays usable.
const filters = { text: "", method: "", session: "", side: "", finding: "", task: -1 };
const shown = { rows: new Int32Array(0), flags: new Uint8Array(total) };
const PIECE = 10; // milliseconds
const pause = () => new Promise((done) => setTimeout(done));

const fits = (() => {
  const ranks = { any: 2, error: 0, warning: 1 };
  return (at) => {
    const { method, session, side, finding, task } = filters;
    if (method !== "" && !fitsMethod(at, method)) return false;
    if (session !== "" && rows.session[at] !== Number(session)) return false;
    if (side !== "" && rows.side[at] !== Number(side)) return false;
    if (task >= 0 && rows.task[at] !== task) return false;
    return finding === "" || (worst[at] >= 0 && worst[at] <= ranks[finding]);
  };
})();
const fitsMethod = (at, wanted) => {
  const [method, tag] = wanted.split(" ").map(Number);
  return rows.method[at] === method && (tag === undefined || rows.tag[at] === tag);
};

/** What a text looks like in JSON, as the blocks have it. */
const asInJson = (text) => JSON.stringify(text.toLowerCase()).slice(1, -1).replaceAll("<", "\\u003c");

const namesWith = (text, names) => new Set(names.flatMap((name, at) => (name.toLowerCase().includes(text) ? [at] : [])));
const searcher = (query) => {
  const plain = query.toLowerCase();
  const wanted = asInJson(query);
  const methods = namesWith(plain, head.methods);
  const says = ({ code, text }) => code.includes(plain) || text.toLowerCase().includes(plain);
  const told = new Set([...findings].flatMap(([at, each]) => (each.some(says) ? [at] : [])));
  return (block) => {
    const text = blocks[block].textContent.toLowerCase();
    const lines = text.includes(wanted) ? text.slice(1, -1).split("\n") : null;
    return (at) => methods.has(rows.method[at]) || told.has(at) || Boolean(lines?.[at % head.block].includes(wanted));
  };
};

let runs = 0;
const applyFilters = async (show) => {
  const run = ++runs;
  const found = [];
  const finds = filters.text ? searcher(filters.text) : null;
  let started = performance.now();
  for (let block = 0; block < blocks.length; block++) {
    const hasText = finds ? finds(block) : () => true;
    const end = Math.min(total, (block + 1) * head.block);
    for (let at = block * head.block; at < end; at++) if (fits(at) && hasText(at)) found.push(at);
    if (finds && performance.now() - started > PIECE) {
      await pause();
      if (run !== runs) return;
      started = performance.now();
    }
  }
  shown.rows = Int32Array.from(found);
  shown.flags.fill(0);
  for (const at of found) shown.flags[at] = 1;
  show();
};
const isFiltered = () => filters.task >= 0 || Object.entries(filters).some(([key, each]) => key !== "task" && each !== "");
