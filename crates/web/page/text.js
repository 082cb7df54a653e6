// Makes the hidden characters of a text visible. Every text of a server passes through here.

import { el } from "./dom.js";

// Controls, format characters such as bidirectional marks and tags, characters without a glyph, variation selectors.
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/gu;
/** A text that has no hidden character, as most have. */
const PLAIN = /^[\x20-\x7e]*$/;
/** The characters that are shown at first, and with each click on the button for more. */
const CHUNK = 20000;

/** Returns the name of a character: `U+202E`. */
function codePoint(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

/** Returns an element with a text of a server on its own line of writing, each hidden character as a mark. */
export function visible(text, { lines = false } = {}) {
  const out = el("span", { class: "server" });
  if (PLAIN.test(text)) {
    out.append(text);
    return out;
  }
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (lines && (found[0] === "\n" || found[0] === "\t")) continue;
    out.append(text.slice(from, found.index));
    out.append(el("span", { class: "hidden", title: "hidden character" }, codePoint(found[0])));
    from = found.index + found[0].length;
  }
  out.append(text.slice(from));
  return out;
}

/** Returns a block with a long text of a server; the rest of it comes by a button. */
export function block(text, label) {
  const out = el("pre", { tabindex: "0", "aria-label": label });
  let shown = 0;
  const more = el("button", { type: "button", onclick: () => show() });
  const box = el("div", { class: "block" }, out, more);
  function show() {
    let end = Math.min(text.length, shown + CHUNK);
    // A pair of surrogates is one character.
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1)) && end < text.length) end += 1;
    out.append(visible(text.slice(shown, end), { lines: true }));
    shown = end;
    more.hidden = shown === text.length;
    more.textContent = `Show more (${text.length - shown} characters left)`;
  }
  show();
  return box;
}

/** Returns a value as a block of indented JSON. */
export function json(value, label) {
  return block(JSON.stringify(value, null, 2) ?? "", label);
}

/** Returns JSON in ASCII: each hidden character is an escape, so that a copy of it hides none. */
export function asciiJson(value) {
  return JSON.stringify(value).replace(/[^\x20-\x7e]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
}
