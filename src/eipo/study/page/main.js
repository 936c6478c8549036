// The controls, and drawing what they ask for.

const SECTIONS = {
  curves: drawCurves, scores: drawScores, improvement: drawImprovement, alpha: drawAlpha, maps: drawMaps, speed: drawSpeed, notes: drawNotes, settings: drawSettings, runs: drawRuns,
};
const AXIS_ONLY = ["curves", "alpha"], SCORES_ONLY = ["scores", "improvement"]; // what the axes' controls change

function redraw(names = Object.keys(SECTIONS)) {
  for (const name of names) {
    const host = $(name + "-body"), height = host.offsetHeight;
    host.style.minHeight = `${height}px`; // so that the page does not jump while it is drawn again
    host.replaceChildren();
    SECTIONS[name](host);
    host.style.minHeight = "";
  }
}

function changed(names) {
  writeAddress();
  markChips();
  redraw(names);
}

const BAR = [
  ["Metric", "metric", D.metrics.map((m) => [m.name, m.name === m.title ? m.name : `${m.title}`, m.group]), ["curves"]],
  ["Over", "over", [["steps", "steps"], ["iteration", "iterations"], ["time", "training time"]], AXIS_ONLY],
  ["x axis", "x", [["linear", "linear"], ["log", "logarithmic"]], AXIS_ONLY],
  ["y axis", "y", [["linear", "linear"], ["log", "logarithmic"]], ["curves"]],
  ["Line", "centre", Object.entries(CENTRE_NAMES), [...AXIS_ONLY, "scores"]],
  ["Band", "band",
    [["interval", "95 % interval"], ["error", "standard error"], ["range", "lowest to highest"], ["none", "none"]], AXIS_ONLY],
  ["Smoothing", "smooth", [["0", "none"], ["2", "2 %"], ["5", "5 %"], ["10", "10 %"]], AXIS_ONLY],
  ["Seeds", "seeds", [["off", "together"], ["on", "each, too"]], AXIS_ONLY],
];

function chips(host, key, labels, classes) {
  labels.forEach((label, k) => {
    host.append(h("button", { type: "button", class: `chip ${classes(k)}`, "data-chip": `${key}-${k}`,
      onclick: (e) => { toggle(key, k, labels.length, e.altKey || e.shiftKey); } },
    h("i", { class: "swatch", "aria-hidden": "true" }), label));
  });
  if (labels.length > 2) {
    const all = () => { S[key].clear(); changed(); };
    host.append(h("button", { type: "button", class: "plain", "data-chip": `${key}-all`, onclick: all }, "all"));
  }
}

/** Show or leave out; with Shift or Alt show this one alone. */
function toggle(key, k, count, alone) {
  if (alone) S[key] = new Set(Array.from({ length: count }, (_, j) => j).filter((j) => j !== k));
  else if (S[key].has(k)) S[key].delete(k);
  else S[key].add(k);
  changed();
}

function markChips() {
  for (const chip of document.querySelectorAll("[data-chip]")) {
    const [key, k] = chip.dataset.chip.split("-");
    if (k !== "all") chip.setAttribute("aria-pressed", String(!S[key].has(Number(k))));
  }
}

function showState() { // the controls say what the state is
  for (const select of document.querySelectorAll("select")) {
    const key = select.id.replace("choose-", "");
    select.value = S[key];
    if (select.value !== S[key] && key !== "against") select.value = S[key] = DEFAULTS[key]; // an address can say anything
  }
  document.documentElement.dataset.theme = S.theme;
  markChips();
}

function buildControls() {
  $("axes-bar").append(...BAR.map(([label, key, options, names]) => choice(label, key, options, () => changed(names))));
  chips($("variant-chips"), "variants", D.variants.map((v) => v.label), (k) => `v${k}`);
  if (D.envs.length > 1) chips($("env-chips"), "envs", D.envs.map((e) => e.id), () => "world");
  else $("env-row").hidden = true;
  const policies = [...new Set(D.runs.flatMap((r) => (r.visits ? r.visits.policies : [])))];
  $("maps-bar").append(
    choice("When", "part", ["all", "0", "1", "2", "each"].map((p) => [p, PARTS[p]]), () => changed(["maps"])),
    choice("Who", "policy", [["all", "all policies"], ...policies.map((p) => [p, POLICIES[p] || p])], () => changed(["maps"])),
    choice("Seeds", "maps", [["mean", "mean over seeds"], ["each", "each seed"]], () => changed(["maps"])));
  const kinds = Object.entries(SCORES).filter(([kind]) => D.runs.some((r) => r.scores[kind] !== null));
  $("scores-bar").append(choice("Score", "score", kinds, () => changed(SCORES_ONLY)));
  $("improvement-bar").append(choice("Method", "against", [], () => changed(["improvement"])),
    choice("A tie", "ties", Object.entries(PAIRS), () => changed(["improvement"])));
  const themes = [["auto", "as the system"], ["light", "light"], ["dark", "dark"]];
  $("theme-bar").append(choice("Colours", "theme", themes, () => { showState(); writeAddress(); }));
  $("filter").addEventListener("input", () => redraw(["runs"]));
  const listed = () => ($("runs-count").dataset.rows || "").split(".").filter(Boolean).map(Number);
  $("runs-all").addEventListener("click", () => { for (const i of listed()) S.runs.delete(i); changed(); });
  $("runs-none").addEventListener("click", () => { for (const i of listed()) S.runs.add(i); changed(); });
  $("reset").addEventListener("click", () => { history.replaceState(null, "", "#"); restore(); });
}

function restore() {
  readAddress();
  showState();
  redraw();
}

const wide = matchMedia("(min-width: 820px)");
const openControls = () => { $("controls").open = wide.matches; };

let width = innerWidth, waiting = 0;
addEventListener("resize", () => {
  if (innerWidth === width) return; // a phone's address bar changes the height alone
  clearTimeout(waiting);
  waiting = setTimeout(() => { width = innerWidth; redraw(); }, 120);
});
addEventListener("hashchange", restore);
// On paper figures are drawn for its width, else their text would shrink with them.
const printing = (on) => {
  document.body.classList.toggle("printing", on);
  redraw();
  for (const d of document.querySelectorAll("details.more")) d.open = on;
};
addEventListener("beforeprint", () => printing(true));
addEventListener("afterprint", () => printing(false));
wide.addEventListener("change", openControls);

readAddress();
drawHead();
buildControls();
openControls();
restore();
document.documentElement.dataset.ready = "yes";
