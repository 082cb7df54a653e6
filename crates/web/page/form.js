// A form for the arguments of a tool, made from its schema: it shows the request to copy, and may send it.

import { command, el, labelled } from "./dom.js";
import { asciiJson, json, visible } from "./text.js";

/** The properties that get a field; further ones are written as JSON. */
const MAX_FIELDS = 100;
/** The characters of a description beside its field. */
const MAX_HINT = 300;
/** The choices of an enumeration that a list shows. */
const MAX_CHOICES = 200;

/** Whether a tool may destroy something: hints that are absent count as unsafe. */
function mayDestroy(annotations) {
  return annotations?.readOnlyHint !== true && annotations?.destructiveHint !== false;
}

/** Returns a word of a shell. */
function shellWord(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

/** Returns the field of a property, and a function that reads it: `undefined` leaves the property out. */
function fieldOf(schema, example) {
  const kind = Array.isArray(schema?.type) ? schema.type.find((type) => type !== "null") : schema?.type;
  const choices = Array.isArray(schema?.enum) ? schema.enum.slice(0, MAX_CHOICES) : kind === "boolean" ? [true, false] : null;
  if (choices) {
    const field = el("select", {}, el("option", { value: "" }, "(left out)"));
    choices.forEach((value, at) => field.append(el("option", { value: at }, visible(asciiJson(value)).textContent)));
    const chosen = choices.findIndex((value) => JSON.stringify(value) === JSON.stringify(example));
    if (chosen >= 0) field.value = String(chosen);
    return { field, read: () => (field.value === "" ? undefined : choices[Number(field.value)]) };
  }
  if (kind === "string") {
    const field = el("input", { type: "text", value: typeof example === "string" ? example : "" });
    return { field, read: () => (field.value === "" ? undefined : field.value) };
  }
  if (kind === "integer" || kind === "number") {
    const field = el("input", { type: "number", step: kind === "integer" ? "1" : "any", value: example });
    return { field, read: () => (field.value === "" ? undefined : Number(field.value)) };
  }
  const field = el("textarea", { rows: "3", spellcheck: "false" });
  field.value = example === undefined ? "" : JSON.stringify(example);
  return { field, isJson: true, read: () => (field.value.trim() === "" ? undefined : JSON.parse(field.value)) };
}

/** Makes the form of a tool. */
export function callForm(api, entry, options) {
  const properties = Object.entries(entry.args_schema?.properties ?? {});
  const required = new Set(Array.isArray(entry.args_schema?.required) ? entry.args_schema.required : []);
  const problem = el("p", { class: "note bad", role: "alert", hidden: true });
  const fields = properties.slice(0, MAX_FIELDS).map(([name, schema]) => {
    const { field, read, isJson } = fieldOf(schema, entry.example_args?.[name]);
    field.required = required.has(name);
    const hint = typeof schema?.description === "string" ? visible(schema.description.slice(0, MAX_HINT)) : null;
    const label = [visible(name), required.has(name) && " (required)", isJson && " (JSON)"];
    return { name, read, row: labelled(label, field, hint) };
  });
  const rest = el("textarea", { rows: "3", spellcheck: "false" });
  const hasRest = properties.length > MAX_FIELDS || !properties.length;

  /** Returns the arguments; throws if a field is not JSON. */
  const read = () => {
    const args = hasRest && rest.value.trim() ? JSON.parse(rest.value) : {};
    for (const { name, read: value } of fields) {
      const given = value();
      // Not by assignment: a property may be called `__proto__`.
      if (given !== undefined) Object.defineProperty(args, name, { value: given, enumerable: true, configurable: true });
    }
    return args;
  };
  let body = "";
  const text = () =>
    options.origin
      ? `curl -sS ${shellWord(options.origin("meta_call"))} -H 'Content-Type: application/json' -H "Authorization: Bearer $KEY" -d ${shellWord(body)}`
      : `meta_call ${body}`;
  const shown = command(text);
  const update = () => {
    try {
      body = asciiJson({ path: entry.path, args: read() });
      problem.hidden = true;
    } catch (error) {
      problem.textContent = `A field is not valid JSON: ${error.message}`;
      problem.hidden = false;
    }
    shown.update();
  };
  const result = el("div", { class: "result", "aria-live": "polite" });
  const send = async (event) => {
    event.preventDefault();
    if (!calls) return;
    try {
      result.replaceChildren(json(await api.call(entry.path, read()), "Result"));
    } catch (error) {
      result.replaceChildren(el("p", { class: "note bad" }, visible(error.message)));
    }
  };
  const calls = options.calls && !mayDestroy(entry.annotations);
  const why = options.calls ? "The tool may destroy something, so that this page does not call it." : null;
  const form = el(
    "form",
    { oninput: update, onsubmit: send },
    fields.map(({ row }) => row),
    hasRest && labelled("Arguments as a JSON object", rest),
    problem,
    el("p", {}, "Digest of the reviewed tool: ", el("code", {}, visible(entry.digest ?? "none"))),
    calls ? el("button", { type: "submit" }, "Call") : why && el("p", { class: "note" }, why),
  );
  update();
  return el("div", {}, form, shown.box, result);
}
