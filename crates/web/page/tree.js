// The view of the tree: nodes and entries as rows, a search, and the entry that is open.

import { el, toolHash } from "./dom.js";
import { rowList } from "./rows.js";
import { visible } from "./text.js";
import { toolView } from "./tool.js";

/** Returns each entry of a listing with its level; `closed` has the paths of nodes whose children are left out. */
function flatten(node, closed, level, out) {
  for (const child of node.children ?? []) {
    out.push({ ...child, level, isOpen: child.children && !closed.has(child.path) });
    if (child.children && !closed.has(child.path)) flatten(child, closed, level + 1, out);
  }
  return out;
}

/** Returns the content of a row. */
function rowContent(item, isHit) {
  const name = isHit ? item.path : item.path.slice(item.path.lastIndexOf("/") + 1);
  const mark = item.children ? (item.isOpen ? "▾" : "▸") : "";
  return [
    el("span", { class: `indent level-${isHit ? 1 : Math.min(item.level, 8)}`, "aria-hidden": "true" }, mark),
    el("span", { class: "name" }, visible(name)),
    item.withdrawn && el("span", { class: "badge bad" }, "withdrawn"),
    item.type !== "tool" && item.type !== "node" && el("span", { class: "badge" }, item.type),
    el("span", { class: "summary" }, visible(item.summary ?? "")),
  ];
}

/** Makes the view. It stays while entries are opened; `open(path)` shows another one. */
export async function treeView(api, options) {
  const listing = await api.tree();
  const closed = new Set();
  let hits = null;
  let current = "";
  const all = flatten(listing, closed, 1, []);
  const detail = el("section", { class: "detail", "aria-label": "Entry", "aria-live": "polite" });
  const count = el("span", { role: "status", class: "count" });

  const toggle = (item) => {
    if (!closed.delete(item.path)) closed.add(item.path);
    draw(item.path);
  };
  const list = rowList({
    role: "tree",
    rowRole: "treeitem",
    label: "Entries",
    render: (item) => rowContent(item, hits),
    describe: (item) => ({
      "aria-level": hits ? 1 : item.level,
      "aria-expanded": item.children && !hits ? String(Boolean(item.isOpen)) : null,
      "aria-current": item.path === current ? "true" : null,
    }),
    open: (item) => {
      if (item.children && !hits) toggle(item);
      location.hash = toolHash(item.path);
    },
    key: (key, item) => {
      if (hits || !item) return false;
      if (key === "ArrowRight" && item.children && !item.isOpen) toggle(item);
      else if (key === "ArrowLeft" && item.children && item.isOpen) toggle(item);
      else if (key === "ArrowLeft") draw(item.path.slice(0, item.path.lastIndexOf("/")));
      else return key === "ArrowRight";
      return true;
    },
  });

  function draw(path) {
    const items = hits ?? flatten(listing, closed, 1, []);
    list.set(items, path && ((item) => item.path === path));
    count.textContent = hits ? `${items.length} of ${all.length}` : `${all.length} entries`;
  }

  const field = el("input", { type: "search", id: "search", autocomplete: "off", spellcheck: "false" });
  const filter = () => {
    const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (item) => {
      const text = `${item.path} ${item.summary ?? ""}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    };
    hits = wanted.length ? all.filter((item) => item.type !== "node" && fits(item)) : null;
    draw();
  };
  field.addEventListener("input", filter);
  const rank = async (event) => {
    event.preventDefault();
    if (!field.value.trim() || !api.search) return;
    hits = (await api.search(field.value)).children;
    draw();
    list.box.focus();
  };
  const search = el(
    "form",
    { class: "search", role: "search", onsubmit: (event) => rank(event).catch(options.fail) },
    el("label", { for: "search" }, "Find entries"),
    field,
    api.search && el("button", { type: "submit" }, "Rank"),
    count,
  );

  draw();
  return {
    view: el("div", { class: "two" }, el("section", { class: "list", "aria-label": "Tree" }, search, list.box), detail),
    async open(path) {
      current = path;
      draw();
      if (!path) return detail.replaceChildren(el("p", {}, "Choose an entry to see its text, schema and example."));
      const shown = await toolView(api, path, options);
      if (current === path) detail.replaceChildren(shown);
    },
  };
}
