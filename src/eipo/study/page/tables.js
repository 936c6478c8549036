// What is text: the head, notes, the settings that differ, and the table of runs, in which single runs are picked.

function drawHead() {
  $("title").textContent = D.title;
  document.title = D.title;
  $("tiles").append(...D.tiles.map(([value, label]) => h("div", { class: "tile" }, h("b", {}, value), h("span", {}, label))));
  $("facts").append(...D.facts.map((fact) => h("li", {}, fact)));
}

/** Sentences about single runs, where there are any. */
function drawNotes(host) {
  const runs = RUNS.filter((i) => picked(i) && D.runs[i].notes.length);
  $("notes").hidden = !RUNS.some((i) => D.runs[i].notes.length);
  if (!runs.length) host.append(h("p", { class: "quiet" }, "Nothing about the picked runs."));
  const said = new Map(); // sentence -> runs: what many runs share is said once
  for (const i of runs) for (const note of D.runs[i].notes) said.set(note, [...(said.get(note) || []), i]);
  const items = [...said].sort((a, b) => b[1].length - a[1].length).map(([note, of]) =>
    h("li", {}, h("span", {}, note), h("span", { class: "who" }, ...of.slice(0, 8).map((i) => named(D.runs[i].variant, D.runs[i].name)),
      of.length > 8 ? `and ${of.length - 8} more` : null)));
  const list = (part) => h("ul", { class: "notes" }, part);
  if (items.length) host.append(list(items.slice(0, 12)));
  if (items.length > 12) host.append(h("details", { class: "more" }, h("summary", {}, `${items.length - 12} more`), list(items.slice(12))));
}

const wordOf = (value) => (value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value));

/** Settings that are not the same in all picked groups. Few groups: a column each; many: a row each. */
function drawSettings(host) {
  const groups = [];
  for (const env of pickedEnvs()) for (const v of pickedVariants(env)) groups.push({ env, v, runs: pickedRuns(env, v) });
  const cell = (group, key) => [...new Set(group.runs.map((i) => wordOf(D.settings[D.runs[i].setting][key])))].join(", ");
  const keys = D.keys.filter((key) => new Set(groups.map((g) => cell(g, key))).size > 1 || groups.some((g) => cell(g, key).includes(", ")));
  if (!keys.length) { host.append(h("p", { class: "quiet" }, "The picked runs differ in nothing but their seed.")); return; }
  const several = pickedEnvs().length > 1;
  const title = (g) => [named(g.v), several ? h("span", { class: "quiet" }, ` ${D.envs[g.env].id}`) : null];
  const rare = (g, key) => { // other than what most have
    const count = new Map();
    for (const o of groups) count.set(cell(o, key), (count.get(cell(o, key)) || 0) + 1);
    return count.get(cell(g, key)) <= groups.length / 3;
  };
  const td = (g, key) => h("td", { class: rare(g, key) ? "rare" : null }, cell(g, key));
  const table = groups.length <= 7
    ? h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "setting"), groups.map((g) => h("th", { scope: "col" }, title(g))))),
      h("tbody", {}, keys.map((key) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, key)), groups.map((g) => td(g, key))))))
    : h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "runs"), keys.map((key) => h("th", { scope: "col" }, h("code", {}, key))))),
      h("tbody", {}, groups.map((g) => h("tr", {}, h("th", { scope: "row" }, title(g)), keys.map((key) => td(g, key))))));
  host.append(h("div", { class: "wide", tabindex: "0", role: "group", "aria-label": "Table of settings" }, table),
    h("p", { class: "quiet" }, "Stronger: what at most a third of the groups have."));
}

const COLUMNS = [
  ["run", (r) => r.name], ["world", (r) => D.envs[r.env].id], ["method", (r) => D.variants[r.variant].label], ["seed", (r) => r.seed],
  ["steps", (r) => r.done], ["time", (r) => r.time], ["steps/s", (r) => r.speed], ["score", (r) => r.scores[S.score]],
];
let order = { column: -1, down: false };

/** The table of runs: a box picks a run, a heading sorts. */
function drawRuns(host) {
  const words = ($("filter").value || "").toLowerCase().split(/\s+/).filter(Boolean);
  const text = (r) => [r.name, D.envs[r.env].id, D.variants[r.variant].label, `seed ${r.seed}`, r.finished ? "finished" : "unfinished"]
    .join(" ").toLowerCase();
  const rows = RUNS.filter((i) => words.every((w) => text(D.runs[i]).includes(w)));
  if (order.column >= 0) {
    const value = COLUMNS[order.column][1], sign = order.down ? -1 : 1;
    rows.sort((a, b) => {
      const x = value(D.runs[a]), y = value(D.runs[b]);
      return sign * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : (x ?? -Infinity) - (y ?? -Infinity)) || a - b;
    });
  }
  const head = COLUMNS.map(([name], k) => {
    const on = order.column === k, sort = on ? (order.down ? "descending" : "ascending") : null;
    const onclick = () => {
      order = { column: k, down: on && !order.down };
      redraw(["runs"]);
      $(`sort-${k}`).focus();
    };
    return h("th", { scope: "col", "aria-sort": sort },
      h("button", { type: "button", id: `sort-${k}`, onclick }, name, on ? (order.down ? " ↓" : " ↑") : ""));
  });
  host.append(h("div", { class: "wide tall", tabindex: "0", role: "group", "aria-label": "Table of runs" },
    h("table", { class: "runs" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "show"), head)), h("tbody", {}, rows.map(runRow)))));
  const listed = rows.length < RUNS.length ? `; ${rows.length} in this list` : "";
  $("runs-count").textContent = `${RUNS.filter(picked).length} of ${RUNS.length} shown${listed}`;
  $("runs-count").dataset.rows = rows.join(".");
}

function runRow(i) {
  const r = D.runs[i], share = r.steps ? r.done / r.steps : 1, out = S.variants.has(r.variant) || S.envs.has(r.env);
  const box = h("input", { type: "checkbox", "data-run": i, "aria-label": `Show ${r.name}`, onchange: (e) => {
    if (e.target.checked) S.runs.delete(i); else S.runs.add(i);
    changed();
    document.querySelector(`[data-run="${i}"]`).focus();
  } });
  box.checked = !S.runs.has(i);
  const cells = [
    h("span", { title: r.path }, r.name), D.envs[r.env].id, named(r.variant), r.seed,
    h("span", {}, short(r.done), share < 0.999 && !r.finished ? h("span", { class: "late" }, ` of ${short(r.steps)}`) : null),
    duration(r.time), number(r.speed ?? NaN), number(scoreOf(i)),
  ];
  return h("tr", { class: out ? "out" : null }, h("td", {}, box),
    cells.map((c, k) => h(k === 0 ? "th" : "td", { scope: k === 0 ? "row" : null, class: k > 2 ? "n" : null }, c)));
}
