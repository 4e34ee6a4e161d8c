// SPDX-License-Identifier: Apache-2.0
// Draws the figures from the numbers in this page, and sorts its tables. Nothing here asks the network for anything.
"use strict";

const text = document.getElementById("numbers").textContent;
const numbers = JSON.parse(text);
const charts = JSON.parse(document.getElementById("charts").textContent);

const download = document.getElementById("download");
if (download) {
  download.href = "data:application/json;charset=utf-8," + encodeURIComponent(text);
}

// Figures have the width of their place, which a folded one lacks: all are drawn open, and then folded.
const folds = [...document.querySelectorAll("details.fold")];
document.body.classList.add("drawing");
folds.forEach((one) => { one.open = true; });
function fold() {
  folds.forEach((one) => { one.open = false; });
  document.body.classList.remove("drawing");
  unfold();
  folds.forEach((one) => one.addEventListener("toggle", () => dispatchEvent(new Event("resize"))));
}
// What an address leads to is unfolded.
function unfold() {
  const wanted = /^#[\w-]+$/.test(location.hash) ? document.querySelector(location.hash) : null;
  for (let one = wanted; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  wanted?.scrollIntoView();
}
addEventListener("hashchange", unfold);

const places = [...document.querySelectorAll(".chart")];
const drawn = places.map((place) => {
  const chart = charts[place.id];
  chart.datasets = { ...chart.datasets, figure: numbers.figures[place.dataset.figure].rows };
  return vegaEmbed(place, chart, { mode: "vega-lite", renderer: "svg", actions: false, ast: true, logLevel: 1 });
});
// Views of each figure, for what changes its rows.
const views = {};
const everythingDrawn = Promise.all(drawn);
everythingDrawn.then(
  (results) => {
    results.forEach((one, i) => (views[places[i].dataset.figure] ??= []).push(one.view));
    fold(); 
    document.body.dataset.drawn = String(drawn.length);
  },
  (error) => { fold(); document.body.dataset.failed = String(error); console.error(error); },
);

// On paper nobody can open anything. Folded tables stay folded: they fill pages, and their numbers are in the JSON.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")].filter((one) => !one.querySelector("table"));
  opened.forEach((one) => { one.open = true; });
});
addEventListener("afterprint", () => { opened.forEach((one) => { one.open = false; }); });

// Cells carry the plain value in data-value; what has none goes last either way.
function compare(a, b) {
  if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
}

for (const table of document.querySelectorAll("table[data-table]")) {
  const heads = [...table.querySelectorAll("th")];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const value = (row) => row.cells[column].dataset.value;
    const rows = [...body.rows].sort((a, b) => {
      const order = compare(value(a), value(b));
      return down && value(a) !== "" && value(b) !== "" ? -order : order;
    });
    body.append(...rows);
  }));
}
