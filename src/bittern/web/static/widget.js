/** The search view of a notebook; bands.js stands before this in the same module. */
function render({ model, el }) {
  const form = make("form", "bittern-query");
  const text = make("input", "");
  const file = make("input", "");
  const status = make("p", "bittern-soft");
  const results = make("div", "");
  text.type = "search";
  text.placeholder = model.get("by_text") ? "item id, or a text" : "item id";
  text.setAttribute("aria-label", text.placeholder);
  file.type = "file";
  file.accept = "image/*";
  file.setAttribute("aria-label", "image to search by");
  form.append(text, make("button", "", "Search"));
  if (model.get("by_image")) {
    form.append(file);
  }
  status.setAttribute("role", "status");
  // JupyterLab takes the press of Enter for itself, so that its release has to do.
  text.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  text.addEventListener("keyup", (event) => event.key === "Enter" && form.requestSubmit());
  el.append(form, status, results);

  const ask = (query, buffers = []) => {
    status.textContent = "Searching …";
    model.send({ kind: "search", query, k: model.get("k") }, undefined, buffers);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const value = text.value.trim();
    if (value !== "") {
      ask(/^\d+$/.test(value) ? { id: Number(value) } : { text: value });
    }
  });
  file.addEventListener("change", async () => {
    if (file.files.length > 0) {
      ask({ image: file.files[0].name }, [await file.files[0].arrayBuffer()]);
    }
  });
  const onMessage = (message) => {
    if (message.kind === "error") {
      status.textContent = message.sentence;
      results.replaceChildren();
    } else if (message.kind === "bands") {
      status.textContent = message.summary;
      drawBands(results, message, { onPick: (item) => ask({ id: item.id }) });
    }
  };
  model.on("msg:custom", onMessage);
  return () => model.off("msg:custom", onMessage);
}

export default { render };
