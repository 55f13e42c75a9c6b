
"use strict";
// Tables are sorted by the values of their cells, not by what is read there. A cell without a
// value stays at the end in both orders.
function sort(table, heads, column) {
  const head = heads[column];
  const before = head.getAttribute("aria-sort");
  const opposite = before === "ascending" ? "descending" : "ascending";
  const order = before ? opposite : head.dataset.first;
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const numbers = head.classList.contains("number");
  const value = (row) => row.cells[column].dataset.value;
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return sign * (numbers ? x - y : x.localeCompare(y, "en", { numeric: true }));
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort(compare));
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, heads, column));
    head.append(button);
  });
}
