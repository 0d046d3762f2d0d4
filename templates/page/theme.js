// Light or dark: as the system has it, until the reader chooses.
const root = document.documentElement;
const find = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const stored = (change) => {
  try {
    return change(localStorage);
  } catch {
    return null; // a page that is opened as a file may have no storage
  }
};
const setTheme = (name) => {
  if (name === "light" || name === "dark") root.dataset.theme = name;
  dispatchEvent(new Event("theme"));
};
setTheme(stored((storage) => storage.getItem("theme")));
find("theme").addEventListener("click", () => {
  const now = root.dataset.theme || (dark.matches ? "dark" : "light");
  setTheme(now === "dark" ? "light" : "dark");
  stored((storage) => storage.setItem("theme", root.dataset.theme));
});
