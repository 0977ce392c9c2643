// Compare: one query in two collections, or in codes of two lengths; what only one finds stands out.

import { get } from "./api.js";
import { mount as mountCells } from "./cells_compared.js";
import { empty, failure, h, plural, put, say } from "./dom.js";
import { about } from "./item.js";
import { asked, isAsked, queryPanel } from "./query.js";
import { score } from "./score.js";
import { address, go } from "./state.js";
import { bandList, walkable } from "./tiles.js";

export function mount(root, info) {
  if (info.kind === "experiment") return mountCells(root, info);
  const panel = queryPanel(info, { withExamples: false });
  const picker = sidePicker(info);
  panel.element.append(picker.element);
  const results = walkable(h("div", { class: "results" }));
  root.append(h("div", { class: "with-panel" }, panel.element, results));
  return async (query, signal) => {
    panel.update(query);
    picker.update(query);
    if (!isAsked(query)) {
      results.replaceChildren(empty("Choose a query", "It is searched for on both sides, and what only one side finds stands out.", info.first.length ? h("p", {}, h("a", { href: address("compare", { item: info.first[0] }) }, "Begin with the first item")) : null));
      return;
    }
    try {
      const bits = query.get("bits") ?? (info.other ? null : Math.max(1, Math.floor(info.n_bits / 2)));
      const found = await get("/view/compare", { ...asked(query), bits }, { signal });
      if (found.query) panel.show(found.query);
      put(results, shownSides(found, query));
    } catch (error) {
      if (error.name !== "AbortError") results.replaceChildren(failure(error));
    }
  };
}

function sidePicker(info) {
  const bits = h("input", { type: "number", id: "ask-bits", min: 1, max: info.n_bits, placeholder: info.other ? "bits" : String(Math.floor(info.n_bits / 2)) });
  const form = h("form", { class: "ask", submit: (event) => { event.preventDefault(); go({ bits: bits.value }); } }, h("label", { for: "ask-bits" }, info.other ? `Second side: ${info.other}, or the first bits of these codes` : "Second side: the first bits of these codes"), h("div", { class: "row" }, bits, h("button", {}, "Compare")));
  const hint = info.other ? null : h("p", { class: "hint" }, "With --against OTHER, the second side is another collection.");
  return { element: h("div", { class: "filters" }, form, hint), update: (query) => { bits.value = query.get("bits") ?? ""; } };
}

function shownSides(found, query) {
  const common = found.n_common;
  const lead = common === null ? "Only one side can answer this query." : `${common ? `${plural(common, "item")} ${common === 1 ? "is" : "are"}` : "No item is"} among the nearest of both sides; framed ones are found by one side alone. Bands are taken whole, so the sides may show different numbers.`;
  say(lead);
  return [h("p", { class: "lead" }, lead), h("div", { class: "two" }, found.sides.map((side) => oneSide(side, query)))];
}

function oneSide(side, query) {
  const head = h("h2", {}, side.name, " ", h("span", { class: "count" }, `${side.n_bits} bits`));
  if (side.error) return h("section", { "aria-label": side.name }, head, failure(new Error(side.error)));
  const facts = [`${plural(side.n_within, "item")} within radius ${side.radius}`, `${side.n_only} only here`];
  const options = {
    href: (item) => address("compare", { item: item.id, bits: query.get("bits") }),
    mark: (item) => (item.marked ? { class: "only", text: "only here", sign: "◆" } : null),
    actions: (item) => [about(item)],
  };
  return h("section", { "aria-label": side.name }, head, h("p", { class: "lead" }, facts.join("; "), "."), score(side.score), bandList(side.bands, options));
}
