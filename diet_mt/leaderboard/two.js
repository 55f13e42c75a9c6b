// Two systems of a section, chosen and compared. All that rows say is set as text.
const SENTENCES = 10; // that are shown
const OPEN = 4; // of them, before more are asked for
const LINE = 13; // pixels of a name in a picture
const SVG = "http://www.w3.org/2000/svg";

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

const signed = (value, digits = 2) =>
  `${Number(value.toFixed(digits)) < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;

// Whatever its script, a name leaves the words around it in their order.
const isolated = (name) => make("bdi", {}, name);

// Round numbers from least to most, some five of them, as they are written.
function round(least, most) {
  const size = 10 ** Math.floor(Math.log10((most - least) / 5 || 1));
  const step = [1, 2, 5, 10].map((each) => each * size).find((each) => (most - least) / each <= 6);
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  const first = Math.ceil(least / step);
  const count = Math.floor(most / step) - first + 1;
  return Array.from({ length: count }, (_, number) => {
    const value = (first + number) * step;
    return [value, first + number ? signed(value, digits) : "0"];
  });
}

// Rows like those of the systems: a difference and its interval for each bucket of lengths.
function byLength(rows) {
  const ends = rows.flatMap(({ low, high }) => [low, high, 0]);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const place = (value) => `${(2 + (96 * (value - least)) / (most - least || 1)).toFixed(2)}%`;
  const axis = draw("svg", { width: "100%", height: 18, "aria-hidden": "true" });
  const ticks = round(least, most);
  for (const [value, text] of ticks) {
    axis.append(draw("text", { class: "tick", x: place(value), y: 14 }));
    axis.lastChild.textContent = text;
  }
  const list = make("ol");
  for (const { name, difference, low, high } of rows) {
    const marks = draw("svg", { "aria-hidden": "true" });
    const grid = ticks.map(([at]) => draw("line", { class: "grid", x1: place(at), x2: place(at), y1: 0, y2: 24 }));
    marks.append(
      ...grid,
      draw("line", { class: "baseline", x1: place(0), x2: place(0), y1: 0, y2: 24 }),
      draw("line", { class: "bar", x1: place(low), x2: place(high), y1: 12, y2: 12 }),
      draw("circle", { class: "mean", cx: place(difference), cy: 12, r: 4.5 }),
    );
    const cells = [make("span", { class: "name" }, name), marks];
    const value = `${signed(difference, 1)} ± ${((high - low) / 2).toFixed(1)}`;
    list.append(make("li", {}, ...cells, make("span", { class: "number" }, value)));
  }
  const scale = make("div", { class: "scale" }, axis);
  return make("figure", { class: "intervals" }, scale, make("div", { class: "rows" }, list));
}

// Without the architecture behind it.
const short = (name) => name.split(" (")[0];

// Which words of each are no part of a longest common subsequence.
function differing(first, second) {
  const [a, b] = [first.split(" "), second.split(" ")];
  const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    }
  }
  const [marksA, marksB] = [a.map((word) => [word, true]), b.map((word) => [word, true])];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) marksA[i++][1] = marksB[j++][1] = false;
    else if (best[i + 1][j] >= best[i][j + 1]) i++;
    else j++;
  }
  return [marksA, marksB];
}

// Words that differ, one after the other, in one mark.
function marked(words) {
  const runs = [];
  for (const [word, differs] of words) {
    const last = runs.at(-1);
    if (last?.differs === differs) last.words.push(word);
    else runs.push({ differs, words: [word] });
  }
  return runs.flatMap(({ differs, words: run }) => [
    differs ? make("mark", {}, run.join(" ")) : run.join(" "),
    " ",
  ]);
}

function sentence(number, gap, texts, [first, second]) {
  const [a, b] = differing(first.text, second.text);
  const list = make("dl");
  const put = (term, kind, ...words) =>
    list.append(make("dt", {}, term), make("dd", { class: kind }, ...words));
  if (texts.source) put("source", "given", texts.source);
  put("reference", "given", texts.reference);
  put(isolated(short(first.name)), "first", ...marked(a));
  put(isolated(short(second.name)), "second", ...marked(b));
  const ahead = isolated(short(gap > 0 ? first.name : second.name));
  const head = make("b", {}, `Sentence ${number + 1}: `, ahead, ` ${Math.abs(gap).toFixed(1)} ahead`);
  return make("li", {}, head, list);
}

// What diet-mt compare has found of two systems; nothing where it was not called.
function testOf(systems, pair) {
  const [early, late] = pair.map((system) => systems.indexOf(system)).sort((x, y) => x - y);
  return systems[late].tests[early];
}

function compared(data, [first, second], verdict) {
  const rowsOf = (system) =>
    (system.rows ??= system.results.map(({ counts }) => statistics(counts, data.references)));
  const [a, b] = [rowsOf(first), rowsOf(second)];
  const all = data.references.map((_, number) => number);
  const difference = mean(scores(a, all)) - mean(scores(b, all));
  const test = testOf(data.systems, [first, second]);
  verdict.replaceChildren(make("b", {}, `${signed(difference)} BLEU`));
  verdict.append(" for ", isolated(first.name), " over ", isolated(second.name));
  if (test) verdict.append(` ± ${test.half.toFixed(2)}, p ${test.p.replace(/^(?!≤)/, "= ")}`);
  verdict.append(".");
  const how = test
    ? "±: half of the 95 % interval; as p by diet-mt compare, over sentences and seeds. p is of this pair alone, not corrected for their number."
    : "An interval and p are shown after diet-mt compare.";
  const out = [make("p", { class: "notes" }, how)];
  if (data.parts.length > 1) {
    const rows = data.parts.map(({ name, members }) => ({ name, ...paired(a, b, members) }));
    for (const row of rows) row.name += " words";
    const how = `. Intervals of 95 % over the sentences alone: ${RESAMPLES} resamples.`;
    const note = make("p", { class: "notes" }, isolated(first.name), " above ", isolated(second.name), how);
    out.push(make("h4", {}, "BLEU by the length of the source"), note, byLength(rows));
  }
  const { numbers, sources, references } = data.shown;
  const gaps = numbers.map((number, place) => {
    const [x, y] = [a[0], b[0]].map((rows) => bleu(sums(rows, [number]), true));
    return { number, place, gap: x - y };
  });
  const most = gaps.filter(({ gap }) => gap).sort((x, y) => Math.abs(y.gap) - Math.abs(x.gap));
  const items = most.slice(0, SENTENCES).map(({ number, place, gap }) => {
    const texts = { source: sources[place], reference: references[place] };
    const said = [first, second].map(({ name, results }) => ({ name, text: results[0].texts[place] }));
    return sentence(number, gap, texts, said);
  });
  if (items.length) {
    const seed = a.length + b.length > 2 ? ", first seeds" : "";
    const note = `Those on which these two differ most, by sentence BLEU${seed}, of the ${numbers.length} that the page has: those on which some two systems here differ most.`;
    out.push(make("h4", {}, "Sentences side by side"), make("p", { class: "notes" }, note));
    out.push(make("ol", { class: "sentences" }, ...items.splice(0, OPEN)));
    if (items.length) {
      const summary = make("summary", {}, `${items.length} more sentences`);
      out.push(make("details", {}, summary, make("ol", { class: "sentences" }, ...items)));
    }
  }
  return out;
}

// At the ends of curves the names of the chosen two stand alone where others would be beneath them.
function uncover(picture) {
  const labels = [...picture.querySelectorAll(".curve .label")].map((label) => ({
    label,
    place: label.parentElement,
    chosen: label.closest(".chosen") !== null,
  }));
  const at = ({ place }) => Number(place.getAttribute("y"));
  const move = ({ place }, y) => {
    place.setAttribute("y", y);
    place.previousElementSibling.querySelector(".lead").setAttribute("y2", y);
  };
  for (const each of labels) {
    each.label.classList.remove("beneath");
    move(each, (each.place.dataset.y ??= at(each)));
  }
  const [upper, lower] = labels.filter(({ chosen }) => chosen).sort((a, b) => at(a) - at(b));
  if (lower && at(lower) - at(upper) < LINE) move(lower, at(upper) + LINE);
  const taken = [upper, lower].filter(Boolean).map(at);
  for (const each of labels) {
    const covered = taken.some((y) => Math.abs(y - at(each)) < LINE);
    if (!each.chosen && covered) each.label.classList.add("beneath");
  }
}

function makeTwo(place) {
  const data = JSON.parse(place.querySelector("script").textContent);
  const board = place.closest(".board");
  const options = () => data.systems.map(({ name }, number) => new Option(name, number));
  const selects = ["first", "second"].map((name, which) => {
    const select = make("select", { name, "aria-label": `${name} system` }, ...options());
    select.value = data.first[which];
    return select;
  });
  const verdict = make("p", { role: "status" }); // one element: what changes in it is read aloud
  const result = make("div");
  const show = () => {
    const chosen = selects.map((select) => data.systems[select.value]);
    const same = chosen[0] === chosen[1];
    if (same) verdict.textContent = "Choose two different systems.";
    result.replaceChildren(...(same ? [] : compared(data, chosen, verdict)));
    const names = chosen.map(({ name }) => name);
    for (const mark of board.querySelectorAll("[data-system]")) {
      mark.classList.toggle("chosen", names.includes(mark.dataset.system));
    }
    for (const picture of board.querySelectorAll(".picture")) uncover(picture);
  };
  const form = make("form", {}, selects[0], "against", selects[1]);
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  place.append(form, verdict, result);
  place.hidden = false;
  return show;
}

// The keyboard reaches the choice at once; nothing is worked out before it comes into sight.
const waiting = new Map();
const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) {
      seen.unobserve(target);
      waiting.get(target)();
    }
  }
}, { rootMargin: "300px" });
for (const place of document.querySelectorAll(".two")) {
  waiting.set(place, makeTwo(place));
  seen.observe(place);
}
