// Charts that answer to the pointer: a histogram with a slider, bars, and a table of shades.

import { count, h, s } from "./dom.js";

const WIDTH = 640;

/**
 * Counts by distance with a slider below; bars within the radius are filled.
 * `onSlide(radius)` is called while sliding, `onChoose(radius)` when it ends.
 */
export function slider({ counts, radius, most = counts.length - 1, label, words, onSlide, onChoose }) {
  const height = 96;
  const step = WIDTH / counts.length;
  const highest = Math.max(1, ...counts);
  const bars = counts.map((n, d) => {
    const tall = n ? Math.max(2, (height - 4) * Math.sqrt(n / highest)) : 0;
    return s("rect", { x: (d * step + step * 0.08).toFixed(2), y: (height - tall).toFixed(1), width: (step * 0.84).toFixed(2), height: tall.toFixed(1) }, s("title", {}, `distance ${d}: ${count(n)}`));
  });
  const svg = s("svg", { class: "bars", viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, bars);
  const input = h("input", { type: "range", min: 0, max: most, step: 1, value: radius, "aria-label": label });
  const output = h("output", {});
  const draw = (at) => {
    bars.forEach((bar, d) => bar.classList.toggle("inside", d <= at));
    const text = words(at);
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  input.addEventListener("input", () => {
    draw(Number(input.value));
    onSlide?.(Number(input.value));
  });
  input.addEventListener("change", () => onChoose(Number(input.value)));
  draw(radius);
  const scale = h("div", { class: "scale", "aria-hidden": "true" }, h("span", {}, "0"), h("span", {}, "distance (heights: square root of the counts)"), h("span", {}, String(most)));
  return h("div", { class: "slider" }, output, svg, input, scale);
}

/** A histogram whose bars are buttons; `onChoose(i)` is called with the number of the bar. */
export function histogram({ counts, label, chosen = null, name, onChoose }) {
  const highest = Math.max(1, ...counts);
  const bars = counts.map((n, i) => {
    const bar = h("button", { type: "button", class: "bar", "aria-pressed": chosen === i ? "true" : "false", "aria-label": `${name(i)}: ${count(n)}`, title: `${name(i)}: ${count(n)}`, disabled: n === 0, click: () => onChoose(i) }, h("span", {}));
    bar.firstChild.style.height = `${n ? Math.max(3, (100 * n) / highest) : 0}%`;
    return bar;
  });
  return h("div", { class: "columns", role: "group", "aria-label": label }, bars);
}

/** Shares as horizontal bars. */
export function shares(rows) {
  return h("ul", { class: "shares" }, rows.map((row) => {
    const bar = h("span", { class: "share" }, h("i", {}));
    bar.firstChild.style.width = `${Math.max(0, Math.min(100, 100 * row.share))}%`;
    return h("li", {}, h("span", { class: "name", title: row.name }, row.name), bar, h("span", { class: "value" }, row.text));
  }));
}

/** A table of shares from 0 to 1 whose cells are buttons. */
export function matrix({ names, values, caption, chosen = null, onChoose, title }) {
  const head = h("tr", {}, h("td", {}), names.map((name) => h("th", { scope: "col" }, h("span", {}, name))));
  const body = values.map((row, i) => h("tr", {}, h("th", { scope: "row" }, names[i]), row.map((value, j) => {
    const cell = h("button", { type: "button", title: title(i, j), "aria-label": title(i, j), "aria-pressed": chosen && chosen[0] === i && chosen[1] === j ? "true" : "false", click: () => onChoose(i, j) }, value >= 0.005 ? percent(value) : "");
    cell.style.setProperty("--shade", (0.08 + 0.92 * Math.min(1, value)).toFixed(2));
    return h("td", { class: i === j ? "same" : null }, cell);
  })));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, h("table", { class: "matrix" }, h("caption", { class: "visually-hidden" }, caption), h("thead", {}, head), h("tbody", {}, body)));
}

/** Correlations from -1 to 1 on a canvas; `onChoose(i, j)` on a click. */
export function correlations({ values, label, onChoose, onPoint }) {
  const n = values.length;
  const side = Math.max(n, 1);
  const canvas = h("canvas", { class: "correlations", width: side, height: side, role: "img", "aria-label": label });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(side, side);
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  const [together, apart] = isDark ? [[86, 180, 240], [255, 150, 80]] : [[0, 114, 178], [213, 94, 0]];
  values.forEach((row, i) => row.forEach((value, j) => {
    const at = 4 * (i * side + j);
    const [r, g, b] = value >= 0 ? together : apart;
    image.data.set([r, g, b, Math.round(255 * Math.min(1, i === j ? 0.12 : Math.sqrt(Math.abs(value))))], at);
  }));
  pen.putImageData(image, 0, 0);
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    const at = (value, size) => Math.min(n - 1, Math.max(0, Math.floor((value / size) * n)));
    return [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
  };
  canvas.addEventListener("click", (event) => onChoose(...place(event)));
  canvas.addEventListener("pointermove", (event) => onPoint(...place(event)));
  return canvas;
}

/**
 * Pairs of values from 0 to 1 on a canvas, with the diagonal; `onPoint(i)` when the pointer is near
 * one, `onChoose(i)` on a click.
 */
export function scatter({ points, chosen = -1, across, up, label, onPoint, onChoose }) {
  const canvas = h("canvas", { role: "img", "aria-label": label });
  const scale = Math.min(2, devicePixelRatio || 1);
  const side = 360 * scale;
  const edge = 8 * scale;
  canvas.width = canvas.height = side;
  const place = ([x, y]) => [edge + x * (side - 2 * edge), side - edge - y * (side - 2 * edge)];
  const draw = () => {
    const pen = canvas.getContext("2d");
    const colours = getComputedStyle(document.documentElement);
    const colour = (name) => colours.getPropertyValue(name).trim();
    pen.clearRect(0, 0, side, side);
    pen.strokeStyle = colour("--soft");
    pen.lineWidth = scale;
    pen.beginPath();
    pen.moveTo(...place([0, 0]));
    pen.lineTo(...place([1, 1]));
    pen.stroke();
    pen.globalAlpha = points.length > 2000 ? 0.35 : 0.6;
    pen.fillStyle = colour("--accent");
    const size = (points.length > 2000 ? 3 : 5) * scale;
    for (const point of points) {
      const [x, y] = place(point);
      pen.fillRect(x - size / 2, y - size / 2, size, size);
    }
    pen.globalAlpha = 1;
    if (chosen >= 0) {
      const [x, y] = place(points[chosen]);
      pen.strokeStyle = colour("--bad");
      pen.lineWidth = 3 * scale;
      pen.strokeRect(x - 7 * scale, y - 7 * scale, 14 * scale, 14 * scale);
    }
  };
  const near = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * side, ((event.clientY - box.top) / box.height) * side];
    let [best, least] = [-1, (14 * scale) ** 2];
    points.forEach((point, i) => {
      const [u, v] = place(point);
      const apart = (u - x) ** 2 + (v - y) ** 2;
      if (apart < least) [best, least] = [i, apart];
    });
    return best;
  };
  const act = (event, then) => { const i = near(event); if (i >= 0) then(i); };
  canvas.addEventListener("click", (event) => act(event, onChoose));
  canvas.addEventListener("pointermove", (event) => act(event, onPoint));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  return h("figure", { class: "scatter" }, h("span", { class: "up", "aria-hidden": "true" }, `${up} →`), canvas, h("span", { class: "across", "aria-hidden": "true" }, `${across} →`));
}

export function percent(value) {
  return `${Math.round(100 * value)}%`;
}
