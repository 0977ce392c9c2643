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

export function onChange(listener) {
  listeners.add(listener);
  addEventListener("popstate", listener);
}
