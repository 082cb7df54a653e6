// A list of any length: only the rows that can be seen are elements of the page.

import { el } from "./dom.js";

/** The height of a row, as in the style sheet. */
const HEIGHT = 28;
/** The rows beyond the edges that exist as well. */
const MARGIN = 8;

/** Makes a list. `render(item)` returns the content of a row, `describe(item)` its attributes, `open(item)` acts on it. */
export function rowList({ role, rowRole, label, render, describe, open, key }) {
  const id = "rows-" + label.replace(/\W/g, "");
  const space = el("div", { class: "space", role: "presentation" });
  const box = el("div", { class: "rows", role, tabindex: "0", "aria-label": label }, space);
  let items = [];
  let active = 0;

  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - MARGIN);
    const seen = Math.ceil((box.clientHeight || 600) / HEIGHT) + 2 * MARGIN;
    const rows = items.slice(first, first + seen).map((item, offset) => {
      const at = first + offset;
      const row = el(
        "div",
        {
          role: rowRole,
          id: `${id}-${at}`,
          class: "row",
          "aria-posinset": at + 1,
          "aria-setsize": items.length,
          "aria-selected": String(at === active),
          onclick: () => choose(at, true),
          ...describe(item),
        },
        render(item),
      );
      row.style.transform = `translateY(${at * HEIGHT}px)`;
      return row;
    });
    space.replaceChildren(...rows);
    if (items.length) box.setAttribute("aria-activedescendant", `${id}-${active}`);
    else box.removeAttribute("aria-activedescendant");
  }

  function choose(at, opens) {
    active = Math.max(0, Math.min(items.length - 1, at));
    const top = active * HEIGHT;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = top + HEIGHT - box.clientHeight;
    draw();
    if (opens && items[active]) open(items[active], active);
  }

  const page = () => Math.max(1, Math.floor(box.clientHeight / HEIGHT) - 1);
  const moves = {
    ArrowDown: () => active + 1,
    ArrowUp: () => active - 1,
    PageDown: () => active + page(),
    PageUp: () => active - page(),
    Home: () => 0,
    End: () => items.length - 1,
  };
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (moves[event.key]) choose(moves[event.key](), false);
    else if (event.key === "Enter" || event.key === " ") choose(active, true);
    else if (!key?.(event.key, items[active])) return;
    event.preventDefault();
  });
  box.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(box);

  return {
    box,
    /** Shows other items; the row that `keep` accepts becomes the active one. */
    set(next, keep) {
      items = next;
      space.style.height = `${items.length * HEIGHT}px`;
      const kept = keep ? items.findIndex(keep) : -1;
      if (kept >= 0) choose(kept, false);
      else choose(Math.min(active, items.length - 1), false);
    },
  };
}
