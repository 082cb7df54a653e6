// Makes elements. A child that is a string becomes text, never markup.

/** Returns an element. Attributes that begin with `on` are listeners; `false` and `null` leave one out. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(9).filter((child) => child != null && child !== false));
  return element;
}

/** Returns the address of an entry within the page. */
export function toolHash(path) {
  return "#/tools" + path.split("/").map(encodeURIComponent).join("/");
}

/** Returns a list of names with values; pairs without a value are left out. */
export function facts(...pairs) {
  const given = pairs.filter(([, value]) => value != null && value !== "");
  return el("dl", {}, given.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** Returns a table with a caption. */
export function table(caption, heads, rows) {
  const head = el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name)));
  const body = rows.map((cells) =>
    el("tr", {}, cells.map((cell, at) => el(at ? "td" : "th", at ? {} : { scope: "row" }, cell ?? ""))),
  );
  const whole = el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption }, whole);
}

/** Returns a field with its label. */
export function labelled(label, field, hint) {
  field.id ||= "f" + (labelled.count = (labelled.count ?? 0) + 1);
  if (!hint) return el("p", { class: "field" }, el("label", { for: field.id }, label), field);
  const note = el("small", { id: field.id + "-hint" }, hint);
  field.setAttribute("aria-describedby", note.id);
  return el("p", { class: "field" }, el("label", { for: field.id }, label), field, note);
}

/** Returns a block with a command, and a button that copies it. `text` returns the command. */
export function command(text) {
  const shown = el("pre", { tabindex: "0", "aria-label": "Command" }, el("code", {}, text()));
  const said = el("span", { role: "status" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      said.textContent = "Copied.";
    } catch {
      getSelection()?.selectAllChildren(shown);
      said.textContent = "Selected: copy it with the keyboard.";
    }
  };
  const box = el("div", { class: "block" }, shown, el("button", { type: "button", onclick: copy }, "Copy"), said);
  return { box, update: () => (shown.firstChild.textContent = text()) };
}
