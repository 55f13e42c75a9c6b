"use strict";
// Sorts and filters tables, and shows the precomputed comparison of two systems.

const make = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), {textContent: text, ...more});
const valueOf = (text) => parseFloat(text.replace(/^≤ /, "").replace("−", "-").replaceAll(",", ""));

for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 3) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = make("button", head.textContent, {type: "button"});
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const number = head.classList.contains("n");
      const descending = head.ariaSort ? head.ariaSort === "ascending" : number;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = descending ? "descending" : "ascending";
      const key = (row) => number ? valueOf(row.cells[place].textContent) : row.cells[place].textContent;
      const missing = (value) => value === "" || Number.isNaN(value);
      const order = (a, b) => number ? a - b : a.localeCompare(b, "en", {numeric: true});
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) => missing(a) - missing(b) || (missing(a) ? 0 : order(a, b) * (descending ? -1 : 1)));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

const form = document.getElementById("filter");
const rows = [...document.querySelectorAll("tbody tr")].filter(
  (row) => row.closest("table").tHead.rows[0].cells[0].textContent === "system");
form.hidden = !rows.length;
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  const words = form.querySelector("input").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of rows) {
    const text = row.cells[0].textContent.toLowerCase() + " " + (row.cells[1]?.textContent.toLowerCase() ?? "");
    row.hidden = !words.every((word) => text.includes(word));
  }
  form.querySelector("output").textContent = words.length
    ? ` ${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
});

const signed = (value, digits) =>
  (value > 0 ? "+" : value < 0 ? "−" : "") + Math.abs(value).toFixed(digits);

for (const place of document.querySelectorAll(".pair")) {
  const {systems, parts, pairs, first} = JSON.parse(place.querySelector("script").textContent);
  const selects = ["System", "compared with"].map((title, side) => {
    const label = make("label", `${title} `);
    const select = make("select");
    select.append(...systems.map((name, number) => make("option", name, {value: number})));
    select.value = first[side];
    label.append(select);
    place.append(label);
    return select;
  });
  const table = make("table");
  const wide = make("div", "", {className: "wide"});
  wide.append(table);
  place.append(wide);
  const show = () => {
    const [one, other] = selects.map((select) => Number(select.value));
    const [low, high] = [Math.min(one, other), Math.max(one, other)];
    // Rows of the upper triangle, in order.
    const row = one === other ? null : pairs[low * systems.length - low * (low + 1) / 2 + high - low - 1];
    const sign = one < other ? 1 : -1;
    const lines = row ? [["all", ...row.slice(0, 3)], ...parts.map((part, n) => [part, row[3 + 2 * n], row[4 + 2 * n]])] : [];
    const most = Math.max(...lines.map(([, value]) => Math.abs(value)), 0.01);
    table.replaceChildren(make("caption", row ? "BLEU of the first minus BLEU of the second, by words of the source (sentences)" : "Choose two systems."));
    for (const [name, value, half, p] of lines) {
      const line = table.insertRow();
      const digits = p === undefined ? 1 : 2;
      line.append(make("th", name, {scope: "row"}));
      line.append(make("td", `${signed(sign * value, digits)} ± ${half.toFixed(digits)}`, {className: "n"}));
      const bar = make("i");
      bar.style.width = `${6 * Math.abs(value) / most}rem`;
      line.append(make("td", p === undefined ? "" : p > 0.0001 ? `p ${p.toFixed(4)}` : "p ≤ 0.0001"));
      line.insertCell().append(bar);
    }
  };
  selects.forEach((select) => select.addEventListener("change", show));
  show();
  place.hidden = false;
}
