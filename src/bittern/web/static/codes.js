// Codes: balance and correlation of bits, what turns a bit on, buckets, and the map.

import { get } from "./api.js";
import { correlations, histogram, percent, shares } from "./charts.js";
import { count, empty, failure, h, plural, put, say } from "./dom.js";
import { about } from "./item.js";
import { mapSection } from "./map.js";
import { address, go } from "./state.js";
import { gallery, picture, shown, walkable } from "./tiles.js";

export function mount(root, info) {
  const map = mapSection(info);
  const bits = h("section", { "aria-label": "Bits" });
  const one = h("section", { "aria-label": "One bit" });
  const buckets = h("section", { "aria-label": "Buckets" });
  const page = walkable(h("div", { class: "page" }, map.element, h("div", { class: "two" }, bits, buckets), one));
  root.append(info.n_items ? page : empty("This collection is empty", "Add items with 'bittern index add', and open it again."));
  let isDrawn = false;
  return async (query, signal) => {
    if (!info.n_items) return;
    const tasks = [map.update(query, signal)];
    if (!isDrawn) {
      isDrawn = true;
      tasks.push(fill(bits, async () => drawBits(await get("/view/codes/bits"))), fill(buckets, async () => drawBuckets(await get("/view/codes/buckets"))));
    }
    const number = query.get("bit");
    for (const bar of bits.querySelectorAll(".bar")) bar.setAttribute("aria-pressed", String(bar.dataset.bit === number));
    if (number === null) one.replaceChildren();
    else if (one.dataset.bit !== number) tasks.push(fill(one, async () => drawBit(await get(`/view/codes/bit/${Number(number)}`, {}, { signal }))));
    one.dataset.bit = number ?? "";
    await Promise.all(tasks);
  };
}

async function fill(section, make) {
  try {
    put(section, await make());
  } catch (error) {
    if (error.name !== "AbortError") section.replaceChildren(failure(error));
  }
}

function drawBits(found) {
  const choose = (i) => go({ bit: i });
  const bars = histogram({ counts: found.balance.map((one) => Math.round(1000 * one)), label: "Share of ones of each bit", name: (i) => `bit ${i}`, onChoose: choose });
  bars.classList.add("balance");
  [...bars.children].forEach((bar, i) => {
    const words = `bit ${i}: on in ${percent(found.balance[i])}`;
    bar.dataset.bit = String(i);
    bar.disabled = false;
    bar.title = words;
    bar.setAttribute("aria-label", words);
    bar.firstChild.style.height = `${100 * found.balance[i]}%`;
  });
  const pointed = h("p", { class: "hint" }, "Point at the square to read two bits.");
  const square = correlations({
    values: found.correlation,
    label: `Correlation of every two bits; on average ${found.mean_correlation.toFixed(3)}, at most ${found.largest_correlation.toFixed(3)}`,
    onChoose: (i) => choose(i),
    onPoint: (i, j) => { pointed.textContent = `Bits ${i} and ${j}: correlation ${found.correlation[i]?.[j]?.toFixed(3)}`; },
  });
  return [
    h("h2", {}, "Balance of the bits"),
    h("p", { class: "lead" }, "The share of items that have each bit; the line is one half, where a bit says most. Click a bit to see what turns it on."),
    bars,
    h("h2", {}, "Correlation of the bits"),
    h("p", { class: "lead" }, `On average ${found.mean_correlation.toFixed(3)}, at most ${found.largest_correlation.toFixed(3)}, without signs. Blue: on together; orange: one or the other.`),
    square,
    pointed,
  ];
}

function drawBuckets(found) {
  const names = found.sizes.map((one) => (one.from === one.to ? `${one.from}` : `${count(one.from)}–${count(one.to)}`));
  const highest = Math.max(1, ...found.sizes.map((one) => one.count));
  const rows = found.sizes.map((one, i) => ({ name: `${names[i]} ${one.to === 1 ? "item" : "items"}`, share: one.count / highest, text: count(one.count) }));
  return [
    h("h2", {}, "Occupancy of the buckets"),
    h("p", { class: "lead" }, `${count(found.n_items)} items have ${plural(found.n_buckets, "different code")}; ${count(found.n_alone)} are alone in theirs. Entropy ${found.entropy.toFixed(2)} bits of at most ${Math.log2(Math.max(1, found.n_items)).toFixed(2)}.`),
    shares(rows),
    h("h3", {}, "The fullest buckets"),
    h("ul", { class: "tiles" }, found.largest.map((one) => h("li", { class: "tile" }, h("a", { class: "face", href: address("search", { code: one.code, radius: 0 }), "aria-label": `${plural(one.count, "item")} with the code ${one.code}` }, picture(one.item)), h("div", { class: "foot" }, h("span", { class: "caption" }, plural(one.count, "item")))))),
  ];
}

function drawBit(found) {
  say(`Bit ${found.bit}`);
  const side = (title, items) => (items?.length ? h("section", { "aria-label": title }, h("h3", {}, title), gallery(items, { href: (item) => address("search", { item: item.id }), note: (item) => (item.value === undefined ? null : shown(item.value)), actions: (item) => [about(item)] })) : null);
  const measured = found.source ? `Numbers are what the hasher compares with 0, for ${plural(found.n_measured, "item")} (${found.source}).` : found.note;
  return [
    h("h2", {}, `What turns bit ${found.bit} on`),
    h("p", { class: "lead" }, `It is on in ${percent(found.share)} of the items. ${measured ?? ""} `, h("button", { type: "button", click: () => go({ bit: null }) }, "Close")),
    found.classes.length ? shares(found.classes.slice(0, 12).map((one) => ({ name: one.name, share: one.share, text: percent(one.share) }))) : null,
    h("div", { class: "two" }, [side(found.source ? "Just off" : "Off", found.off_near ?? found.off_far), side(found.source ? "Just on" : "On", found.on_near ?? found.on_far)]),
    found.source ? h("div", { class: "two" }, [side("Farthest off", found.off_far), side("Farthest on", found.on_far)]) : null,
  ].filter(Boolean);
}
