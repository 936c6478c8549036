// Arithmetic of curves: reading a run's series, smoothing, what seeds have in common, intervals by bootstrap.

const RESAMPLES = 400;
const kept = new Map(); // parsed series

/** A series as it was written: numbers between spaces, nothing for none, "=1.5 200" for 200 times the same. */
function parse(text) {
  if (text === undefined || text === null) return null;
  if (text.startsWith("=")) {
    const [value, count] = text.slice(1).split(" ");
    return new Float64Array(Number(count)).fill(Number(value));
  }
  return Float64Array.from(text.split(" "), (word) => (word === "" ? NaN : Number(word)));
}

function memo(key, make) {
  if (!kept.has(key)) kept.set(key, make());
  return kept.get(key);
}

const series = (i, metric) => memo(`y ${i} ${metric}`, () => parse(D.runs[i].y[metric]));

/** Steps, iterations or seconds of a run's points. */
function positions(i, over) {
  const run = D.runs[i];
  return over === "time" ? memo(`s ${i}`, () => parse(run.seconds)) : memo(`g ${run.grid} ${over}`, () => parse(D.grids[run.grid][over]));
}

/** Mean of y within `width` around each x, which is sorted. */
function runningMean(x, y, width) {
  const out = new Float64Array(y.length);
  let low = 0, high = 0, sum = 0, some = 0; // some: how many are not 0, so that zeros stay 0 without a rest
  for (let k = 0; k < x.length; k++) {
    for (; high < x.length && x[high] <= x[k] + width / 2; high++) { sum += y[high]; some += y[high] !== 0; }
    for (; x[low] < x[k] - width / 2; low++) { sum -= y[low]; some -= y[low] !== 0; }
    if (!some) sum = 0;
    out[k] = sum / (high - low);
  }
  return out;
}

/** A run's metric as a line {x, y}, without the points that have no value. Smoothed twice over `share` % of its steps. */
function line(i, metric, over = S.over, share = Number(S.smooth)) {
  return memo(`l ${i} ${metric} ${over} ${share}`, () => {
    const all = series(i, metric);
    if (!all) return { x: [], y: [] };
    const at = positions(i, over), steps = positions(i, "steps");
    const have = [...all.keys()].filter((k) => Number.isFinite(all[k]) && Number.isFinite(at[k]));
    const pick = (from) => Float64Array.from(have, (k) => from[k]);
    let y = pick(all);
    if (share > 0) {
      const width = Math.max(share / 100 * D.runs[i].steps, 4 * steps[0]), where = pick(steps);
      y = runningMean(where, runningMean(where, y, width), width);
    }
    return { x: pick(at), y };
  });
}

/** The value of a line at x, between its points; NaN outside of them. */
function valueAt({ x, y }, at) {
  if (!x.length || at < x[0] || at > x[x.length - 1]) return NaN;
  let low = 0, high = x.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= at) low = middle; else high = middle;
  }
  if (high === low || x[high] === x[low]) return y[low];
  const w = (at - x[low]) / (x[high] - x[low]);
  return w === 0 ? y[low] : w === 1 ? y[high] : (1 - w) * y[low] + w * y[high];
}

const ascending = (values) => Float64Array.from(values).sort();

function quantile(sorted, q) {
  const at = q * (sorted.length - 1), low = Math.floor(at), high = Math.ceil(at);
  return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const CENTRES = {
  mean,
  median: (values) => quantile(ascending(values), 0.5),
  iqm: (values) => { // the mean of what is left without the lowest and the highest quarter
    const cut = Math.floor(values.length / 4), sorted = ascending(values);
    return mean(sorted.slice(cut, sorted.length - cut));
  },
};
const CENTRE_NAMES = { mean: "mean", median: "median", iqm: "interquartile mean" };

/** Random numbers that are the same on every page: xorshift, 32 bits. */
function generator(seed) {
  let state = (seed * 2654435761 + 1013904223) >>> 0 || 1;
  const next = () => {
    state ^= state << 13; state >>>= 0; state ^= state >>> 17; state ^= state << 5; state >>>= 0;
    return state / 4294967296;
  };
  for (let k = 0; k < 20; k++) next();
  return next;
}

/** RESAMPLES lists of n indices below n. */
const resamples = (n) => memo(`r ${n}`, () => {
  const next = generator(n);
  return Array.from({ length: RESAMPLES }, () => Int32Array.from({ length: n }, () => Math.floor(next() * n)));
});

/** Low and high end of the band around the centre of some seeds' values; null where there is one seed alone. */
function interval(values, centre, band) {
  const n = values.length;
  if (n < 2 || band === "none") return null;
  if (band === "range") return [Math.min(...values), Math.max(...values)];
  if (band === "error") {
    const m = mean(values);
    const error = Math.sqrt(values.reduce((a, v) => a + (v - m) ** 2, 0) / (n - 1) / n), c = CENTRES[centre](values);
    return [c - error, c + error];
  }
  const draws = new Float64Array(RESAMPLES), table = resamples(n);
  for (let r = 0; r < RESAMPLES; r++) {
    const at = table[r];
    if (centre === "mean") {
      let sum = 0;
      for (let k = 0; k < n; k++) sum += values[at[k]];
      draws[r] = sum / n;
    } else draws[r] = CENTRES[centre](Array.from(at, (k) => values[k]));
  }
  draws.sort();
  return [quantile(draws, 0.025), quantile(draws, 0.975)];
}

/** Lines of several seeds as one: x, centre, low and high, where at least half of the seeds have come. */
function together(lines, { log = false, centre = S.centre, band = S.band, points = 160 } = {}) {
  const some = lines.filter((l) => l.x.length);
  const out = { x: [], y: [], low: [], high: [] };
  if (!some.length) return out;
  const starts = some.map((l) => l.x[0]), ends = some.map((l) => l.x[l.x.length - 1]);
  let from = Math.min(...starts);
  const to = Math.max(...ends);
  if (log && from <= 0) from = Math.min(...some.map((l) => l.x.find((x) => x > 0) ?? to));
  const same = some.every((l) => l.x.length === some[0].x.length && l.x.every((x, k) => x === some[0].x[k]));
  const grid = same && some[0].x.length <= 2 * points ? some[0].x
    : Array.from({ length: points }, (_, k) => {
      const w = k / (points - 1);
      return k === points - 1 ? to : log ? from * (to / from) ** w : from + w * (to - from);
    });
  for (const x of grid) {
    const values = some.map((l) => valueAt(l, x)).filter(Number.isFinite);
    if (!values.length || 2 * values.length < some.length) continue;
    const ends2 = interval(values, centre, band);
    out.x.push(x);
    out.y.push(CENTRES[centre](values));
    out.low.push(ends2 ? ends2[0] : NaN);
    out.high.push(ends2 ? ends2[1] : NaN);
  }
  return out;
}
