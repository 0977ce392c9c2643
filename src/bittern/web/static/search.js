// Search: results in bands of ties, a radius slider over the histogram, and a second ranking beside.

import { get } from "./api.js";
import { slider } from "./charts.js";
import { count, empty, failure, h, plural, put, say } from "./dom.js";
import { about } from "./item.js";
import { asked, exampleButtons, ids, isAsked, queryPanel } from "./query.js";
import { address, go, params } from "./state.js";
import { bandHint, bandList, exampleWords, gallery, shown, walkable } from "./tiles.js";

const RANKINGS = { vectors: "By the stored vectors", real: "By the real-valued query" };

export function mount(root, info) {
  const panel = queryPanel(info);
  // The server loads the hasher for this; results need not wait for it.
  const rankings = fetch("/view/rankings").then((one) => (one.ok ? one.json() : [])).catch(() => []);
  const results = walkable(h("div", { class: "results" }));
  root.append(h("div", { class: "with-panel" }, panel.element, results));
  keys(results);
  const update = async (query, signal) => {
    panel.update(query);
    if (!isAsked(query)) {
      results.replaceChildren(await welcome(info));
      return;
    }
    try {
      const found = await get("/view/search", { ...asked(query), radius: query.get("radius"), rank: query.get("rank") }, { signal });
      panel.show(found.query);
      put(results, found.kind === "likeness" ? byExamples(found, query) : byDistance(found, query, rankings));
    } catch (error) {
      if (error.name !== "AbortError") results.replaceChildren(failure(error));
    }
  };
  return update;
}

function options(query) {
  const kept = { where: query.get("where"), to: query.get("to"), rank: query.get("rank") };
  return {
    href: (item) => address("search", { item: item.id, ...kept }),
    actions: (item) => [...exampleButtons(item), about(item)],
    mark: (item) => (ids(query, "like").includes(String(item.id)) ? { class: "for", text: "for", sign: "+" } : null),
    more: (band, n) => get("/view/band", { ...asked(query), distance: band.distance, skip: n }),
  };
}

async function welcome(info) {
  if (!info.n_items) return empty("This collection is empty", "Add items with 'bittern index add', and open it again.");
  const page = await (await fetch("/items?size=24")).json();
  const items = await (await fetch("/view/tiles", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(page.items.map((one) => one.id)) })).json();
  return h("div", {}, h("p", { class: "lead" }, `The first ${plural(items.length, "item")} of ${count(info.n_items)}. Click one to search for what is like it.`), gallery(items, options(params())));
}

function byDistance(found, query, rankings) {
  const reached = [];
  found.histogram.reduce((sum, n, d) => (reached[d] = sum + n), 0);
  const words = (at) => {
    const next = at + 1 < found.histogram.length ? `; radius ${at + 1} would bring ${count(found.histogram[at + 1])} more` : "";
    return `Radius ${at}: ${plural(reached[at], "item")} of ${count(found.n_items)}${next}`;
  };
  if (!found.n_items) {
    say("Nothing to find");
    return [empty("Nothing to find", "No item meets the filter.")];
  }
  say(words(found.radius));
  const control = slider({ counts: found.histogram, radius: found.radius, label: "Radius", words, onChoose: (radius) => go({ radius }) });
  const parts = [control, rankPicker(query, rankings), bandHint(found.bands)];
  if (!found.n_within) return [...parts, empty(`Nothing within radius ${found.radius}`, `The nearest item is at distance ${found.histogram.findIndex(Boolean)}.`, h("button", { type: "button", click: () => go({ radius: found.histogram.findIndex(Boolean) }) }, "Go there"))];
  const bands = h("section", { "aria-label": "By Hamming distance" }, found.ranked ? h("h2", {}, "By Hamming distance, exactly") : null, bandList(found.bands, options(query)));
  if (!found.ranked) return [...parts, bands];
  return [...parts, h("div", { class: "two" }, bands, ranked(found.ranked, query))];
}

function rankPicker(query, rankings) {
  const chosen = query.get("rank") ?? "";
  const place = h("fieldset", { class: "picker", hidden: true }, h("legend", {}, "Rank again, side by side"));
  rankings.then((known) => {
    place.append(...["", ...known].map((one) => h("label", {}, h("input", { type: "radio", name: "rank", value: one, checked: one === chosen, change: () => go({ rank: one }) }), one ? RANKINGS[one] : "No")));
    place.hidden = !known.length;
  });
  return place;
}

function ranked(second, query) {
  const title = RANKINGS[second.kind] ?? second.kind;
  if (second.error) return h("section", { "aria-label": title }, h("h2", {}, title), failure(new Error(second.error)));
  const note = (item) => `${shown(item.value)} (Hamming\u00a0${item.distance})`;
  const lead = `${plural(second.n_ranked, "item")} within the radius, ranked a second time${second.items.length < second.n_ranked ? `; the first ${second.items.length}` : ""}.`;
  return h("section", { class: "ranked", "aria-label": title }, h("h2", {}, title), h("p", { class: "lead" }, lead), gallery(second.items, { ...options(query), note }));
}

function byExamples(found, query) {
  const lead = `Items like ${exampleWords(ids(query, "like").length, ids(query, "unlike").length)}; equally like ones are a band.`;
  say(lead);
  const parts = [h("p", { class: "lead" }, lead)];
  if (!found.n_items) return [...parts, empty("Nothing to find", "No other item meets the filter.")];
  return [...parts, bandList(found.bands, { ...options(query), title: (band) => `Likeness ${shown(band.distance)}`, more: null })];
}

function keys(results) {
  results.addEventListener("keydown", (event) => {
    const name = { "+": ".like", "-": ".unlike" }[event.key];
    const tile = event.target.closest?.(".tile");
    if (name && tile && !event.target.matches("input")) {
      event.preventDefault();
      tile.querySelector(`.example${name}`)?.click();
    }
  });
}
