// A value with its range over the orders of tied items.

import { h } from "./dom.js";

const AP = "Average precision";

/** Average precision, with its range over the orders of tied items as a bar. */
export function score(one, name = AP) {
  if (!one) return null;
  const range = one.low === null || one.low === undefined ? null : h("span", { class: "range", role: "img", "aria-label": `from ${one.low.toFixed(3)} to ${one.high.toFixed(3)} by the order of ties` }, h("i", {}), h("b", {}));
  if (range) {
    range.firstChild.style.left = `${100 * one.low}%`;
    range.firstChild.style.width = `${Math.max(0.7, 100 * (one.high - one.low))}%`;
    range.lastChild.style.left = `${100 * one.ap}%`;
  }
  return h("div", { class: name === AP ? "score" : "score named" }, h("span", {}, name, " ", h("strong", {}, one.ap.toFixed(3))), range, range && h("span", { class: "count" }, `${one.low.toFixed(3)} – ${one.high.toFixed(3)} by the order of ties`));
}
