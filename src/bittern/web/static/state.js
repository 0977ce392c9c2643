// The state of a view is in the address: links can be sent, and the back button works.

const listeners = new Set();

export function params() {
  return new URLSearchParams(location.search);
}

/** The address of a view with these parameters; null leaves one out. */
export function address(view, values = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return `/${view}${text ? `?${text}` : ""}`;
}

/** Change some parameters, as a new entry of the history unless `replace` is set. */
export function go(changes, { replace = false } = {}) {
  const query = params();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  const there = `${location.pathname}${text ? `?${text}` : ""}`;
  if (there === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", there);
  for (const listener of listeners) listener();
}

/** Follow links within a view without loading the page again. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (!link || !isPlain || event.defaultPrevented || link.hasAttribute("download")) return;
    const there = new URL(link.href);
    if (there.origin !== location.origin || there.pathname !== location.pathname || there.hash) return;
    event.preventDefault();
    document.getElementById("item").close();
    if (there.search === location.search) return;
    history.pushState(null, "", there);
    for (const listener of listeners) listener();
    scrollTo(0, 0);
    document.getElementById("main").focus({ preventScroll: true });
  });
}

export function onChange(listener) {
  listeners.add(listener);
  addEventListener("popstate", listener);
}
