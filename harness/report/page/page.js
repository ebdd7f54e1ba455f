"use strict";
// The page says all it has to say without this: here are sorting, filtering, the theme, and what is open.

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, heads, column));
    head.append(button);
  });
}

function sort(table, heads, column) {
  const direction = heads[column].ariaSort === "ascending" ? "descending" : "ascending";
  heads.forEach((head, at) => { head.ariaSort = at === column ? direction : null; });
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[column]), row]);
  rows.sort(([one], [other]) => compare(one, other, sign));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

// A number where the cell names one; nothing at all sorts last whichever way.
function valueOf(cell) {
  if (cell.dataset.value === undefined) return cell.textContent.trim();
  return cell.dataset.value === "" ? null : Number(cell.dataset.value);
}

function compare(one, other, sign) {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "number") return sign * (one - other);
  return sign * one.localeCompare(other, "en", { numeric: true });
}

const filter = document.querySelector("[data-filter]");
if (filter) {
  filter.hidden = false;
  filter.addEventListener("click", ({ target }) => {
    const wanted = target.dataset.show;
    if (!wanted) return;
    for (const button of filter.children) button.ariaPressed = String(button === target);
    const findings = [...document.querySelectorAll("#all-findings > li")];
    for (const each of findings) each.hidden = wanted !== "all" && each.dataset.severity !== wanted;
    document.getElementById("shown").textContent = `${findings.filter((each) => !each.hidden).length} findings shown`;
  });
}

const theme = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";
const label = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.ariaLabel = `${theme.textContent} colours`; };
theme.hidden = false;
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  label();
});
prefersDark.addEventListener("change", label);
label();

const runs = [...document.querySelectorAll("details.run")];
for (const button of document.querySelectorAll("[data-open]")) {
  button.hidden = false;
  button.addEventListener("click", () => { for (const run of runs) run.open = button.dataset.open === "all"; });
}

// Whoever follows a link wants to see what it leads to.
function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();

// Paper cannot be opened.
const opened = [];
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details:not([open], .exact)")) {
    each.open = true;
    opened.push(each);
  }
});
addEventListener("afterprint", () => { for (const each of opened.splice(0)) each.open = false; });
