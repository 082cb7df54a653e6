// The view of one entry: its reviewed text, schemas, example and digest, and a form for its arguments.

import { el, facts, toolHash } from "./dom.js";
import { callForm } from "./form.js";
import { block, json, visible } from "./text.js";

const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/** Returns a part with a heading. */
function part(title, ...content) {
  return el("section", {}, el("h3", {}, title), ...content);
}

/** Returns why a tool is withdrawn or cannot be called now. */
function states({ withdrawn, unavailable }) {
  const wait = unavailable?.retry_after_s != null ? `, again in ${unavailable.retry_after_s} s` : "";
  return [
    withdrawn &&
      el(
        "p",
        { class: "note bad" },
        `Withdrawn since ${withdrawn.since}, class ${withdrawn.class}, rules ${withdrawn.rules.join(", ")}: `,
        visible(withdrawn.message),
      ),
    unavailable && el("p", { class: "note bad" }, `Its source cannot be called now: ${unavailable.cause}${wait}.`),
  ];
}

/** Returns the groups that may call an entry, for operators. */
function callers(path, access) {
  const row = access?.tools?.find((tool) => tool.path === path);
  if (!row) return null;
  const names = (of) => of.map((at) => access.groups[at]).join(", ");
  return facts(
    ["may call it", row.may_call.length ? names(row.may_call) : "no group"],
    ["with some arguments", row.narrowed.length ? names(row.narrowed) : null],
  );
}

/** Makes the view of the entry at a path. */
export async function toolView(api, path, options) {
  const entry = await api.describe(path);
  const title = el("h2", { tabindex: "-1" }, visible(entry.path));
  if (entry.children) {
    const items = entry.children.map((child) =>
      el("li", {}, el("a", { href: toolHash(child.path) }, visible(child.path)), " ", visible(child.summary ?? "")),
    );
    return el("article", {}, title, block(entry.description ?? entry.summary ?? "", "Description"), el("ul", {}, items.slice(0, 500)));
  }
  const who = callers(path, options.access);
  const hints = HINTS.filter((name) => entry.annotations && name in entry.annotations);
  return el(
    "article",
    {},
    title,
    states(entry),
    block(entry.description ?? entry.summary ?? "", "Description"),
    facts(
      ["kind", entry.type],
      ["digest", entry.digest && el("code", {}, visible(entry.digest))],
      ["hints", hints.map((name) => `${name}: ${entry.annotations[name]}`).join(", ")],
    ),
    who && part("Who may call it", who),
    entry.type === "tool" && part("Arguments", callForm(api, entry, options)),
    entry.args_schema && part("Schema of the arguments", json(entry.args_schema, "Schema of the arguments")),
    entry.example_args && part("Example", json(entry.example_args, "Example")),
    entry.output_schema && part("Schema of the result", json(entry.output_schema, "Schema of the result")),
    entry.annotations && part("Annotations", json(entry.annotations, "Annotations")),
  );
}
