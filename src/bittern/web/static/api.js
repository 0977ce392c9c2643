// Requests to the server, with progress on anything that takes longer than half a second.

import { say } from "./dom.js";

const PATIENCE = 500; // milliseconds before progress is shown
const running = new Map();
let jobs = 0;
let timer = null;

/** JSON from the server; an error has the server's sentence. */
export async function get(path, values = {}, { signal = null, binary = false } = {}) {
  const job = `${Date.now().toString(36)}-${(jobs += 1)}`;
  const query = new URLSearchParams();
  for (const [name, value] of [...Object.entries(values), ["job", job]]) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return watched(job, () => fetch(`${path}?${query}`, { signal }), binary);
}

export async function post(path, body, type = "application/json") {
  const content = type === "application/json" ? JSON.stringify(body) : body;
  return watched(null, () => fetch(path, { method: "POST", body: content, headers: { "Content-Type": type } }));
}

async function watched(job, ask, binary = false) {
  const key = job ?? `post-${(jobs += 1)}`;
  running.set(key, { job, since: Date.now(), what: "" });
  watch();
  try {
    const response = await ask();
    if (!response.ok) throw new Error(await sentence(response));
    return binary ? await response.arrayBuffer() : await response.json();
  } catch (error) {
    if (error instanceof TypeError) throw new Error("The server does not answer; is 'bittern explore' still running?");
    throw error;
  } finally {
    running.delete(key);
    draw();
  }
}

async function sentence(response) {
  try {
    const said = await response.json();
    return typeof said.error === "string" ? said.error : `The server answered ${response.status}.`;
  } catch {
    return `The server answered ${response.status}.`;
  }
}

function watch() {
  if (timer === null) timer = setTimeout(look, PATIENCE);
}

async function look() {
  timer = null;
  for (const one of running.values()) {
    if (one.job === null || Date.now() - one.since < PATIENCE) continue;
    try {
      Object.assign(one, await (await fetch(`/view/progress?job=${one.job}`)).json());
    } catch {
      // the request itself will tell
    }
  }
  draw();
  if (running.size) watch();
}

function draw() {
  const bar = document.getElementById("progress");
  const slow = [...running.values()].filter((one) => Date.now() - one.since >= PATIENCE - 20);
  if (!slow.length) {
    bar.hidden = true;
    return;
  }
  const one = slow[0];
  const seconds = Math.round((Date.now() - one.since) / 1000);
  const isKnown = one.total > 0;
  const part = isKnown ? Math.round((100 * one.done) / one.total) : 0;
  const text = isKnown ? `${one.what}: ${one.done.toLocaleString("en")} of ${one.total.toLocaleString("en")}` : `Working${seconds ? `, ${seconds} s` : " …"}`;
  bar.querySelector("span").textContent = text;
  bar.classList.toggle("unknown", !isKnown);
  bar.firstElementChild.style.width = isKnown ? `${part}%` : "";
  if (isKnown) bar.setAttribute("aria-valuenow", String(part));
  else bar.removeAttribute("aria-valuenow");
  if (bar.hidden) say("Working");
  bar.hidden = false;
}
