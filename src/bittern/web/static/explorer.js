// Starts the view of this page, and shows it again whenever the address changes.

import { get } from "./api.js";
import { count, failure } from "./dom.js";
import { followLinks, onChange, params } from "./state.js";

const main = document.getElementById("main");
const view = document.body.dataset.view;

async function start() {
  let shown;
  try {
    const [info, module] = await Promise.all([get("/view/info"), import(`./${view}.js`)]);
    document.getElementById("facts").textContent = facts(info);
    shown = module.mount(main, info);
  } catch (error) {
    main.append(failure(error));
    return;
  }
  let last = null;
  const update = async () => {
    last?.abort();
    last = new AbortController();
    const { signal } = last;
    main.setAttribute("aria-busy", "true");
    try {
      await shown(params(), signal);
    } catch (error) {
      if (error.name !== "AbortError") shown.fail?.(error);
    } finally {
      if (!signal.aborted) main.removeAttribute("aria-busy");
    }
  };
  onChange(update);
  followLinks();
  await update();
}

function facts(info) {
  if (info.kind !== "collection") return "";
  const recipe = [...new Set([info.features, info.hasher])].filter(Boolean).join(" + ");
  return `${count(info.n_items)} items · ${count(info.n_bits)} bits${recipe ? ` · ${recipe}` : ""}`;
}

start();
