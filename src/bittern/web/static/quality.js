// Quality: the distribution of average precision, the worst queries, confusions, and one query.

import { get } from "./api.js";
import { cellName, picker, taskPicker } from "./cells.js";
import { histogram, matrix, percent, shares } from "./charts.js";
import { chart, count, empty, failure, h, plural, put, say } from "./dom.js";
import { about } from "./item.js";
import { score } from "./score.js";
import { address, go } from "./state.js";
import { bandList, gallery, judged, picture, shortName, shown, walkable } from "./tiles.js";

const PAGE = 8;

export function mount(root, info) {
  const body = walkable(h("div", { class: "page" }));
  root.append(body);
  return async (query, signal) => {
    try {
      if (query.get("item")) put(body, await oneQuery(info, query, signal));
      else put(body, await overview(info, query, signal));
    } catch (error) {
      if (error.name !== "AbortError") body.replaceChildren(failure(error));
    }
  };
}

async function overview(info, query, signal) {
  const found = await get("/view/quality", partOf(query), { signal });
  const n = found.histogram.length;
  const bin = query.get("bin") === null ? null : Number(query.get("bin"));
  const name = (i) => `${found.metric} ${(i / n).toFixed(2)} to ${((i + 1) / n).toFixed(2)}`;
  const lead = `${plural(found.n_queries, "query", "queries")}${found.n_items ? `, each against ${plural(found.n_items, "item")}` : ""}${found.n_undefined ? `; ${count(found.n_undefined)} have nothing relevant and no value` : ""}.`;
  say(lead);
  const listed = h("section", { "aria-label": "Queries" });
  const parts = [
    pickers(found, query),
    h("div", { class: "two" },
      h("section", { "aria-label": "Distribution" }, h("h2", {}, `How ${found.metric === "ap" ? "average precision" : found.metric} is distributed`), h("p", { class: "lead" }, lead), found.mean === null ? null : score({ ap: found.mean, low: found.low, high: found.high }, "Mean"), histogram({ counts: found.histogram, label: "Queries by value", chosen: bin, name, onChoose: (i) => go({ bin: bin === i ? null : i, of: null, as: null }) }), h("div", { class: "scale" }, h("span", {}, "0"), h("span", {}, "click a bar to see its queries"), h("span", {}, "1")), found.by_class?.length ? classSection(found) : null),
      confusionSection(query, signal)),
    listed,
    info.kind === "experiment" ? h("p", { class: "hint" }, "Records keep counts and values, not codes; to search items, look at their bits or find duplicates, open a collection.") : null,
  ];
  const of = query.get("of");
  if (of !== null) await showConfused(listed, query, signal);
  else await showQueries(listed, query, bin, n, signal);
  return parts;
}

/** The cell and the task of an experiment; a collection has neither. */
function partOf(query) {
  return { cell: query.get("cell"), task: query.get("task") };
}

function pickers(found, query) {
  if (!found.cells.length) return null;
  const choices = found.cells.map((one) => [one.number, `${cellName(one)}, run ${one.run}`]);
  return h("div", { class: "row tools" }, taskPicker(found.tasks, query), picker("cell", "Method, length and run", choices, found.cell, (cell) => go({ cell, bin: null, item: null, of: null, as: null })));
}

function classSection(found) {
  const rows = [...found.by_class].sort((a, b) => a.mean - b.mean).map((one) => ({ name: one.name, share: one.mean, text: `${one.mean.toFixed(3)} (${count(one.n)})` }));
  return h("section", { class: "classes", "aria-label": "Classes" }, h("h2", {}, "Mean by class, over all runs"), h("p", { class: "lead" }, "The hardest classes first, with the numbers of queries."), shares(rows));
}

function confusionSection(query, signal) {
  const box = h("div", {}, h("p", { class: "lead" }, "Counting …"));
  get("/view/quality/confusion", partOf(query), { signal }).then((found) => {
    if (found.note) {
      box.replaceChildren(h("p", { class: "hint" }, found.note));
      return;
    }
    const names = found.classes.map((one) => one.name);
    const numbers = found.classes.map((one) => String(one.number));
    const at = [numbers.indexOf(query.get("of")), numbers.indexOf(query.get("as"))];
    const more = found.n_classes > names.length ? ` The ${names.length} most frequent of ${found.n_classes} classes.` : "";
    box.replaceChildren(
      h("p", { class: "lead" }, `${confusionLead(found)}${more} Click a cell to see.`),
      matrix({ names, values: found.shares, caption: "Which classes are confused with which", chosen: at, title: (i, j) => `${names[i]} → ${names[j]}: ${percent(found.shares[i][j])}`, onChoose: (i, j) => go({ of: numbers[i], as: numbers[j], bin: null }) }));
  }).catch((error) => { if (error.name !== "AbortError") box.replaceChildren(failure(error)); });
  return h("section", { "aria-label": "Confusions" }, h("h2", {}, "Which classes are confused"), box);
}

function confusionLead(found) {
  if (found.cutoff) return `Rows: the class of ${plural(found.n_queries, "query", "queries")}. Columns: the classes of their ${found.cutoff} nearest items, in expectation over ties.`;
  return `Rows: the class of the ${plural(found.n_queries, "query", "queries")} whose neighbours are recorded, too few for a verdict. Columns: the classes of their ${found.n_nearest} nearest items, tied ones in the order of the dataset.`;
}

async function showQueries(section, query, bin, n, signal) {
  const range = bin === null ? {} : { low: bin / n, high: (bin + 1) / n };
  const list = h("div", { class: "query-list" });
  const more = h("p", {});
  const load = async (skip) => {
    const found = await get("/view/quality/queries", { ...partOf(query), ...range, skip, n: PAGE }, { signal });
    list.append(...found.queries.map((one) => queryRow(one, query)));
    more.replaceChildren();
    const left = found.n_queries - skip - found.queries.length;
    if (left > 0) more.append(h("button", { type: "button", click: () => load(skip + PAGE) }, `${count(left)} more`));
    return found;
  };
  const first = await load(0);
  const title = bin === null ? "The worst queries" : `${plural(first.n_queries, "query", "queries")} with a value of ${(bin / n).toFixed(2)} to ${((bin + 1) / n).toFixed(2)}`;
  const few = first.queries.some((one) => !one.items.length) ? " Neighbours were recorded for a few queries only; a click on another shows its counts by distance." : "";
  section.append(h("h2", {}, title), h("p", { class: "keys" }, key("good", "✓", "relevant"), key("bad", "✗", "not relevant"), "Below a query: its value, and the range of it over the orders of ties. Below an item: its distance; equal ones tie.", few), first.queries.length ? list : empty("No queries here"), more);
}

async function showConfused(section, query, signal) {
  const found = await get("/view/quality/confused", { ...partOf(query), of: query.get("of"), as: query.get("as") }, { signal });
  section.append(h("h2", {}, `${plural(found.n_queries, "query", "queries")} with neighbours of the other class`), h("p", {}, h("button", { type: "button", click: () => go({ of: null, as: null }) }, "Back to the worst queries")));
  section.append(...(found.queries.length ? found.queries.map((one) => queryRow(one, query, `${percent(one.share)} of the nearest`)) : [empty("These classes are not confused")]));
}

function key(kind, sign, words) {
  return h("span", { class: `key ${kind}` }, h("b", { "aria-hidden": "true" }, sign), words);
}

function queryRow(one, query, more = null) {
  const here = address("quality", { item: one.query.id, ...partOf(query) });
  const value = one.ap === null ? "no value" : one.ap.toFixed(3);
  const name = h("a", { class: "query", href: here, "aria-label": `Query ${one.query.title}, ${value}` }, picture(one.query, 160), h("span", {}, one.query.label ?? shortName(one.query)), h("strong", {}, value), one.low !== null && one.low !== undefined ? h("span", { class: "count" }, `${one.low.toFixed(3)} – ${one.high.toFixed(3)}`) : null, more && h("span", { class: "count" }, more));
  const items = one.items.length ? gallery(one.items, { mark: judged, note: (item) => shown(item.distance), href: (item) => (item.code ? address("search", { item: item.id }) : here) }) : null;
  return h("div", { class: items ? "query-row" : "query-row bare" }, name, items);
}

async function oneQuery(info, query, signal) {
  const part = partOf(query);
  const found = await get("/view/quality/query", { item: query.get("item"), ...part, radius: query.get("radius") }, { signal });
  say(`Query ${found.query.title}`);
  const isCollection = info.kind === "collection";
  const back = h("p", {}, h("a", { href: address("quality", part) }, "← All queries"));
  const head = h("section", { class: "query-head", "aria-label": "Query" }, h("figure", { class: "asked" }, picture(found.query, 320), h("figcaption", {}, shortName(found.query), found.query.label ? h("span", { class: "chip" }, found.query.label) : null)), h("div", {}, score(found.score), found.n_relevant === null ? null : h("p", {}, `${plural(found.n_relevant, "item")} relevant.`), found.chart ? curves(found) : h("p", { class: "hint" }, "Counts by distance were not recorded for this ranking."), isCollection ? h("p", {}, h("a", { href: address("search", { item: found.query.id }) }, "Search for it")) : null));
  const options = { mark: judged, href: (item) => (isCollection ? address("quality", { item: item.id }) : null), actions: (item) => (isCollection ? [about(item)] : []), more: isCollection ? (band, n) => get("/view/band", { item: found.query.id, distance: band.distance, skip: n }).then((more) => ({ items: more.items.map((item) => ({ ...item, marked: item.label === found.query.label })) })) : null };
  if (!isCollection) delete options.href;
  const ranking = h("section", { "aria-label": "Ranking" }, h("h2", {}, "The ranking"), found.bands.length ? bandList(found.bands, options) : h("p", { class: "hint" }, "The neighbours of this query were not recorded."));
  if (!isCollection) return [back, head, ranking];
  const truth = h("section", { "aria-label": "Ground truth" }, h("h2", {}, "The ground truth"), h("p", { class: "lead" }, `The relevant items, nearest first${found.truth.length < found.n_relevant ? `; ${count(found.truth.length)} of ${count(found.n_relevant)}` : ""}.`), gallery(found.truth, { note: (item) => `distance ${item.distance}`, href: options.href, mark: (item) => (item.distance > found.radius ? { class: "missed", text: "outside the bands shown", sign: "…" } : null) }));
  return [back, head, h("div", { class: "two" }, ranking, truth)];
}

function curves(found) {
  const table = h("details", {}, h("summary", {}, "As numbers"), h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["radius", "items", "relevant", "precision", "recall"].map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, found.histogram.map((n, d) => (n ? h("tr", {}, h("th", { scope: "row" }, d), h("td", {}, count(n)), h("td", {}, count(found.relevant[d])), h("td", {}, found.precision[d]?.toFixed(3) ?? "–"), h("td", {}, found.recall[d].toFixed(3))) : null))))));
  return h("figure", { class: "curve" }, chart(found.chart), h("figcaption", {}, h("span", { class: "key c0" }, h("i", {}), "precision"), h("span", { class: "key c1" }, h("i", {}), "recall"), "within each radius"), table);
}
