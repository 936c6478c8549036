// Learning curves, alpha and stages, speed: one figure for each world.

/** The series of one world: for each variant its seeds and what they have in common. */
function seriesOf(env, metric, { smooth = Number(S.smooth), seeds = S.seeds === "on" } = {}) {
  const out = [];
  for (const v of pickedVariants(env)) {
    const runs = pickedRuns(env, v), lines = runs.map((i) => line(i, metric, S.over, smooth)).filter((l) => l.x.length);
    if (!lines.length) continue;
    const key = ["b", runs, metric, S.over, S.x, S.centre, S.band, smooth].join(" ");
    const band = memo(key, () => together(lines, { log: S.x === "log" }));
    const { label, method, dash } = D.variants[v];
    const thin = seeds && lines.length > 1 ? lines : [];
    out.push({ variant: v, label, dash: DASHES[dash % DASHES.length], thick: method === "eipo", band, thin });
  }
  return out;
}

/** Which line is which: every colour and dash with its name. */
function legend(host, variants) {
  if (variants.length < 2) return;
  host.append(h("ul", { class: "legend", "aria-label": "Lines" }, variants.map((v) => {
    const { label, method, dash } = D.variants[v], dashes = DASHES[dash % DASHES.length] || null;
    const kind = `line v${v}${method === "eipo" ? " thick" : ""}`;
    const key = s("line", { class: kind, x1: 1, x2: 27, y1: 5, y2: 5, "stroke-dasharray": dashes });
    return h("li", {}, s("svg", { class: "chart", width: 28, height: 10, "aria-hidden": "true" }, key), label);
  })));
}

/** How far the axis goes: as far as the runs were asked to. */
const asked = (env) => (S.over === "steps" ? [Math.max(...pickedRuns(env).map((i) => D.runs[i].steps))] : []);

function grid(host, count, kind = "") {
  const node = h("div", { class: `grid ${kind} ${count > 1 ? "" : "one"}` });
  host.append(node);
  return () => { const cell = h("div", { class: "cell" }); node.append(cell); return cell; };
}

function curveNote(env, series) {
  const seeds = series.map((g) => pickedRuns(env, g.variant).length), words = [];
  if (!series.length) return "No picked run has this metric here.";
  const [few, many] = [Math.min(...seeds), Math.max(...seeds)];
  words.push(few === many ? plural(few, "seed") + (series.length > 1 ? " each" : "") : `${few} to ${many} seeds`);
  const late = pickedRuns(env).filter((i) => !D.runs[i].finished).length;
  if (late) words.push(`${plural(late, "run")} not finished: where one ends, the line goes on without it`);
  if (S.y === "log") {
    const dropped = series.some((g) => g.band.y.some((y) => y <= 0));
    if (dropped) words.push("values that are not above 0 cannot be shown on a logarithmic axis");
  }
  const bins = Math.max(0, ...RUNS.filter((i) => picked(i) && D.runs[i].env === env).map((i) => D.runs[i].per_point));
  if (bins > 1) words.push(`a point is the mean of up to ${bins} iterations`);
  return words.join("; ") + ".";
}

function drawCurves(host) {
  legend(host, pickedVariants());
  const envs = pickedEnvs(), cell = grid(host, envs.length), m = metricOf(S.metric);
  if (!envs.length) host.append(h("p", { class: "quiet" }, "No run is picked."));
  for (const env of envs) {
    const series = seriesOf(env, S.metric), one = envs.length === 1;
    lineChart(cell(), {
      title: D.envs[env].id, yTitle: m.title, series, over: S.over, xKind: S.x, yKind: S.y,
      upto: asked(env), height: one ? 400 : 270, best: S.metric.startsWith("return") ? D.envs[env].best : null,
      note: curveNote(env, series),
    });
  }
  $("curves-title").textContent = m.title;
  $("curves-about").textContent = [m.unit ? `Unit: ${m.unit}.` : "", curveWords()].filter(Boolean).join(" ");
}

function curveWords() {
  const bands = {
    interval: `band: 95 % bootstrap interval of the ${CENTRE_NAMES[S.centre]} (${RESAMPLES} resamples of the seeds)`,
    error: "band: standard error over the seeds", range: "band: lowest to highest seed", none: "no band",
  };
  const smooth = S.smooth === "0" ? "not smoothed" : `smoothed over ${S.smooth} % of a run, 5 iterations at least`;
  return `Line: ${CENTRE_NAMES[S.centre]} over seeds; ${bands[S.band]}; ${smooth}.`;
}

/** Alpha as it was, the gap that moved it, and when which stage was. */
function drawAlpha(host) {
  const envs = pickedEnvs().filter((e) => pickedRuns(e).some((i) => D.runs[i].y.alpha));
  $("alpha").hidden = !envs.length;
  if (!envs.length) return;
  const have = (env, metric) => pickedRuns(env).some((i) => D.runs[i].y[metric]);
  legend(host, pickedVariants().filter((v) => pickedRuns(undefined, v).some((i) => D.runs[i].y.alpha)));
  for (const env of envs) {
    const cell = grid(host, 3, "three"), world = D.envs[env].id;
    const more = { over: S.over, xKind: S.x, yKind: "linear", height: 230, ends: false, floor: false, upto: asked(env) };
    const alpha = seriesOf(env, "alpha", { smooth: 0 });
    lineChart(cell(), { ...more, title: `${world}: alpha`, yTitle: "alpha", series: alpha, note: "Not smoothed." });
    if (have(env, "gap")) {
      const note = "What the mixed policy earns more than the task policy, as estimated; it moves alpha.";
      lineChart(cell(), { ...more, title: `${world}: gap`, yTitle: "gap", series: seriesOf(env, "gap"), note });
    }
    if (pickedRuns(env).some((i) => D.runs[i].stage)) stageStrips(cell(), env);
  }
}

function stageStrips(host, env) {
  const runs = pickedRuns(env).filter((i) => D.runs[i].stage), many = runs.length > 30, row = many ? 9 : 20;
  const width = Math.max(260, Math.floor(host.clientWidth || 600)), height = runs.length * row + 44;
  const names = many ? 0 : Math.min(width * 0.4, 130);
  const lines = runs.map((i) => line(i, "stage", S.over, 0)), [, to] = bounds(lines.map((l) => l.x), "linear");
  const low = S.x === "log" ? bounds(lines.map((l) => l.x), "log")[0] : 0;
  const X = scaleOf(S.x, low, to, names + 4, width - 10), shares = lines.map((l) => mean([...l.y]));
  const words = runs.map((i, k) => `${nameOf(i)} ${percent(shares[k])}`).join(", ");
  const { svg } = frame(host, {
    title: `${D.envs[env].id}: stages`, width, height, label: `Share of iterations in the max stage: ${words}`,
    note: "A row is a run. Filled: max, the task policy acts; empty: min, the mixed policy acts. " +
      "Where a point is several iterations, the height is the share of max.",
  });
  runs.forEach((i, k) => {
    const { x, y } = lines[k], top = 4 + k * row, tall = row - 4, v = D.runs[i].variant;
    let d = "";
    for (let j = 0; j < x.length; j++) {
      const [from, upto, high] = [X(j ? x[j - 1] : low), X(x[j]), top + tall * (1 - y[j])].map((p) => p.toFixed(1));
      if (y[j] > 0) d += `M${from} ${top + tall}V${high}H${upto}V${top + tall}Z`;
    }
    svg.append(s("rect", { class: "track", x: names + 4, y: top, width: Math.max(1, X(x[x.length - 1]) - names - 4), height: tall }),
      s("path", { class: `stage v${v}`, d }));
    if (!many) svg.append(s("text", { class: "tick", x: names - 4, y: top + tall - 3, "text-anchor": "end" }, nameOf(i, 18)));
  });
  xAxis(svg, { over: S.over, xKind: S.x }, { left: names + 4, right: width - 10, bottom: height - 38 }, X, [low, to]);
}

const nameOf = (i, most = 99) => {
  const text = `${D.variants[D.runs[i].variant].label}, seed ${D.runs[i].seed}`;
  return text.length > most ? `${text.slice(0, most - 9)}… ${D.runs[i].seed}` : text;
};

/** Steps a second of each run: the median of its iterations. */
function drawSpeed(host) {
  const envs = pickedEnvs(), cell = grid(host, envs.length);
  for (const env of envs) {
    const rows = pickedVariants(env).map((v) => {
      const values = pickedRuns(env, v).filter((i) => D.runs[i].speed !== null)
        .map((i) => ({ value: D.runs[i].speed, text: `${D.runs[i].name}: ${number(D.runs[i].speed)} steps a second` }));
      const mid = values.length ? CENTRES.median(values.map((x) => x.value)) : NaN;
      return { variant: v, label: D.variants[v].label, values, mid, low: NaN, high: NaN, text: number(mid) };
    });
    dotChart(cell(), { title: D.envs[env].id, xTitle: "steps a second", rows });
  }
}
