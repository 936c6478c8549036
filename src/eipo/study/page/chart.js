// Two kinds of charts as SVG: lines over an axis, and rows of dots. Colours come from classes (.v3: the variant's own).

const DASHES = ["", "6 3", "1.5 3", "8 3 1.5 3", "3 2", "10 4"];

/** Ticks of a linear axis, at 1, 2 or 5 times a power of ten. */
function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((m) => m * power >= rough * 0.999) * power, out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-12) + step * 1e-9; k++) out.push(k * step);
  return out;
}

/** Ticks of a logarithmic axis: powers of ten, every n-th where there are many, and 2 and 5 between where there are few. */
function logTicks(low, high, count) {
  const a = Math.floor(Math.log10(low)), b = Math.ceil(Math.log10(high)), every = Math.max(1, Math.ceil((b - a) / count));
  const factors = b - a <= 2 ? [1, 2, 5] : [1], out = [];
  for (let e = a; e <= b; e += every) for (const f of factors) out.push(f * 10 ** e);
  return out.filter((t) => t >= low * 0.999 && t <= high * 1.001);
}

/** A scale from values to pixels. */
function scaleOf(kind, low, high, from, to) {
  const t = kind === "log" ? Math.log : (v) => v, a = t(low), b = t(high);
  const f = (v) => from + ((t(v) - a) / (b - a || 1)) * (to - from);
  f.back = (p) => { const v = a + ((p - from) / (to - from)) * (b - a); return kind === "log" ? Math.exp(v) : v; };
  return f;
}

function pathOf(xs, ys) {
  let d = "", pen = false;
  for (let k = 0; k < xs.length; k++) {
    const good = Number.isFinite(xs[k]) && Number.isFinite(ys[k]);
    if (good) d += `${pen ? "L" : "M"}${xs[k].toFixed(1)} ${ys[k].toFixed(1)}`;
    pen = good;
  }
  return d;
}

function areaOf(xs, lows, highs) {
  let d = "";
  for (let k = 0, begin = -1; k <= xs.length; k++) {
    const good = k < xs.length && Number.isFinite(lows[k]) && Number.isFinite(highs[k]);
    if (good && begin < 0) begin = k;
    if (!good && begin >= 0) {
      const there = [], back = [];
      for (let j = begin; j < k; j++) {
        there.push(`${xs[j].toFixed(1)} ${highs[j].toFixed(1)}`);
        back.unshift(`${xs[j].toFixed(1)} ${lows[j].toFixed(1)}`);
      }
      d += `M${there.join("L")}L${back.join("L")}Z`;
      begin = -1;
    }
  }
  return d;
}

/** Places near `wanted` (sorted), at least `gap` apart and within [0, top]. */
function apart(wanted, gap, top) {
  const at = [...wanted];
  for (let k = 1; k < at.length; k++) at[k] = Math.max(at[k], at[k - 1] + gap);
  for (let k = at.length - 1; k >= 0; k--) at[k] = Math.min(at[k], top - (at.length - 1 - k) * gap);
  return at;
}

const AXES = {
  steps: { title: "environment steps", unit: () => [1, ""] },
  iteration: { title: "iterations", unit: () => [1, ""] },
  time: { title: "training time", unit: (most) => (most < 180 ? [1, "s"] : most < 10800 ? [60, "min"] : [3600, "h"]) },
};

function bounds(lists, kind) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) {
    for (const v of list) {
      if (!Number.isFinite(v) || (kind === "log" && v <= 0)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  return low <= high ? [low, high] : kind === "log" ? [1, 10] : [0, 1];
}

/** From 0 where nothing is below it, to a little over the highest. */
function withRoom([low, high], kind, floor) {
  if (kind === "log") return low === high ? [low / 2, high * 2] : [low * (low / high) ** 0.04, high * (high / low) ** 0.04];
  if (low >= 0 && floor && high > 0) low = 0;
  const room = 0.05 * (high - low || Math.abs(high) * 0.02 || 1);
  return [low === 0 ? 0 : low - room, high + room];
}

/** The frame that both kinds share: the figure, its heading, the drawing and what stands under it. */
function frame(host, { title, height, label, width, note }) {
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, class: "chart" });
  const box = h("div", { class: "plot" }, svg);
  const head = h("figcaption", {}, h("b", {}, title || ""), saveButtons(svg, title || label));
  const figure = h("figure", { class: "figure" }, head, box, note ? h("p", { class: "quiet" }, note) : null);
  host.append(figure);
  return { svg, box, figure };
}

/** Lines. `series`: [{variant, label, dash, thick, band: {x, y, low, high}, thin: [{x, y}]}]. */
function lineChart(host, o) {
  const width = Math.max(260, Math.floor(host.clientWidth || 600)), ends = o.ends !== false && width > 460 && o.series.length <= 10;
  const names = ends ? Math.min(170, 16 + 6.9 * Math.max(0, ...o.series.map((g) => g.label.length))) : 14;
  const box = { left: 54, right: width - names, top: 10, bottom: o.height - 40 };
  const xs = bounds([...o.series.flatMap((g) => [g.band.x, ...g.thin.map((l) => l.x)]), o.upto || []], o.xKind);
  const values = o.series.flatMap((g) => [g.band.y, g.band.low, g.band.high, ...g.thin.map((l) => l.y)]);
  if (o.best !== undefined && o.best !== null) values.push([o.best]);
  const ys = withRoom(bounds(values, o.yKind), o.yKind, o.floor !== false);
  const from = o.xKind === "log" ? xs[0] : 0, X = scaleOf(o.xKind, from, xs[1] > from ? xs[1] : from + 1, box.left, box.right);
  const Y = scaleOf(o.yKind, ys[0], ys[1], box.bottom, box.top);
  const { svg, box: plot } = frame(host, { ...o, width, label: spoken(o) });
  yAxis(svg, o, box, Y, ys);
  xAxis(svg, o, box, X, [from, xs[1]]);
  if (o.best !== undefined && o.best !== null) {
    svg.append(s("line", { class: "best", x1: box.left, x2: box.right, y1: Y(o.best), y2: Y(o.best) }),
      s("text", { class: "tick", x: box.left + 4, y: Y(o.best) - 4 }, `best possible: ${number(o.best)}`));
  }
  const shown = (y) => (o.yKind === "log" && !(y > 0) ? NaN : Y(y));
  const layers = [s("g"), s("g"), s("g")]; // bands under thin lines under thick ones
  for (const g of [...o.series].reverse()) {
    const at = Array.from(g.band.x, X), of = (list) => Array.from(list, shown);
    const low = g.band.low.map((v) => (o.yKind === "log" ? Math.max(v, ys[0]) : v)); // a band may reach below what log can show
    layers[0].append(s("path", { class: `band v${g.variant}`, d: areaOf(at, of(low), of(g.band.high)) }));
    for (const l of g.thin) layers[1].append(s("path", { class: `thin v${g.variant}`, d: pathOf(Array.from(l.x, X), of(l.y)) }));
    layers[2].append(s("path", {
      class: `line v${g.variant}${g.thick ? " thick" : ""}`, "stroke-dasharray": g.dash || null, d: pathOf(at, of(g.band.y)),
    }));
  }
  svg.append(...layers);
  if (ends) nameEnds(svg, o, box, shown);
  crosshair(svg, plot, o, box, X, Y);
}

/** What the chart says, for those who do not see it. */
function spoken(o) {
  const last = o.series.filter((g) => g.band.y.length).map((g) => `${g.label} ${number(g.band.y[g.band.y.length - 1])}`);
  return `${o.title || o.yTitle}: ${o.yTitle} over ${AXES[o.over].title}. At the end: ${last.join(", ") || "no values"}.`;
}

const ticksOf = (kind, low, high, count) => (kind === "log" ? logTicks(low, high, count) : linearTicks(low, high, Math.max(2, count)));

function xAxis(svg, o, box, X, [low, high]) {
  const [scale, unit] = AXES[o.over].unit(high), ticks = ticksOf(o.xKind, low / scale, high / scale, (box.right - box.left) / 90);
  for (const t of ticks) {
    svg.append(s("text", { class: "tick", x: X(t * scale), y: box.bottom + 16, "text-anchor": "middle" }, short(t)),
      s("line", { class: "axis", x1: X(t * scale), x2: X(t * scale), y1: box.bottom, y2: box.bottom + 4 }));
  }
  svg.append(s("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    s("text", { class: "title", x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle" },
      AXES[o.over].title + (unit ? ` (${unit})` : "")));
}

function yAxis(svg, o, box, Y, [low, high]) {
  for (const t of ticksOf(o.yKind, low, high, (box.bottom - box.top) / 45)) {
    svg.append(s("line", { class: t === 0 ? "zero" : "grid", x1: box.left, x2: box.right, y1: Y(t), y2: Y(t) }),
      s("text", { class: "tick", x: box.left - 7, y: Y(t) + 4, "text-anchor": "end" }, short(t)));
  }
}

function nameEnds(svg, o, box, shown) {
  const ends = o.series.filter((g) => g.band.y.length)
    .map((g) => ({ g, y: shown(g.band.y[g.band.y.length - 1]) })).filter((e) => Number.isFinite(e.y)).sort((a, b) => a.y - b.y);
  const at = apart(ends.map((e) => e.y), 15, box.bottom);
  ends.forEach(({ g }, k) => {
    const most = Math.floor((svg.viewBox.baseVal.width - box.right - 16) / 6.4);
    const text = g.label.length > most ? g.label.slice(0, most - 1) + "…" : g.label;
    svg.append(s("circle", { class: `dot v${g.variant}`, cx: box.right + 7, cy: at[k], r: 3.5 }),
      s("text", { class: "end" + (g.thick ? " strong" : ""), x: box.right + 14, y: at[k] + 4 }, text));
  });
}

/** A line under the pointer with the values there. With the keyboard: left and right, Home and End. */
function crosshair(svg, plot, o, box, X, Y) {
  const rule = s("line", { class: "rule", y1: box.top, y2: box.bottom, visibility: "hidden" });
  const tip = h("div", { class: "tip", role: "status", hidden: true });
  svg.append(rule);
  plot.append(tip);
  plot.tabIndex = 0;
  plot.setAttribute("aria-label", "Values of the chart: move with the arrow keys");
  plot.setAttribute("role", "group");
  let place = box.right;
  const show = (px) => {
    place = Math.min(box.right, Math.max(box.left, px));
    const x = X.back(place), at = (g, key) => valueAt({ x: g.band.x, y: g.band[key] }, x);
    const rows = o.series.map((g) => ({ g, y: at(g, "y"), low: at(g, "low"), high: at(g, "high") }))
      .filter((r) => Number.isFinite(r.y)).sort((a, b) => b.y - a.y);
    rule.setAttribute("x1", place);
    rule.setAttribute("x2", place);
    rule.setAttribute("visibility", "visible");
    tip.replaceChildren(h("b", {}, o.over === "time" ? duration(x) : `${number(x)} ${AXES[o.over].title}`),
      ...rows.slice(0, 14).map((r) => h("div", {}, named(r.g.variant, r.g.label), " ", h("span", { class: "value" }, number(r.y)),
        Number.isFinite(r.low) ? h("span", { class: "quiet" }, ` ${number(r.low)} to ${number(r.high)}`) : null)));
    tip.hidden = false;
    const scale = svg.clientWidth / svg.viewBox.baseVal.width, left = place * scale;
    tip.style.left = `${left + tip.offsetWidth + 18 > plot.clientWidth ? Math.max(0, left - tip.offsetWidth - 12) : left + 12}px`;
  };
  const hide = () => { rule.setAttribute("visibility", "hidden"); tip.hidden = true; };
  plot.addEventListener("pointermove", (e) => {
    const r = svg.getBoundingClientRect();
    show((e.clientX - r.left) * svg.viewBox.baseVal.width / r.width);
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (e) => {
    const step = (box.right - box.left) / 40;
    const to = { ArrowLeft: place - step, ArrowRight: place + step, Home: box.left, End: box.right }[e.key];
    if (e.key === "Escape") hide();
    if (to === undefined) return;
    e.preventDefault();
    show(to);
  });
}
