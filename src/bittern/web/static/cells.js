// Which part of an experiment is shown: a task, and cells (method, length and run).

import { h } from "./dom.js";
import { go } from "./state.js";

export function cellName(one) {
  return `${one.method}${one.n_bits ? `, ${one.n_bits} bits` : ""}`;
}

/** A list to choose one of; `choices` are [value, text]. */
export function picker(id, label, choices, chosen, onChoose) {
  const select = h("select", { id, change: () => onChoose(select.value) }, choices.map(([value, text]) => h("option", { value }, text)));
  select.value = String(chosen);
  return h("div", { class: "ask inline" }, h("label", { for: id }, label), select);
}

/** The tasks of an experiment, if it has several. */
export function taskPicker(names, query) {
  if (!names?.length) return null;
  return picker("task", "Task", [["", "mean of the main tasks"], ...names.map((one) => [one, one])], query.get("task") ?? "", (task) => go({ task, bin: null, item: null, of: null, as: null }));
}
