// What all parts of the page share: the data, the state of its controls, elements, numbers as people write them.
// Text from runs reaches the page through textContent alone, never as markup.
"use strict";

const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

/** An HTML element: h("p", {class: "x", onclick: f}, "text", node, ...). */
function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

// The state: what is chosen. It stands in the address, so that a view can be kept and sent.
const DEFAULTS = {
  metric: D.metrics.some((m) => m.name === "return") ? "return" : D.metrics[0]?.name ?? "return",
  over: "steps", x: "linear", y: "linear", centre: "mean", band: "interval", smooth: "2", seeds: "off",
  part: "all", policy: "all", maps: "mean", against: "", theme: "auto",
  score: D.score, ties: "half",
};
const S = { ...DEFAULTS, variants: new Set(), envs: new Set(), runs: new Set() }; // the sets: what is left out

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(DEFAULTS)) S[key] = given.get(key) ?? DEFAULTS[key];
  if (!D.metrics.some((m) => m.name === S.metric)) S.metric = DEFAULTS.metric;
  for (const key of ["variants", "envs", "runs"]) {
    S[key] = new Set((given.get("no-" + key) || "").split(".").filter(Boolean).map(Number));
  }
}

function writeAddress() {
  const out = new URLSearchParams();
  for (const key of Object.keys(DEFAULTS)) if (S[key] !== DEFAULTS[key]) out.set(key, S[key]);
  for (const key of ["variants", "envs", "runs"]) {
    if (S[key].size) out.set("no-" + key, [...S[key]].sort((a, b) => a - b).join("."));
  }
  history.replaceState(null, "", "#" + out);
}

// What is picked.
const picked = (i) => !S.runs.has(i) && !S.variants.has(D.runs[i].variant) && !S.envs.has(D.runs[i].env);
const indices = (list) => list.map((_, i) => i);
const RUNS = indices(D.runs);
const pickedRuns = (env, variant) =>
  RUNS.filter((i) => picked(i) && (env === undefined || D.runs[i].env === env) &&
    (variant === undefined || D.runs[i].variant === variant));
const pickedEnvs = () => indices(D.envs).filter((e) => pickedRuns(e).length);
const pickedVariants = (env) => indices(D.variants).filter((v) => pickedRuns(env, v).length);
const metricOf = (name) => D.metrics.find((m) => m.name === name) || { name, title: name, unit: "" };

// Numbers as people write them.
function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e12) ? value.toExponential(digits - 1)
    : size >= 10 ** digits ? String(Math.round(value)) : String(Number(value.toPrecision(digits)));
  return minus(size >= 1e4 && size < 1e12 ? Math.round(value).toLocaleString("en-US") : text);
}

function short(value) { // for axes: 2 M, 300 k, 0.05
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e12)) return minus(value.toExponential().replace("e+", "e"));
  for (const [unit, name] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (size >= unit) return minus(Number((value / unit).toPrecision(6)) + name);
  }
  return minus(String(Number(value.toPrecision(10))));
}

const minus = (text) => text.replace("-", "\u2212");
const plural = (n, one, many) => `${n.toLocaleString("en-US")} ${n === 1 ? one : many || one + "s"}`;
const percent = (share) => (Number.isFinite(share) ? `${Math.round(100 * share)} %` : "–");

function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 90) return `${number(seconds, 2)} s`;
  return seconds < 5400 ? `${number(seconds / 60, 2)} min` : `${number(seconds / 3600, 3)} h`;
}

/** A word that carries the colour of its variant beside it, not in it: text keeps its contrast. */
function named(variant, text) {
  return h("span", { class: `name v${variant}` }, h("i", { class: "swatch", "aria-hidden": "true" }),
    text || D.variants[variant].label);
}

/** A group of buttons or a select of which one value is chosen; `change` is called with it. */
function choice(label, key, options, change) {
  const select = h("select", { id: "choose-" + key, onchange: (e) => { S[key] = e.target.value; change(); } });
  const groups = new Map();
  for (const [value, text, group] of options) {
    const option = h("option", { value }, text);
    if (!group) { select.append(option); continue; }
    if (!groups.has(group)) { groups.set(group, h("optgroup", { label: group })); select.append(groups.get(group)); }
    groups.get(group).append(option);
  }
  select.value = S[key];
  return h("label", { class: "choice" }, h("span", {}, label), select);
}
