// Items as tiles, and the bands of items that tie at one distance. No address or server is needed
// here, so that a notebook can show the same.

import { count, h, plural } from "./dom.js";

const THUMBNAIL = 192; // pixels

/**
 * An item. `options.href(item)` is where a click leads, `options.actions(item)` are more buttons,
 * `options.mark(item)` is null or {class, text} for one that stands out, `options.note(item)` a line below.
 */
export function tile(item, options = {}) {
  const mark = options.mark?.(item) ?? null;
  const note = options.note?.(item) ?? null;
  const name = item.label ? `${item.title}, ${item.label}` : item.title;
  const label = [name, note, mark?.text].filter(Boolean).join(", ");
  const face = h(options.href ? "a" : "div", { class: "face", href: options.href?.(item), "aria-label": options.href ? label : null, title: hint(item) }, picture(item));
  if (mark) face.append(h("span", { class: "badge", "aria-hidden": "true" }, mark.sign ?? "•"));
  const foot = h("div", { class: "foot" }, h("span", { class: "caption" }, item.label ?? shortName(item)), note && h("span", { class: "note" }, note));
  const actions = options.actions?.(item) ?? [];
  return h("li", { class: `tile${mark ? ` ${mark.class}` : ""}`, "data-id": item.id }, face, foot, actions.length ? h("div", { class: "actions" }, actions) : null);
}

/** The image of an item, or its text, or its code. */
export function picture(item, size = THUMBNAIL) {
  if (item.src) {
    const image = h("img", { src: `${item.src}?size=${size}`, alt: "", loading: "lazy", decoding: "async" });
    image.addEventListener("load", () => image.classList.toggle("tiny", image.naturalWidth < 40));
    image.addEventListener("error", () => image.replaceWith(h("span", { class: "words" }, "image not found")));
    return image;
  }
  if (item.text) return h("span", { class: "words" }, item.text);
  if (item.code) return glyph(item.code);
  return h("span", { class: "words" }, item.title);
}

/** The bits of a code as a small pattern, for items that have no image. */
export function glyph(code) {
  const bits = [...code].flatMap((digit) => [8, 4, 2, 1].map((place) => (parseInt(digit, 16) & place) > 0));
  const side = Math.ceil(Math.sqrt(bits.length));
  const canvas = h("canvas", { class: "glyph", width: side, height: side, "aria-hidden": "true" });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#5a7fa0";
  bits.forEach((bit, i) => bit && pen.fillRect(i % side, Math.floor(i / side), 1, 1));
  return canvas;
}

/**
 * Bands, one for each distance, nearest first; within a band no order is claimed.
 * `options.more(band, shown)` returns a promise of {items} when a band is unfolded.
 */
export function bandList(bands, options = {}) {
  let before = 0;
  return h("ol", { class: "bands" }, bands.map((band) => {
    const first = before + 1;
    before += band.count;
    return bandOf(band, first, options);
  }));
}

/** What to know of bands, where some of them are ties. */
export function bandHint(bands) {
  return bands.some((band) => band.count > 1) ? h("p", { class: "hint" }, "A shaded box is a tie: its items share a distance and a range of ranks, and no order among them is claimed.") : null;
}

function bandOf(band, first, options) {
  const list = h("ul", { class: "tiles" }, band.items.map((item) => tile(item, options)));
  const title = options.title?.(band) ?? `Distance ${shown(band.distance)}`;
  const head = h("h3", {}, h("span", { class: "distance" }, title), " ", h("span", { class: "count" }, band.count === 1 ? `rank ${count(first)}` : `${count(band.count)} tied, ranks ${count(first)}–${count(first + band.count - 1)}`));
  const element = h("li", { class: band.count > 1 ? "tie-band tied" : "tie-band", "data-distance": band.distance }, head, list);
  const rest = h("p", { class: "rest" });
  element.append(rest);
  const redraw = (n) => {
    rest.replaceChildren();
    const left = band.count - n;
    if (left <= 0) return;
    const words = `${count(left)} more at ${title.toLowerCase()}`;
    if (!options.more || band.is_closed) {
      rest.append(words);
      return;
    }
    const unfold = h("button", { type: "button", class: "unfold" }, words);
    unfold.addEventListener("click", async () => {
      unfold.disabled = true;
      try {
        const { items } = await options.more(band, n);
        const first = items.map((item) => list.appendChild(tile(item, options)))[0];
        redraw(n + items.length);
        first?.querySelector(".face")?.focus();
      } catch (error) {
        rest.append(` ${error.message}`);
        unfold.disabled = false;
      }
    });
    rest.append(unfold);
  };
  redraw(band.items.length);
  return element;
}

/** A plain gallery. */
export function gallery(items, options = {}) {
  return h("ul", { class: "tiles" }, items.map((item) => tile(item, options)));
}

/** Arrow keys walk through the tiles of an element. */
export function walkable(element) {
  element.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const faces = [...element.querySelectorAll("a.face")];
    const here = faces.indexOf(event.target.closest(".tile")?.querySelector("a.face"));
    if (here < 0) return;
    event.preventDefault();
    faces[Math.min(Math.max(here + step, 0), faces.length - 1)]?.focus();
  });
  return element;
}

/** How an item that is relevant or not stands out. */
export function judged(item) {
  return item.marked ? { class: "good", text: "relevant", sign: "✓" } : { class: "bad", text: "not relevant", sign: "✗" };
}

export function shown(value) {
  return Number.isInteger(value) ? String(value) : Number(value).toPrecision(3);
}

/** What an item is called where there is little room. */
export function shortName(item) {
  return item.short ?? item.title;
}

function hint(item) {
  const lines = [item.title, item.label && `label: ${item.label}`, item.text, ...Object.entries(item.details ?? {}).map(([key, value]) => `${key}: ${value}`)];
  return lines.filter(Boolean).join("\n");
}

/** "2 examples and unlike 1". */
export function exampleWords(like, unlike) {
  return `${plural(like, "example")}${unlike ? ` and unlike ${count(unlike)}` : ""}`;
}
