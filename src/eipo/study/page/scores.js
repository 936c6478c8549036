// Scores of seeds: a table and dots for each world, and the probability that one method improves on another.

const SCORES = { // docs/report.md says how each is made
  paper: "median of the last 100 training episodes",
  task: "the same, of the task policy alone where it acts",
  late: "mean return in the last tenth of the run",
};
const PAIRS = { half: "counts half", whole: "counts whole" };

const scoreOf = (i) => D.runs[i].scores[S.score] ?? NaN;
const scoresOf = (env, v) => pickedRuns(env, v).map(scoreOf).filter(Number.isFinite);

/** {world: scores of the picked seeds} of a variant. */
function allScores(v) {
  return new Map(pickedEnvs().map((env) => [env, scoresOf(env, v)]).filter(([, scores]) => scores.length));
}

const withInterval = (mid, ends) => (ends ? `${number(mid)} [${number(ends[0])}, ${number(ends[1])}]` : number(mid));

function drawScores(host) {
  const envs = pickedEnvs().filter((e) => pickedVariants(e).some((v) => scoresOf(e, v).length)), variants = pickedVariants();
  const open = RUNS.filter((i) => picked(i) && !D.runs[i].finished && Number.isFinite(scoreOf(i))).length;
  const late = open ? `${plural(open, "run")} not finished: scored as far as it has come.` : "";
  $("scores-about").textContent = `Score of a seed: ${SCORES[S.score]}. Dot: a seed; bar: ${CENTRE_NAMES[S.centre]} over seeds ` +
    "with its 95 % bootstrap interval. Strong in the table: the highest of a world." + (late ? ` ${late}` : "");
  if (!envs.length) { host.append(h("p", { class: "quiet" }, "No picked run has such a score.")); return; }
  host.append(scoreTable(envs, variants));
  const cell = grid(host, envs.length);
  for (const env of envs) {
    const rows = pickedVariants(env).map((v) => {
      const runs = pickedRuns(env, v).filter((i) => Number.isFinite(scoreOf(i))), scores = runs.map(scoreOf);
      if (!scores.length) return null;
      const mid = CENTRES[S.centre](scores), [low, high] = interval(scores, S.centre, "interval") || [NaN, NaN];
      const values = runs.map((i) => ({ value: scoreOf(i), text: `${D.runs[i].name}: ${number(scoreOf(i))}` }));
      return { variant: v, label: D.variants[v].label, values, mid, low, high, text: number(mid) };
    }).filter(Boolean);
    dotChart(cell(), { title: D.envs[env].id, xTitle: "score", rows });
  }
}

/** A row for each world, or for each method where there are more of them than worlds. */
function scoreTable(envs, variants) {
  const middle = (env, v) => { const x = scoresOf(env, v); return x.length ? CENTRES[S.centre](x) : -Infinity; };
  const compared = variants.length > 1;
  const best = new Map(envs.map((env) => [env, Math.max(...variants.map((v) => middle(env, v)))]));
  const td = (env, v) => {
    const scores = scoresOf(env, v), mid = middle(env, v);
    if (!scores.length) return h("td", {}, "–");
    const text = withInterval(mid, interval(scores, S.centre, "interval"));
    return h("td", { class: compared && mid === best.get(env) ? "best-cell" : null, title: plural(scores.length, "seed") }, text);
  };
  const name = (env) => D.envs[env].id, turned = variants.length > envs.length;
  const [columns, rows] = turned ? [envs.map(name), variants] : [variants.map((v) => named(v)), envs];
  const head = h("tr", {}, h("th", { scope: "col" }, turned ? "method" : "world"), columns.map((c) => h("th", { scope: "col" }, c)));
  const body = rows.map((r) => h("tr", {}, h("th", { scope: "row" }, turned ? named(r) : name(r)),
    turned ? envs.map((env) => td(env, r)) : variants.map((v) => td(r, v))));
  return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Table of scores" },
    h("table", { class: "scores" }, h("thead", {}, head), h("tbody", {}, body)));
}

/** P(X > Y) on one world: over all pairs of a seed of X and one of Y, a tie counting half or whole. */
function winsOf(xs, ys, tie) {
  return xs.map((x) => Float64Array.from(ys, (y) => (x > y ? 1 : x === y ? tie : 0)));
}

/** The mean over the worlds that both have; its interval redraws the seeds of each world, of X and of Y by themselves. */
function improvement(x, y, tie, draws) {
  const tables = [...x.keys()].filter((env) => y.has(env)).map((env) => winsOf(x.get(env), y.get(env), tie));
  if (!tables.length) return null;
  const average = (pick) => mean(tables.map(pick)), value = average((t) => mean(t.map((row) => mean([...row]))));
  if (tables.every((t) => t.length < 2 && t[0].length < 2)) return { value, low: NaN, high: NaN, worlds: tables.length };
  const next = generator(7), found = new Float64Array(draws), some = (n) => Array.from({ length: n }, () => Math.floor(next() * n));
  for (let r = 0; r < draws; r++) {
    found[r] = average((t) => {
      const columns = some(t[0].length), rows = some(t.length);
      let sum = 0;
      for (const a of rows) for (const b of columns) sum += t[a][b];
      return sum / rows.length / columns.length;
    });
  }
  found.sort();
  return { value, low: quantile(found, 0.025), high: quantile(found, 0.975), worlds: tables.length };
}

function drawImprovement(host) {
  const variants = pickedVariants().filter((v) => allScores(v).size), tie = S.ties === "half" ? 0.5 : 1;
  $("improvement").hidden = D.variants.length < 2;
  if (variants.length < 2) { host.append(h("p", { class: "quiet" }, "Pick two methods at least.")); return; }
  const scores = new Map(variants.map((v) => [v, allScores(v)])), draws = variants.length <= 10 ? 1000 : 200;
  const sign = S.ties === "half" ? ">" : "≥", pairs = new Map();
  const pairOf = (a, b) => {
    const key = ["p", pickedRuns(undefined, a), pickedRuns(undefined, b), S.score, tie, draws].join(" ");
    return memo(key, () => improvement(scores.get(a), scores.get(b), tie, draws));
  };
  for (const a of variants) {
    for (const b of variants) if (a !== b) pairs.set(`${a} ${b}`, pairOf(a, b));
  }
  const select = $("choose-against"), mine = variants.includes(Number(S.against)) && S.against !== "" ? Number(S.against) : variants[0];
  select.replaceChildren(...variants.map((v) => h("option", { value: v }, D.variants[v].label)));
  select.value = mine;
  const rows = variants.filter((v) => v !== mine && pairs.get(`${mine} ${v}`)).map((v) => {
    const p = pairs.get(`${mine} ${v}`);
    return { variant: v, label: `${sign} ${D.variants[v].label}`, values: [], mid: p.value, low: p.low, high: p.high,
      text: `${p.value.toFixed(2)}${p.worlds < scores.get(mine).size ? ` (${plural(p.worlds, "world")})` : ""}` };
  });
  if (rows.length) {
    const narrow = h("div", { class: "narrow" });
    host.append(narrow);
    dotChart(narrow, { title: `P(${D.variants[mine].label} ${sign} ...)`, xTitle: "probability", rows, limits: [0, 1], mark: 0.5,
      format: (t) => t.toFixed(1),
      note: `Mean over worlds; 95 % interval by a bootstrap stratified over worlds, ${draws} resamples. Where all seeds of one ` +
        "are above all of the other it has nothing to vary, and is a point." });
  }
  host.append(pairTable(variants, pairs, sign));
}

function pairTable(variants, pairs, sign) {
  const td = (a, b) => {
    const p = pairs.get(`${a} ${b}`);
    if (!p) return h("td", { class: "quiet" }, "–");
    const ends = Number.isFinite(p.low) ? `[${p.low.toFixed(2)}, ${p.high.toFixed(2)}]` : "";
    return h("td", { class: p.low > 0.5 ? "best-cell" : null }, p.value.toFixed(2), " ", h("span", { class: "quiet" }, ends));
  };
  const head = h("tr", {}, h("th", { scope: "col" }, `row ${sign} column`), variants.map((v) => h("th", { scope: "col" }, named(v))));
  return h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Table of probabilities" },
    h("table", { class: "pairs" }, h("thead", {}, head),
      h("tbody", {}, variants.map((a) => h("tr", {}, h("th", { scope: "row" }, named(a)), variants.map((b) => td(a, b)))))),
    h("p", { class: "quiet" }, "Strong: the interval lies above one half."));
}
