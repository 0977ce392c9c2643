// Compare two methods or lengths of an experiment, query by query.

import { get } from "./api.js";
import { cellName, picker, taskPicker } from "./cells.js";
import { scatter } from "./charts.js";
import { count, empty, failure, h, plural, put, say } from "./dom.js";
import { score } from "./score.js";
import { address, go } from "./state.js";
import { gallery, judged, picture, shortName, shown, walkable } from "./tiles.js";

const SIDES = ["first", "second"];
const PAGE = 4;

export function mount(root, info) {
  const page = walkable(h("div", { class: "page" }));
  root.append(page);
  return async (query, signal) => {
    if (new Set(info.cells.map(cellName)).size < 2) {
      page.replaceChildren(empty("Nothing to compare", "The records of this experiment have values by query for one method at one length only."));
      return;
    }
    const asked = { first: query.get("first"), second: query.get("second"), task: query.get("task") };
    try {
      const found = await get("/view/compare", asked, { signal });
      const lists = await Promise.all(SIDES.map((side, i) => better(found, i, asked, signal)));
      const one = query.get("item") === null ? null : await oneQuery(found, query.get("item"), asked, signal);
      put(page, pickers(found, query), overview(found, query), one, lists);
    } catch (error) {
      if (error.name !== "AbortError") page.replaceChildren(failure(error));
    }
  };
}

function pickers(found, query) {
  const [first, second] = found.sides;
  const runs = [...new Set(found.cells.map((one) => one.run))];
  const ofRun = found.cells.filter((one) => one.run === first.run).map((one) => [one.number, cellName(one)]);
  const twin = (side, run) => found.cells.find((one) => cellName(one) === cellName(side) && one.run === run)?.number;
  const toRun = (run) => go({ first: twin(first, Number(run)), second: twin(second, Number(run)), item: null });
  return h("div", { class: "row tools" },
    taskPicker(found.tasks, query),
    runs.length > 1 ? picker("run", "Run", runs.map((one) => [one, one]), first.run, toRun) : null,
    picker("first", "First", ofRun, first.cell, (cell) => go({ first: cell, second: second.cell, item: null })),
    picker("second", "Second", ofRun, second.cell, (cell) => go({ first: first.cell, second: cell, item: null })));
}

function overview(found, query) {
  const names = found.sides.map(cellName);
  const metric = found.metric === "ap" ? "average precision" : found.metric;
  const wins = names.map((name, i) => `${name} is better for ${count(found.n_better[i])}${found.sides[i].score?.low === null ? "" : ` (${count(found.n_sure[i])} whatever the order of ties)`}`);
  const level = found.n_queries - found.n_better[0] - found.n_better[1];
  const left = found.n_undefined ? ` ${plural(found.n_undefined, "query", "queries")} without a value on one side ${found.n_undefined === 1 ? "is" : "are"} left out.` : "";
  const lead = `Of ${plural(found.n_queries, "query", "queries")}, ${wins.join(", ")}${level ? `, and ${count(level)} are level` : ""}.${left}`;
  say(lead);
  const at = found.positions.indexOf(Number(query.get("item") ?? NaN));
  const words = (i) => `Query ${found.positions[i]}: ${found.points[i].map((value) => value.toFixed(3)).join(" and ")}`;
  const pointed = h("p", { class: "hint" }, "Each point is a query; above the line the second is better. Click one to see it.");
  const chart = scatter({ points: found.points, chosen: at, across: names[0], up: names[1], label: `${metric} of each query. ${lead}`, onPoint: (i) => { pointed.textContent = words(i); }, onChoose: (i) => go({ item: found.positions[i] }) });
  return h("div", { class: "two" },
    h("section", { "aria-label": "Both" }, h("h2", {}, `${metric[0].toUpperCase()}${metric.slice(1)}, query by query`), h("p", { class: "lead" }, lead), found.sides.map((side, i) => score(side.score, names[i]))),
    h("section", { "aria-label": "Scatter" }, chart, pointed));
}

async function oneQuery(found, item, asked, signal) {
  const { queries } = await get("/view/compare/queries", { ...asked, item }, { signal });
  const close = h("button", { type: "button", click: () => go({ item: null }) }, "Close");
  return h("section", { "aria-label": "Chosen query" }, h("h2", {}, "The query that you chose"), h("p", {}, close), row(queries[0], found, asked.task));
}

async function better(found, side, asked, signal) {
  const list = h("div", { class: "query-list" });
  const more = h("p", {});
  const load = async (skip) => {
    const { n_queries: n, queries } = await get("/view/compare/queries", { ...asked, better: SIDES[side], skip, n: PAGE }, { signal });
    list.append(...queries.map((one) => row(one, found, asked.task)));
    more.replaceChildren();
    const left = n - skip - queries.length;
    if (left > 0) more.append(h("button", { type: "button", click: () => load(skip + PAGE) }, `${count(left)} more`));
    return n;
  };
  const n = await load(0);
  const title = `Where ${cellName(found.sides[side])} is most ahead`;
  return h("section", { "aria-label": title }, h("h2", {}, title), n ? list : h("p", { class: "hint" }, "It is better for no query."), more);
}

function row(one, found, task) {
  const here = (side) => address("quality", { item: one.query.id, cell: side.cell, task });
  const head = h("div", { class: "query" }, picture(one.query, 160), h("span", {}, one.query.label ?? shortName(one.query)), h("span", { class: "count" }, one.is_sure ? "ahead in every order of ties" : "ties could level it"));
  const sides = one.sides.map((side, i) => {
    const name = cellName(found.sides[i]);
    const items = side.items.length ? gallery(side.items, { mark: judged, note: (item) => shown(item.distance), href: () => here(side) }) : null;
    return h("div", { class: "side" }, score(side.score, h("a", { href: here(side) }, name)), items);
  });
  const isBare = one.sides.every((side) => !side.items.length);
  return h("div", { class: isBare ? "query-row bare" : "query-row" }, head, h("div", {}, sides));
}
