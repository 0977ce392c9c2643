// Duplicates: groups within a radius; keep or reject by keyboard; decisions are stored at once.

import { get, post } from "./api.js";
import { slider } from "./charts.js";
import { count, empty, failure, h, plural, put, say } from "./dom.js";
import { about } from "./item.js";
import { go } from "./state.js";
import { tile } from "./tiles.js";

let posted = Promise.resolve(); // decisions are sent one after the other, so that the last count is right
const KEYS = { k: "keep", x: "reject", u: null };

export function mount(root, info) {
  const page = h("div", { class: "page" });
  root.append(page);
  keyboard(page);
  return async (query, signal) => {
    const link = query.get("link") ?? "complete";
    const skip = Number(query.get("skip") ?? 0);
    try {
      const found = await get("/view/duplicates", { radius: query.get("radius"), link, skip }, { signal });
      put(page, drawn(found, link, skip));
    } catch (error) {
      if (error.name !== "AbortError") page.replaceChildren(failure(error));
    }
  };
}

function drawn(found, link, skip) {
  const reached = [];
  found.pairs.reduce((sum, n, d) => (reached[d] = sum + n), 0);
  const words = (at) => `Radius ${at}: ${plural(reached[at], "near pair")}${at === found.radius ? ` in ${plural(found.n_groups, "group")}; ${plural(found.n_superfluous, "item")} of ${count(found.n_items)} could go` : ""}`;
  say(words(found.radius));
  const control = slider({ counts: found.pairs, radius: found.radius, most: found.reach, label: "Radius", words, onChoose: (radius) => go({ radius, skip: null }) });
  const links = h("fieldset", { class: "picker" }, h("legend", {}, "Groups"), [["complete", "every two are near"], ["connected", "a chain of near ones is enough"]].map(([name, text]) => h("label", {}, h("input", { type: "radio", name: "link", checked: link === name, change: () => go({ link: name, skip: null }) }), text)));
  const decided = h("output", { id: "decided" }, plural(found.n_decided, "decision"));
  const tools = h("div", { class: "row tools" }, links, h("span", { class: "row" }, decided, h("a", { class: "button", href: "/view/decisions.csv", download: true }, "Export as CSV")));
  const help = h("p", { class: "hint" }, "Arrow keys walk; ", h("kbd", {}, "K"), " keeps, ", h("kbd", {}, "X"), " rejects, ", h("kbd", {}, "U"), " takes it back; ", h("kbd", {}, "A"), " accepts the suggestion for the group. Decisions are stored beside the collection; nothing is deleted.");
  if (!found.n_groups) return [h("div", {}, control, tools), empty(`No two items are within radius ${found.radius}`, found.radius < found.reach ? "Move the slider to the right to see what is a little less alike." : "")];
  const parts = found.groups.map((group) => groupOf(group));
  return [h("div", {}, control, tools, help), ...parts, pages(found, skip)];
}

function groupOf(group) {
  const suggest = () => decide(group.items.map((item, i) => [item, i === 0 ? "keep" : "reject"]));
  const tiles = group.items.map((item, i) => {
    const element = tile(item, { note: () => (i === 0 ? "suggested to keep" : `distance ${item.distance}`), actions: () => [choice(item, "keep", "Keep"), choice(item, "reject", "Reject"), about(item)] });
    const face = element.querySelector(".face");
    face.tabIndex = 0;
    face.setAttribute("role", "group");
    face.item = item;
    face.accept = suggest;
    const facts = factsOf(item);
    element.querySelector(".foot").append(h("span", { class: "facts" }, facts));
    face.setAttribute("aria-label", [item.title, i === 0 ? "suggested to keep" : `distance ${item.distance}`, facts].join(", "));
    element.classList.toggle("suggested", i === 0);
    mark(element, item.decision);
    return element;
  });
  const more = group.count > group.items.length ? h("p", { class: "hint" }, `${count(group.count - group.items.length)} more are not shown.`) : null;
  return h("section", { class: "group", "aria-label": `Group ${group.number}` }, h("h2", {}, `Group ${count(group.number)}`, " ", h("span", { class: "count" }, plural(group.count, "item")), h("button", { type: "button", class: "accept", click: suggest }, "Accept suggestion")), h("ul", { class: "tiles large" }, tiles), more);
}

function choice(item, decision, words) {
  const press = () => decide([[item, item.decision === decision ? null : decision]]);
  return h("button", { type: "button", class: `choice ${decision}`, "aria-pressed": String(item.decision === decision), "aria-label": `${words} ${item.title}`, click: press }, words);
}

function factsOf(item) {
  const { width, height, n_bytes: bytes, taken } = item.facts;
  return [width && height ? `${width}\u00a0×\u00a0${height}` : null, bytes ? (bytes < 1e6 ? `${Math.ceil(bytes / 1000)}\u00a0kB` : `${(bytes / 1e6).toFixed(1)}\u00a0MB`) : null, taken ? taken.slice(0, 10).replaceAll("-", "\u2011") : null].filter(Boolean).join(" · ");
}

async function decide(choices) {
  const before = choices.map(([item]) => item.decision);
  for (const [item, decision] of choices) change(item, decision);
  const turn = posted;
  let done;
  posted = new Promise((resolve) => { done = resolve; });
  await turn;
  try {
    const answer = await post("/view/decisions", Object.fromEntries(choices.map(([item, decision]) => [item.id, decision])));
    document.getElementById("decided").textContent = plural(answer.n_decided, "decision");
    say(choices.length === 1 ? `${choices[0][1] ?? "undecided"}: ${choices[0][0].title}` : `${choices.length} decisions`);
  } catch (error) {
    choices.forEach(([item], i) => change(item, before[i]));
    document.getElementById("decided").textContent = `Not stored: ${error.message}`;
    say(error.message);
  } finally {
    done();
  }
}

function change(item, decision) {
  item.decision = decision;
  for (const element of document.querySelectorAll(`.tile[data-id="${Number(item.id)}"]`)) mark(element, decision);
}

function mark(element, decision) {
  element.classList.toggle("kept", decision === "keep");
  element.classList.toggle("rejected", decision === "reject");
  for (const button of element.querySelectorAll(".choice")) button.setAttribute("aria-pressed", String(button.classList.contains(decision ?? "none")));
}

function keyboard(page) {
  page.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const face = event.target.closest(".tile")?.querySelector(".face");
    if (!face) return;
    const faces = [...page.querySelectorAll(".tile .face")];
    const here = faces.indexOf(face);
    const key = event.key.toLowerCase();
    const step = { arrowright: 1, arrowleft: -1 }[key];
    const rows = { arrowdown: 1, arrowup: -1 }[key];
    if (step) faces[Math.min(Math.max(here + step, 0), faces.length - 1)].focus();
    else if (rows) nextGroup(face, rows)?.focus();
    else if (key in KEYS) {
      decide([[face.item, KEYS[key]]]);
      if (KEYS[key]) faces[Math.min(here + 1, faces.length - 1)].focus();
    } else if (key === "a") {
      face.accept();
      (nextGroup(face, 1) ?? face).focus();
    } else return;
    event.preventDefault();
  });
}

function nextGroup(face, step) {
  const groups = [...document.querySelectorAll(".group")];
  return groups[groups.indexOf(face.closest(".group")) + step]?.querySelector(".face");
}

function pages(found, skip) {
  const size = found.groups.length;
  const last = skip + size;
  if (!skip && last >= found.n_groups) return h("p", {});
  return h("nav", { class: "row pages", "aria-label": "Pages of groups" }, h("button", { type: "button", disabled: skip === 0, click: () => go({ skip: Math.max(0, skip - 20) || null }) }, "Previous"), h("span", {}, `Groups ${count(skip + 1)} to ${count(last)} of ${count(found.n_groups)}`), h("button", { type: "button", disabled: last >= found.n_groups, click: () => go({ skip: last }) }, "Next"));
}
