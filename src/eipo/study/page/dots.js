// Rows of dots with an interval, and saving figures.

/** `rows`: [{variant, label, values: [{value, text}], mid, low, high, text}]. `mark`: a value at which a line stands. */
function dotChart(host, o) {
  const width = Math.max(260, Math.floor(host.clientWidth || 600)), row = 26, height = 12 + row * o.rows.length + 40;
  const left = Math.min(width * 0.36, 20 + 6.9 * Math.max(0, ...o.rows.map((r) => r.label.length)));
  const right = width - 14 - Math.min(width * 0.26, 6.6 * Math.max(0, ...o.rows.map((r) => (r.text || "").length)));
  const values = o.rows.flatMap((r) => [r.values.map((v) => v.value), [r.mid, r.low, r.high].filter(Number.isFinite)]);
  const limits = o.limits || withRoom(bounds(values, "linear"), "linear", true), X = scaleOf("linear", ...limits, left, right);
  const label = `${o.title}: ` + o.rows.map((r) => `${r.label} ${r.text || number(r.mid)}`).join(", ");
  const { svg } = frame(host, { ...o, height, width, label }), bottom = height - 38;
  for (const t of linearTicks(...limits, Math.max(2, (right - left) / 80))) {
    svg.append(s("line", { class: "grid", x1: X(t), x2: X(t), y1: 6, y2: bottom }),
      s("text", { class: "tick", x: X(t), y: bottom + 15, "text-anchor": "middle" }, (o.format || short)(t)));
  }
  if (o.mark !== undefined) svg.append(s("line", { class: "zero", x1: X(o.mark), x2: X(o.mark), y1: 4, y2: bottom }));
  svg.append(s("text", { class: "title", x: (left + right) / 2, y: bottom + 33, "text-anchor": "middle" }, o.xTitle));
  o.rows.forEach((r, k) => {
    const y = 12 + row * (k + 0.5), most = Math.floor((left - 20) / 6.4);
    const name = r.label.length > most ? r.label.slice(0, most - 1) + "…" : r.label;
    const g = s("g", { class: `v${r.variant}` });
    g.append(s("circle", { class: "dot", cx: 6, cy: y, r: 4 }),
      s("text", { class: "end", x: 15, y: y + 4 }, name, s("title", {}, r.label)));
    if (Number.isFinite(r.low)) g.append(s("line", { class: "range", x1: X(r.low), x2: X(r.high), y1: y, y2: y }));
    for (const v of r.values) g.append(s("circle", { class: "seed", cx: X(v.value), cy: y, r: 4 }, s("title", {}, v.text)));
    if (Number.isFinite(r.mid)) g.append(s("line", { class: "mid", x1: X(r.mid), x2: X(r.mid), y1: y - 8, y2: y + 8 }));
    if (r.text) g.append(s("text", { class: "end", x: width - 4, y: y + 4, "text-anchor": "end" }, r.text));
    svg.append(g);
  });
}

// What a saved figure keeps of the page's style: the styles themselves stay behind.
const STYLED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap",
  "stroke-linejoin", "font-family", "font-size", "font-weight", "opacity"];

/** The drawing as a file that stands alone. */
function standalone(svg) {
  const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, k) => {
    const style = getComputedStyle(node);
    for (const key of STYLED) to[k].setAttribute(key, style.getPropertyValue(key));
    to[k].removeAttribute("class");
  });
  const { width, height } = svg.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.prepend(s("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.body).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}

function save(name, blob) {
  const url = URL.createObjectURL(blob), a = h("a", { href: url, download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function savePng(name, svg) {
  const { width, height } = svg.viewBox.baseVal, image = new Image(width, height), scale = 2;
  image.onload = () => {
    const canvas = h("canvas", { width: width * scale, height: height * scale });
    canvas.getContext("2d").drawImage(image, 0, 0, width * scale, height * scale);
    canvas.toBlob((blob) => save(name, blob), "image/png");
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(standalone(svg));
}

function saveButtons(svg, title) {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "figure";
  const button = (kind, run) =>
    h("button", { class: "save", type: "button", onclick: run, "aria-label": `Save ${title} as ${kind}` }, kind);
  return h("span", { class: "saves" },
    button("SVG", () => save(name + ".svg", new Blob([standalone(svg)], { type: "image/svg+xml" }))),
    button("PNG", () => savePng(name + ".png", svg)));
}
