// The map: every item as a point on a canvas; drag to move, wheel to zoom, lasso to see a gallery.

import { get, post } from "./api.js";
import { count, failure, h, later, plural, say } from "./dom.js";
import { about } from "./item.js";
import { address, go } from "./state.js";
import { gallery } from "./tiles.js";

const COLOURS = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [201, 138, 0], [86, 180, 233], [120, 120, 120], [140, 60, 170], [190, 30, 60], [110, 150, 20], [130, 85, 45], [0, 130, 140]];
const SHOWN = 48;
const CORNERS = 60; // of a lasso in the address

export function mapSection(info) {
  const canvas = h("canvas", { class: "map", tabindex: "0", role: "img" });
  const words = h("p", { class: "lead" });
  const legend = h("ul", { class: "legend" });
  const found = h("div", { "aria-live": "polite" });
  const mode = h("button", { type: "button", "aria-pressed": "false", title: "Draw around points (L)" }, "Lasso");
  const whole = h("button", { type: "button", title: "Show all points (0)" }, "Whole map");
  const clear = h("button", { type: "button" }, "Clear");
  const axes = axisPicker();
  const map = new PointMap(canvas);
  const section = h("section", { class: "map-section", "aria-label": "Map" }, h("h2", {}, "A map of the items"), words, h("div", { class: "row tools" }, mode, whole, clear, axes.element), canvas, legend, found);
  const lassoing = (is) => { map.isLassoing = is; mode.setAttribute("aria-pressed", String(is)); canvas.classList.toggle("lassoing", is); };
  mode.addEventListener("click", () => lassoing(!map.isLassoing));
  whole.addEventListener("click", () => map.showAll());
  clear.addEventListener("click", () => go({ lasso: null }));
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (steps[event.key]) map.move(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") map.zoom(1.25);
    else if (event.key === "-") map.zoom(0.8);
    else if (event.key === "0") map.showAll();
    else if (event.key === "Enter") map.chooseShown();
    else if (event.key === "l" || event.key === "L") lassoing(!map.isLassoing);
    else return;
    event.preventDefault();
  });
  map.onLasso = (corners) => { lassoing(false); go({ lasso: written(corners) }); };
  let drawn = null;
  let circled = null;
  return {
    element: section,
    async update(query, signal) {
      const columns = { x: query.get("x"), y: query.get("y") };
      const key = JSON.stringify(columns);
      try {
        if (key !== drawn) {
          const [said, content] = await Promise.all([get("/view/codes/map", columns, { signal }), get("/view/codes/points", columns, { signal, binary: true })]);
          drawn = key;
          circled = null;
          map.load(unpacked(content), said.classes.length);
          axes.update(said.columns, columns);
          const sample = said.n_points < said.n_items ? `${count(said.n_points)} of ${count(said.n_items)} items` : plural(said.n_points, "item");
          words.textContent = `${sample}; across: ${said.axes[0]}, up: ${said.axes[1]}. Drag to move, wheel to zoom.`;
          canvas.setAttribute("aria-label", `Map of ${sample}. Arrow keys move it, plus and minus zoom, Enter lists the items that are shown, L draws a lasso.`);
          drawLegend(legend, said.classes, map);
        }
        const lasso = query.get("lasso");
        clear.disabled = !lasso;
        if (lasso !== circled) {
          circled = lasso;
          await showInside(found, map, lasso ? read(lasso) : [], info);
        }
      } catch (error) {
        if (error.name !== "AbortError") found.replaceChildren(failure(error));
      }
    },
  };
}

async function showInside(found, map, corners) {
  const ids = map.circle(corners);
  if (!corners.length) {
    found.replaceChildren();
    return;
  }
  const words = `${plural(ids.length, "item")} inside the lasso`;
  say(words);
  const list = h("div", {});
  const more = h("p", {});
  const load = async (first) => {
    const items = await post("/view/tiles", ids.slice(first, first + SHOWN));
    list.append(gallery(items, { href: (item) => address("search", { item: item.id }), actions: (item) => [about(item)] }));
    more.replaceChildren();
    const left = ids.length - first - items.length;
    if (left > 0) more.append(h("button", { type: "button", click: () => load(first + SHOWN) }, `${count(left)} more`));
  };
  found.replaceChildren(h("h3", {}, words), list, more);
  if (ids.length) await load(0);
}

function axisPicker() {
  const x = h("select", { "aria-label": "Across" });
  const y = h("select", { "aria-label": "Up" });
  const apply = () => { if ((x.value === "") === (y.value === "")) go({ x: x.value, y: y.value, lasso: null }); };
  x.addEventListener("change", apply);
  y.addEventListener("change", apply);
  const element = h("span", { class: "axes", hidden: true }, h("label", {}, "Axes ", x), y);
  return {
    element,
    update(columns, chosen) {
      element.hidden = columns.length < 2;
      for (const [select, value] of [[x, chosen.x], [y, chosen.y]]) {
        select.replaceChildren(h("option", { value: "" }, "PCA of the codes"), ...columns.map((one) => h("option", { value: one }, one)));
        select.value = value ?? "";
      }
    },
  };
}

function drawLegend(legend, classes, map) {
  const most = 24;
  legend.replaceChildren(...classes.slice(0, most).map((name, i) => {
    const mark = h("i", {});
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    mark.style.background = `rgb(${COLOURS[i % COLOURS.length].map((value) => lift(value, isDark)).join(",")})`;
    const button = h("button", { type: "button", "aria-pressed": "false", title: `Show ${name} alone` }, mark, name);
    button.addEventListener("click", () => {
      const is = button.getAttribute("aria-pressed") !== "true";
      for (const other of legend.querySelectorAll("button")) other.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(is));
      map.highlight(is ? i : null);
    });
    return h("li", {}, button);
  }), ...(classes.length > most ? [h("li", { class: "hint" }, `and ${classes.length - most} more classes`)] : []));
}

function unpacked(content) {
  const n = new Float64Array(content, 0, 1)[0];
  const at = (i) => 8 + 8 * n + 4 * n * i;
  return { n, ids: new Float64Array(content, 8, n), x: new Float32Array(content, at(0), n), y: new Float32Array(content, at(1), n), classes: new Int32Array(content, at(2), n) };
}

function written(corners) {
  const step = Math.max(1, Math.ceil(corners.length / CORNERS));
  return corners.filter((_, i) => i % step === 0).map(([x, y]) => `${Number(x.toPrecision(4))},${Number(y.toPrecision(4))}`).join(";");
}

function read(text) {
  return text.split(";").map((one) => one.split(",").map(Number)).filter((one) => one.length === 2 && one.every(Number.isFinite));
}

/** Points in their own coordinates, and the part of the plane that the canvas shows. */
class PointMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.points = { n: 0 };
    this.isLassoing = false;
    this.lasso = [];
    this.alone = null;
    this.inside = null;
    new ResizeObserver(() => this.resize()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY); }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", () => { this.from = null; });
    this.redrawLater = later(() => this.draw(), 60);
  }

  load(points) {
    this.points = points;
    this.lasso = [];
    this.inside = null;
    this.showAll();
  }

  resize() {
    const scale = Math.min(2, devicePixelRatio || 1);
    const box = this.canvas.getBoundingClientRect();
    if (!box.width) return;
    const isFirst = !this.view;
    this.pixels = scale;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(box.height * scale);
    if (isFirst) this.showAll();
    else this.draw();
  }

  showAll() {
    const { n, x, y } = this.points;
    if (!n || !this.canvas.width) return;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < n; i += 1) {
      if (x[i] < left) left = x[i];
      if (x[i] > right) right = x[i];
      if (y[i] < low) low = y[i];
      if (y[i] > high) high = y[i];
    }
    const { width, height } = this.canvas;
    const room = (length, size) => (0.92 * size) / Math.max(length, 1e-9);
    const [across, up] = [room(right - left, width), room(high - low, height)];
    this.view = { x: (left + right) / 2, y: (low + high) / 2, across: Math.min(across, 1e9), up: Math.min(up, 1e9) };
    this.draw();
  }

  zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    if (!this.view) return;
    const before = this.place(x, y);
    this.view.across *= factor;
    this.view.up *= factor;
    const after = this.place(x, y);
    this.view.x += before[0] - after[0];
    this.view.y += before[1] - after[1];
    this.soon();
  }

  move(dx, dy) {
    if (!this.view) return;
    this.view.x -= (dx * this.pixels) / this.view.across;
    this.view.y += (dy * this.pixels) / this.view.up;
    this.soon();
  }

  /** The point of the plane at a place of the canvas, in CSS pixels. */
  place(x, y) {
    const { width, height } = this.canvas;
    return [this.view.x + (x * this.pixels - width / 2) / this.view.across, this.view.y - (y * this.pixels - height / 2) / this.view.up];
  }

  press(event) {
    if (!this.view) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.from = [event.offsetX, event.offsetY];
    if (this.isLassoing) this.lasso = [this.place(...this.from)];
  }

  drag(event) {
    if (!this.from) return;
    const to = [event.offsetX, event.offsetY];
    if (this.isLassoing) this.lasso.push(this.place(...to));
    else this.move(to[0] - this.from[0], to[1] - this.from[1]);
    this.from = to;
    this.soon();
  }

  release() {
    this.from = null;
    if (this.isLassoing && this.lasso.length > 2) this.onLasso(this.lasso);
  }

  /** A lasso around what the canvas shows, for those who have no pointer. */
  chooseShown() {
    if (!this.view) return;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.onLasso([[0, 0], [width, 0], [width, height], [0, height]].map((corner) => this.place(...corner)));
  }

  highlight(number) {
    this.alone = number;
    this.draw();
  }

  /** Mark the points inside a lasso, and return their ids. */
  circle(corners) {
    this.lasso = corners;
    const chosen = corners.length > 2 ? inPolygon(corners, this.points) : [];
    this.inside = corners.length ? new Uint8Array(this.points.n) : null;
    for (const p of chosen) this.inside[p] = 1;
    this.draw();
    return chosen.map((p) => this.points.ids[p]);
  }

  soon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  draw() {
    const { canvas, view, points } = this;
    if (!view || !canvas.width || !points.n) return;
    const began = performance.now();
    const pen = canvas.getContext("2d");
    const { width, height } = canvas;
    const image = pen.createImageData(width, height);
    const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    const shades = new Uint32Array(COLOURS.map(([r, g, b]) => shade(r, g, b, isDark)));
    const faint = isDark ? 0xff3d362e : 0xffdedad5;
    const plain = shade(0, 114, 178, isDark);
    const cells = new Uint32Array(image.data.buffer);
    const size = Math.max(2, Math.round((points.n > 20000 ? 1.5 : points.n > 3000 ? 2.5 : 5) * this.pixels));
    const passes = this.inside || this.alone !== null ? [false, true] : [null];
    for (const isChosen of passes) this.plot(cells, { width, height, size, shades, faint, plain, isChosen });
    pen.putImageData(image, 0, 0);
    if (this.lasso.length > 1) this.outline(pen, isDark);
    canvas.dataset.milliseconds = (performance.now() - began).toFixed(1);
  }

  plot(cells, { width, height, size, shades, faint, plain, isChosen }) {
    const { n, x, y, classes } = this.points;
    const { across, up, x: middle, y: centre } = this.view;
    const [left, top] = [width / 2 - middle * across - size / 2, height / 2 + centre * up - size / 2];
    for (let i = 0; i < n; i += 1) {
      const one = classes[i];
      if (isChosen !== null && (this.inside ? this.inside[i] === 1 : one === this.alone) !== isChosen) continue;
      const column = (left + x[i] * across) | 0;
      const row = (top - y[i] * up) | 0;
      if (column < 0 || row < 0 || column + size > width || row + size > height) continue;
      const colour = isChosen === false ? faint : one < 0 ? plain : shades[one % shades.length];
      for (let v = row; v < row + size; v += 1) {
        const start = v * width + column;
        for (let u = start; u < start + size; u += 1) cells[u] = colour;
      }
    }
  }

  outline(pen, isDark) {
    const { width, height } = this.canvas;
    pen.beginPath();
    for (const [x, y] of this.lasso) pen.lineTo(width / 2 + (x - this.view.x) * this.view.across, height / 2 - (y - this.view.y) * this.view.up);
    pen.closePath();
    pen.lineWidth = 1.5 * this.pixels;
    pen.strokeStyle = isDark ? "#e5e9ec" : "#1c2226";
    pen.setLineDash([6 * this.pixels, 4 * this.pixels]);
    pen.stroke();
  }
}

function lift(value, isDark) {
  return isDark ? Math.min(255, Math.round(value * 0.75 + 70)) : value;
}

function shade(...colour) {
  const isDark = colour.pop();
  const [r, g, b] = colour.map((value) => lift(value, isDark));
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

/** Numbers of the points inside a polygon; points outside its box are told at once. */
function inPolygon(corners, { n, x, y }) {
  const px = Float64Array.from(corners, (one) => one[0]);
  const py = Float64Array.from(corners, (one) => one[1]);
  const [left, right, low, high] = [Math.min(...px), Math.max(...px), Math.min(...py), Math.max(...py)];
  const found = [];
  for (let p = 0; p < n; p += 1) {
    const [u, v] = [x[p], y[p]];
    if (u < left || u > right || v < low || v > high) continue;
    let inside = false;
    for (let i = 0, j = px.length - 1; i < px.length; j = i, i += 1) {
      if (py[i] > v !== py[j] > v && u < ((px[j] - px[i]) * (v - py[i])) / (py[j] - py[i]) + px[i]) inside = !inside;
    }
    if (inside) found.push(p);
  }
  return found;
}
