/**
 * Draw what a search found in tie bands: one box for each distance, with its count.
 * Inside a box no order is claimed.
 *
 * found: {bands: [{distance, count, items: [{id, thumbnail, label}]}]}, nearest first.
 * options.most: items of a band that are shown before "… more" is opened (default 24).
 * options.onPick(item): called when an item is chosen; without it, items are not buttons.
 *
 * Labels are set as text, never as HTML.
 */
export function drawBands(element, found, { most = 24, onPick = null } = {}) {
  const bands = found.bands.map((band) => drawBand(band, most, onPick));
  element.classList.add("bittern-bands");
  element.replaceChildren(...bands);
  if (bands.length === 0) {
    element.append(make("p", "bittern-soft", "Nothing found."));
  }
}

function drawBand(band, most, onPick) {
  const section = make("section", "bittern-band");
  const heading = make("h4", "", `distance ${shownDistance(band.distance)} `);
  const size = `${band.count.toLocaleString("en")} item${band.count === 1 ? "" : "s"}`;
  heading.append(make("span", "bittern-soft", size));
  section.append(heading, drawItems(band.items.slice(0, most), onPick));
  const rest = band.items.slice(most);
  if (rest.length > 0) {
    section.append(folded(`${rest.length} more at distance ${shownDistance(band.distance)}`, rest, onPick));
  }
  const unlisted = band.count - band.items.length;
  if (unlisted > 0) {
    section.append(make("p", "bittern-soft", `${unlisted.toLocaleString("en")} more are not listed.`));
  }
  return section;
}

function folded(title, items, onPick) {
  const details = make("details", "");
  details.append(make("summary", "", title));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      details.append(drawItems(items, onPick)); // images load when they are wanted
    }
  });
  return details;
}

function drawItems(items, onPick) {
  const list = make("ul", "bittern-items");
  list.append(...items.map((item) => drawItem(item, onPick)));
  return list;
}

function drawItem(item, onPick) {
  const place = make("li", "");
  const tile = make(onPick ? "button" : "div", "bittern-item");
  if (item.thumbnail) {
    const image = make("img", "");
    image.src = item.thumbnail;
    image.alt = "";
    image.loading = "lazy";
    tile.append(image);
  }
  tile.append(make("span", "", item.label));
  tile.title = item.label;
  if (onPick) {
    tile.type = "button";
    tile.addEventListener("click", () => onPick(item));
  }
  place.append(tile);
  return place;
}

function make(name, kind, text = null) {
  const element = document.createElement(name);
  if (kind) {
    element.className = kind;
  }
  if (text !== null) {
    element.textContent = text;
  }
  return element;
}

function shownDistance(distance) {
  return Number.isInteger(distance) ? distance.toLocaleString("en") : String(Number(distance.toPrecision(4)));
}
