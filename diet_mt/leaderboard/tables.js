"use strict";
// Tables are sorted by the values of their cells, not by what is read there; without values by that.
// A cell with nothing in it stays at the end in both orders. A row of class "follows" stays below the
// one above it, and pictures follow the table below them.
function sort(table, heads, column) {
  const head = heads[column];
  const before = head.getAttribute("aria-sort");
  const opposite = before === "ascending" ? "descending" : "ascending";
  const order = before ? opposite : head.dataset.first;
  for (const other of heads) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const text = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.replace("−", "-");
  const body = [...table.tBodies[0].rows];
  // A text, such as that of several seeds, may stand for a number.
  const numbers = head.classList.contains("number") || body.every((row) => !Number.isNaN(Number(text(row))));
  const value = (row) => (numbers ? Number.parseFloat(text(row)) : text(row));
  const empty = (x) => x === "" || Number.isNaN(x);
  const groups = [];
  for (const row of body) {
    if (row.classList.contains("follows")) groups.at(-1)[1].push(row);
    else groups.push([value(row), [row]]);
  }
  const compare = ([x], [y]) => {
    if (empty(x) || empty(y)) return empty(x) - empty(y);
    return sign * (numbers ? x - y : x.localeCompare(y, "en", { numeric: true }));
  };
  const rows = groups.sort(compare).flatMap(([, group]) => group);
  table.tBodies[0].append(...rows);
  const list = table.closest(".board")?.querySelector(".rows ol");
  if (!list || !rows[0]?.dataset.row) return;
  list.append(...rows.map((row) => row.picture));
  const moved = rows.some((row, place) => Number(row.dataset.row) !== place);
  list.classList.toggle("sorted", moved);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(table, heads, column));
    head.append(button);
  });
}

// diet-rel is as good as diet_rel.
const plain = (text) => text.toLowerCase().replaceAll("-", "_");
const withoutSize = (name) => name.replace(/_(tiny|small|base|big)$/, "");

// A system is shown where all words are in its name or its encoding, and its family is wanted.
function filter(form, boards) {
  const words = plain(form.text.value).split(/\s+/).filter(Boolean);
  const off = new Set(
    [...form.querySelectorAll("[aria-pressed=false]")].map((button) => button.dataset.family),
  );
  let [shown, all] = [0, 0];
  for (const board of boards) {
    const wanted =
      (!form.direction.value || board.element.dataset.direction === form.direction.value) &&
      (!form.corpus.value || board.element.dataset.corpus === form.corpus.value);
    const out = new Set();
    let left = false;
    let above; // cluster of the row above, of those shown
    for (const row of board.rows) {
      const keep = !off.has(row.className) && words.every((word) => row.words.includes(word));
      row.hidden = row.picture.hidden = !keep;
      if (!keep) out.add(row.name);
      left ||= keep;
      const { cluster } = row.picture.dataset;
      row.picture.classList.toggle("cluster", keep && Boolean(above && cluster && above !== cluster));
      if (keep) above = cluster;
      shown += keep && wanted;
      all += 1;
    }
    board.element.hidden = linkTo(board.element.id).hidden = !(wanted && left);
    for (const mark of board.marks) mark.classList.toggle("out", out.has(mark.dataset.system));
  }
  // Beside the boards: rows of tasks, learned positions and curves, by their name and family. They
  // do without the size that is part of a name in the boards.
  for (const each of document.querySelectorAll("[data-of], #learning .curve")) {
    const name = each.dataset.system ?? each.querySelector("summary, th, td").textContent;
    const family = each.dataset.of ?? each.classList[1];
    const said = form.querySelector(`[data-family="${family}"]`)?.textContent ?? "";
    const text = plain(`${name} ${said}`);
    const named = words.every((word) => text.includes(withoutSize(word)));
    each.classList.toggle("out", !named || off.has(family));
  }
  hideEmpty(form);
  form.querySelector("output").textContent = shown === all ? "" : `${shown} of ${all} rows of BLEU; sentences are about all`;
}

const linkTo = (id) => document.querySelector(`nav a[href="#${id}"]`)?.closest("li") ?? {};

// A picture, a table or a section with nothing left in it, or of another direction or corpus.
function hideEmpty({ direction, corpus }) {
  const empty = (element, marks) => {
    const all = [...element.querySelectorAll(marks)];
    return all.length > 0 && all.every((mark) => mark.classList.contains("out"));
  };
  for (const view of document.querySelectorAll(".view")) {
    const of = view.dataset.corpus;
    const other =
      of !== undefined &&
      ((direction.value && !of.split(".").includes(direction.value)) ||
        (corpus.value && of !== corpus.value));
    view.classList.toggle("out", Boolean(other) || empty(view, "[data-system]"));
  }
  for (const frame of document.querySelectorAll("#tasks .frame")) {
    const hidden = empty(frame, "[data-of]");
    let each = frame;
    do {
      each.classList.toggle("out", hidden);
      each = each.previousElementSibling;
    } while (each?.matches("h3, .finding"));
  }
  // These are of no direction or corpus of a board.
  const beside = direction.value || corpus.value;
  for (const [id, parts] of [["learning", ".view"], ["positions", "details"], ["tasks", ".frame"]]) {
    const section = document.getElementById(id);
    if (!section) continue;
    const out = (beside && id !== "learning") || empty(section, parts);
    section.hidden = linkTo(id).hidden = Boolean(out);
  }
}

function makeFilter(form) {
  const boards = [...document.querySelectorAll(".board")].map((element) => {
    const pictures = element.querySelectorAll(".rows li");
    const rows = [...element.querySelectorAll("[data-row]")];
    for (const row of rows) {
      row.picture = pictures[row.dataset.row];
      row.name = row.cells[0].textContent;
      row.words = plain(`${row.name} ${row.cells[1].textContent}`);
    }
    return { element, rows, marks: element.querySelectorAll("[data-system]") };
  });
  for (const name of ["direction", "corpus"]) {
    const values = [...new Set(boards.map((board) => board.element.dataset[name]))];
    form[name].append(...values.map((value) => new Option(value)));
    form[name].hidden = values.length < 2;
  }
  for (const button of form.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "false");
      filter(form, boards);
    });
  }
  form.addEventListener("input", () => filter(form, boards));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = boards.length === 0;
  // A browser remembers what was typed, and puts it back after scripts have run.
  addEventListener("pageshow", () => filter(form, boards));
}

for (const table of document.querySelectorAll("table")) {
  if (table.querySelector("[data-first]")) makeSortable(table);
}
document.getElementById("sorting").hidden = false;
makeFilter(document.getElementById("filter"));
