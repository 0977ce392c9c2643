// The dialog that shows one item: its whole image, its metadata, and its code.

import { h } from "./dom.js";
import { address } from "./state.js";
import { glyph } from "./tiles.js";

export function showItem(item) {
  const dialog = document.getElementById("item");
  const rows = [["id", item.id], ["label", item.label], ["text", item.text], ...Object.entries(item.details ?? {}), ["code", item.code]];
  const image = item.src ? h("img", { src: item.src, alt: item.title }) : item.code ? glyph(item.code) : null;
  const links = [h("a", { href: address("search", { item: item.id }) }, "Search for it"), h("a", { href: address("compare", { item: item.id }) }, "Compare"), item.label && h("a", { href: address("quality", { item: item.id }) }, "Its quality")];
  const close = h("button", { type: "button", click: () => dialog.close() }, "Close");
  dialog.replaceChildren(
    h("h2", {}, item.title),
    h("div", { class: "whole" }, image),
    h("dl", {}, rows.filter(([, value]) => value !== null && value !== undefined).map(([key, value]) => [h("dt", {}, key), h("dd", {}, String(value))])),
    h("p", { class: "row" }, links, close),
  );
  dialog.showModal();
  close.focus();
}

/** A button that opens the dialog. */
export function about(item) {
  return h("button", { type: "button", class: "quiet", "aria-label": `About ${item.title}`, title: "About this item", click: () => showItem(item) }, "i");
}
