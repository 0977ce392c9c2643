// Elements of the page. Text is always set as text, so that nothing in metadata becomes HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; attributes that are null or false are left out, functions listen. */
export function h(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function s(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else if (key in element && (key === "value" || key === "checked" || key === "disabled")) element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false).map((one) => (one instanceof Node ? one : String(one))));
  return element;
}

/** An SVG chart that the server drew and escaped. */
export function chart(text) {
  const parsed = new DOMParser().parseFromString(text.replace("<svg ", `<svg xmlns="${SVG}" `), "image/svg+xml");
  return parsed.documentElement.nodeName === "svg" ? document.importNode(parsed.documentElement, true) : h("p", {}, "The chart cannot be shown.");
}

/** Show these in an element instead of what it has; null and false are left out. */
export function put(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

/** 1234 as 1,234. */
export function count(n) {
  return Number(n).toLocaleString("en");
}

/** "1 item", "2 items". */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function say(text) {
  document.getElementById("status").textContent = text;
}

/** A box that says why there is nothing to see, and what to do. */
export function empty(title, ...more) {
  return h("div", { class: "empty" }, h("h2", {}, title), ...more.map((one) => (one instanceof Node ? one : h("p", {}, one))));
}

/** The sentence of an error, in place of what it prevented. */
export function failure(error) {
  return h("div", { class: "empty error", role: "alert" }, h("h2", {}, "That did not work"), h("p", {}, error.message ?? String(error)));
}

/** Call a function once, after calls have stopped for a while. */
export function later(work, milliseconds = 150) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}
