// The panel that asks: an item, an image, a text, examples for and against, and filters.

import { get, post } from "./api.js";
import { failure, h, later } from "./dom.js";
import { go, params } from "./state.js";
import { picture, shortName } from "./tiles.js";

const NONE = { item: null, image: null, code: null, text: null, like: null, unlike: null, radius: null };
export const QUERY = ["item", "image", "code", "text", "like", "unlike", "where", "to"];

/** The parameters of the address that say what is asked. */
export function asked(query) {
  return Object.fromEntries(QUERY.map((name) => [name, query.get(name)]));
}

export function isAsked(query) {
  return ["item", "image", "code", "text", "like"].some((name) => query.get(name));
}

export function ids(query, name) {
  return (query.get(name) ?? "").split(",").filter(Boolean);
}

/** Buttons "+" and "−" of a tile: more like this, less like this. */
export function exampleButtons(item) {
  const button = (sign, words, name, other) => {
    const pressed = ids(params(), name).includes(String(item.id));
    return h("button", { type: "button", class: `example ${name}`, "aria-pressed": String(pressed), "aria-label": `${words}: ${item.title}`, title: words, click: () => toggle(item, name, other) }, sign);
  };
  return [button("+", "More like this", "like", "unlike"), button("−", "Less like this", "unlike", "like")];
}

function toggle(item, name, other) {
  const query = params();
  const id = String(item.id);
  let here = ids(query, name);
  let there = ids(query, other).filter((one) => one !== id);
  const like = () => (name === "like" ? here : there);
  // The first example joins the item that was searched for.
  if (!like().length && query.get("item")) (name === "like" ? here : there).push(query.get("item"));
  here = here.includes(id) ? here.filter((one) => one !== id) : [...here, id];
  there = there.filter((one) => !here.includes(one));
  const chosen = name === "like" ? { like: here, unlike: there } : { like: there, unlike: here };
  if (!chosen.like.length) {
    go({ like: null, unlike: null });
    return;
  }
  go({ ...NONE, like: chosen.like.join(","), unlike: chosen.unlike.join(",") });
}

/** The panel; the function it returns shows what the address asks. */
export function queryPanel(info, { withExamples = true, withFilters = true } = {}) {
  const chosen = h("div", { class: "chosen" });
  const trouble = h("div", { "aria-live": "assertive" });
  const item = h("input", { type: "number", min: 0, step: 1, id: "ask-item", inputmode: "numeric", placeholder: "id" });
  const byItem = h("form", { class: "ask", submit: (event) => { event.preventDefault(); if (item.value !== "") go({ ...NONE, item: item.value }); } }, h("label", { for: "ask-item" }, "Item"), h("div", { class: "row" }, item, h("button", {}, "Search"), h("button", { type: "button", title: "An item at random", click: () => random(info) }, "Random")));
  const parts = [chosen, trouble];
  if (info.takes_images) parts.push(dropZone(trouble));
  let text = null;
  if (info.takes_texts) {
    text = h("input", { type: "search", id: "ask-text", placeholder: "words", autocomplete: "off" });
    parts.push(h("form", { class: "ask", submit: (event) => { event.preventDefault(); if (text.value.trim()) go({ ...NONE, text: text.value.trim() }); } }, h("label", { for: "ask-text" }, "Text"), h("div", { class: "row" }, text, h("button", {}, "Search"))));
  }
  parts.push(byItem);
  const filters = withFilters ? filterPanel(info) : null;
  if (filters) parts.push(filters.element);
  const panel = h("section", { class: "panel", "aria-label": "Query" }, h("h2", {}, "Query"), parts);
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    (text ?? item).focus();
  });
  return {
    element: panel,
    update(query) {
      trouble.replaceChildren();
      item.value = query.get("item") ?? "";
      if (text) text.value = query.get("text") ?? "";
      filters?.update(query);
      if (!isAsked(query)) chosen.replaceChildren(h("p", { class: "hint" }, hintOf(info, withExamples)));
    },
    show(about) {
      chosen.replaceChildren(questionOf(about));
    },
  };
}

function hintOf(info, withExamples) {
  const ways = [info.takes_images && "drop, paste or choose an image", info.takes_texts && "type some words", "name an item"].filter(Boolean);
  const said = ways.length > 1 ? `${ways.slice(0, -1).join(", ")} or ${ways.at(-1)}` : ways[0];
  return `${said[0].toUpperCase()}${said.slice(1)}.${withExamples ? " Then + and − on results ask for more or less like them." : ""}`;
}

function questionOf(about) {
  if (about.kind === "examples") {
    const row = (items, name, sign) => items.map((one) => h("button", { type: "button", class: `example-tile ${name}`, title: `Remove ${one.title}`, "aria-label": `Remove ${one.title}`, click: () => toggle(one, name, name === "like" ? "unlike" : "like") }, picture(one, 96), h("span", { "aria-hidden": "true" }, sign)));
    return h("div", { class: "examples" }, row(about.like, "like", "+"), row(about.unlike, "unlike", "−"));
  }
  if (about.kind === "text") return h("p", { class: "asked-text" }, `“${about.title}”`);
  const shown = about.kind === "image" ? { ...about, src: `/view/image/${about.image}` } : about;
  return h("figure", { class: "asked" }, picture(shown, 320), h("figcaption", {}, shortName(about), about.label ? h("span", { class: "chip" }, about.label) : null));
}

async function random(info) {
  const page = await (await fetch(`/items?start=${Math.floor(Math.random() * info.n_items)}&size=1`)).json();
  const found = page.items?.[0]?.id;
  if (found !== undefined) go({ ...NONE, item: found });
}

function dropZone(trouble) {
  const file = h("input", { type: "file", accept: "image/*", id: "ask-image", class: "visually-hidden" });
  const zone = h("label", { class: "drop", for: "ask-image" }, h("span", {}, "Drop or paste an image, or choose a file"), file);
  const send = async (content) => {
    if (!content) return;
    if (!content.type.startsWith("image/")) {
      trouble.replaceChildren(failure(new Error("This is not an image.")));
      return;
    }
    zone.classList.add("busy");
    try {
      const found = await post("/view/image", content, content.type);
      go({ ...NONE, image: found.image, code: found.code });
    } catch (error) {
      trouble.replaceChildren(failure(error));
    } finally {
      zone.classList.remove("busy");
      file.value = "";
    }
  };
  file.addEventListener("change", () => send(file.files[0]));
  addEventListener("paste", (event) => {
    const found = [...(event.clipboardData?.files ?? [])].find((one) => one.type.startsWith("image/"));
    if (found) send(found);
  });
  addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) zone.classList.remove("over"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    const dropped = event.dataTransfer.files[0];
    const tile = event.dataTransfer.getData("text/plain");
    if (dropped) send(dropped);
    else if (/^\d+$/.test(tile)) go({ ...NONE, item: tile });
  });
  return zone;
}

function filterPanel(info) {
  const columns = Object.entries(info.columns).filter(([name]) => name !== "file_state");
  const where = h("input", { type: "text", id: "ask-where", placeholder: "label = 'cat' AND id < 500", spellcheck: "false", autocomplete: "off" });
  const to = info.is_crossmodal ? h("select", { id: "ask-to", change: () => go({ to: to.value === "image" ? null : to.value, radius: null }) }, h("option", { value: "image" }, "images"), h("option", { value: "text" }, "texts")) : null;
  const apply = () => go({ where: where.value.trim(), radius: null });
  const form = h("form", { class: "ask", submit: (event) => { event.preventDefault(); apply(); } }, h("label", { for: "ask-where" }, "Condition"), h("div", { class: "row" }, where, h("button", {}, "Apply")));
  const parts = [to && h("div", { class: "ask" }, h("label", { for: "ask-to" }, "Find"), to), form];
  if (columns.length) parts.push(builder(columns, where, apply));
  return {
    element: h("details", { class: "filters", open: innerWidth > 768 }, h("summary", {}, "Filter"), parts),
    update(query) {
      where.value = query.get("where") ?? "";
      if (where.value) where.closest("details").open = true;
      if (to) to.value = query.get("to") ?? "image";
    },
  };
}

function builder(columns, where, apply) {
  const column = h("select", { "aria-label": "Column" }, columns.map(([name]) => h("option", { value: name }, name)));
  const sign = h("select", { "aria-label": "Comparison" }, ["=", "<>", "<", "<=", ">", ">=", "LIKE"].map((one) => h("option", {}, one)));
  const list = h("datalist", { id: "ask-values" });
  const value = h("input", { type: "text", list: "ask-values", "aria-label": "Value", placeholder: "value" });
  const offer = later(async () => {
    try {
      const found = await get("/view/values", { column: column.value });
      list.replaceChildren(...found.map((one) => h("option", { value: one })));
    } catch {
      list.replaceChildren();
    }
  });
  column.addEventListener("change", offer);
  value.addEventListener("focus", offer, { once: true });
  const preferred = columns.find(([name]) => name === "label");
  if (preferred) column.value = "label";
  const add = () => {
    if (value.value === "") return;
    const kind = Object.fromEntries(columns)[column.value];
    const isNumber = /INT|DOUBLE|FLOAT/.test(kind) && value.value.trim() !== "" && !Number.isNaN(Number(value.value));
    const written = isNumber ? value.value.trim() : `'${value.value.replaceAll("'", "''")}'`;
    const condition = `"${column.value.replaceAll('"', '""')}" ${sign.value} ${written}`;
    where.value = where.value.trim() ? `${where.value.trim()} AND ${condition}` : condition;
    value.value = "";
    apply();
  };
  return h("form", { class: "ask builder", "aria-label": "Add a condition", submit: (event) => { event.preventDefault(); add(); } }, h("div", { class: "row" }, column, sign, value, list, h("button", {}, "Add")));
}
