// Where the agents have been: the mean visits of a board's cells.

const PARTS = { all: "whole run", 0: "first tenth", 1: "from a tenth to half", 2: "second half", each: "the three parts" };
const POLICIES = { E: "task policy", EI: "mixed policy", I: "reference policy" };

/** Visits of each cell, over the chosen part and policy; by cell of the board, NaN outside of it. */
function visitsOf(i, when) {
  const { parts, policies } = D.runs[i].visits, n = D.boards[D.runs[i].visits.board].cells.length, out = new Float64Array(n);
  parts.forEach((part, p) => {
    if (when !== "all" && when !== String(p)) return;
    part.forEach((counts, q) => {
      if (S.policy !== "all" && S.policy !== policies[q]) return;
      memo(`v ${i} ${p} ${q}`, () => parse(counts)).forEach((c, k) => { out[k] += c; });
    });
  });
  return out;
}

function drawMaps(host) {
  const runs = RUNS.filter((i) => picked(i) && D.runs[i].visits);
  $("maps").hidden = !RUNS.some((i) => D.runs[i].visits);
  if (!runs.length) { host.append(h("p", { class: "quiet" }, "No picked run has counted its visits.")); return; }
  const panels = [];
  for (const env of pickedEnvs()) {
    for (const v of pickedVariants(env)) {
      const mine = pickedRuns(env, v).filter((i) => D.runs[i].visits), several = pickedEnvs().length > 1;
      const where = several ? ` on ${D.envs[env].id}` : "";
      const sets = S.maps === "each" ? mine.map((i) => [i]) : mine.length ? [mine] : [];
      for (const set of sets) {
        const who = (S.maps === "each" ? nameOf(set[0]) : D.variants[v].label) + where;
        for (const when of S.part === "each" ? ["0", "1", "2"] : [S.part]) {
          panels.push({ v, title: S.part === "each" ? `${who}, ${PARTS[when]}` : who, counts: averageVisits(set, when), runs: set });
        }
      }
    }
  }
  const most = Math.max(10, ...panels.map((p) => p.counts.reduce((a, b) => Math.max(a, b), 0)));
  host.append(heatLegend(most));
  const node = h("div", { class: "maps" });
  host.append(node);
  for (const p of panels) drawMap(node, p, most);
}

function averageVisits(runs, when) {
  const sum = visitsOf(runs[0], when);
  for (const i of runs.slice(1)) visitsOf(i, when).forEach((c, k) => { sum[k] += c; });
  return sum.map((c) => c / runs.length);
}

const heat = (share) => D.heat[Math.max(0, Math.min(D.heat.length - 1, Math.floor(share * D.heat.length)))];

function drawMap(host, { v, title, counts, runs }, most) {
  const board = D.boards[D.runs[runs[0]].visits.board], size = 6;
  const entered = board.cells.filter((cell, k) => cell.kind !== "goal" && counts[k] > 0).length;
  const free = board.cells.filter((cell) => cell.kind !== "goal").length;
  const words = `${runs.length > 1 ? `mean of ${runs.length} seeds; any entered` : "entered"} ${entered} of ${free} cells`;
  const box = `0 0 ${board.columns * size} ${board.rows * size}`;
  const svg = s("svg", { class: "map", viewBox: box, role: "img", "aria-label": `${title}: ${words}` });
  let walls = "", never = "";
  const square = (row, column) => `M${column * size} ${row * size}h${size}v${size}h-${size}z`;
  for (const [row, column] of board.walls) walls += square(row, column);
  const colours = new Map();
  board.cells.forEach(({ row, column }, k) => {
    if (!(counts[k] > 0)) { never += square(row, column); return; }
    const ink = heat(most > 1 ? Math.log(Math.max(1, counts[k])) / Math.log(most) : 0);
    colours.set(ink, (colours.get(ink) || "") + square(row, column));
  });
  svg.append(s("path", { class: "wall", d: walls }), s("path", { class: "never", d: never }));
  for (const [ink, d] of colours) svg.append(s("path", { fill: ink, d }));
  const middle = ({ row, column }) => [(column + 0.5) * size, (row + 0.5) * size];
  for (const cell of board.cells.filter((c) => c.kind === "goal")) {
    const [x, y] = middle(cell);
    const corner = (k) => [x + (k % 2 ? 3 : 7) * Math.sin(k * Math.PI / 5), y - (k % 2 ? 3 : 7) * Math.cos(k * Math.PI / 5)];
    const points = Array.from({ length: 10 }, (_, k) => corner(k).map((p) => p.toFixed(1)).join(",")).join(" ");
    svg.append(s("polygon", { class: "goal", points }, s("title", {}, "goal")));
  }
  if (board.start) {
    const [cx, cy] = middle(board.start);
    svg.append(s("circle", { class: "start", cx, cy, r: 5 }, s("title", {}, "start")));
  }
  const says = h("p", { class: "quiet says" }, words + ".");
  svg.addEventListener("pointermove", (e) => {
    const r = svg.getBoundingClientRect(), column = Math.floor((e.clientX - r.left) / r.width * board.columns);
    const row = Math.floor((e.clientY - r.top) / r.height * board.rows);
    const k = board.cells.findIndex((c) => c.row === row && c.column === column);
    says.textContent = k < 0 ? words + "." : `Row ${row}, column ${column}: ${number(counts[k])} steps.`;
  });
  svg.addEventListener("pointerleave", () => { says.textContent = words + "."; });
  host.append(h("figure", { class: "figure" }, h("figcaption", {}, named(v, title), saveButtons(svg, `visits ${title}`)), svg, says));
}

function heatLegend(most) {
  const marks = logTicks(1, most, 5);
  return h("div", { class: "heat" },
    h("span", {}, "steps in a cell"),
    h("span", { class: "bar", "aria-hidden": "true" }, D.heat.map((c) => { const i = h("i"); i.style.background = c; return i; }),
      marks.map((m) => { const b = h("b", {}, short(m)); b.style.left = `${100 * Math.log(m) / Math.log(most)}%`; return b; })),
    h("span", {}, h("i", { class: "key never" }), "never entered"), h("span", {}, h("i", { class: "key wall" }), "wall"),
    h("span", {}, "★ goal, ○ start"));
}
