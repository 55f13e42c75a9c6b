// BLEU from counts, as SacreBLEU computes it, and its paired bootstrap.
const RESAMPLES = 1000;
const SEED = 12345;
const ORDERS = 4;
const WIDTH = 2 * ORDERS + 1; // numbers of a sentence: matches, n-grams, tokens of the reference

// Numbers from 0 to 1, always the same (mulberry32).
function randomNumbers(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

// counts: of each sentence its tokens and the matches of each order.
function statistics(counts, references) {
  const rows = new Int32Array(references.length * WIDTH);
  references.forEach((reference, sentence) => {
    const from = sentence * (ORDERS + 1);
    const row = rows.subarray(sentence * WIDTH, (sentence + 1) * WIDTH);
    for (let order = 0; order < ORDERS; order++) {
      row[order] = counts[from + 1 + order];
      row[ORDERS + order] = Math.max(counts[from] - order, 0);
    }
    row[2 * ORDERS] = reference;
  });
  return rows;
}

function sums(rows, members) {
  const total = new Float64Array(WIDTH);
  for (const member of members) {
    for (let place = 0; place < WIDTH; place++) total[place] += rows[member * WIDTH + place];
  }
  return total;
}

// Exponential smoothing; effective: of the orders alone that there are n-grams of, for a sentence.
function bleu(total, effective = false) {
  if (!(total[0] || total[1] || total[2] || total[3])) return 0;
  let [logarithms, smoothing, orders] = [0, 1, 0];
  for (let order = 0; order < ORDERS && total[ORDERS + order] > 0; order++, orders++) {
    const matches = total[order] || 1 / (smoothing *= 2);
    logarithms += Math.log((100 * matches) / total[ORDERS + order]);
  }
  if (orders < ORDERS && !effective) return 0;
  const [tokens, reference] = [total[ORDERS], total[2 * ORDERS]];
  const brevity = tokens < reference ? Math.exp(1 - reference / tokens) : 1;
  return brevity * Math.exp(logarithms / orders);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const scores = (seeds, members) => seeds.map((rows) => bleu(sums(rows, members)));

// Of two systems, each with the rows of its seeds, over these sentences: the difference of their
// means and its 95 % interval, over resamples of the sentences, the same for both.
function paired(first, second, members) {
  const gap = (some) => mean(scores(first, some)) - mean(scores(second, some));
  const random = randomNumbers(SEED);
  const drawn = new Int32Array(members.length);
  const found = Float64Array.from({ length: RESAMPLES }, () => {
    for (let n = 0; n < drawn.length; n++) drawn[n] = members[Math.floor(random() * members.length)];
    return gap(drawn);
  });
  found.sort();
  const at = (share) => found[Math.round(share * (RESAMPLES - 1))];
  return { difference: gap(members), low: at(0.025), high: at(0.975) };
}
