// The view of the activity, for operators: the last lines of the audit log, with filters.

import { el, labelled } from "./dom.js";
import { rowList } from "./rows.js";
import { json, visible } from "./text.js";

/** The kinds of lines that are about the log, and the begins of calls: their end lines say more. */
const QUIET = ["start", "stop", "checkpoint", "call_begin"];

/** Returns the parts of a line that a row shows. */
function summary(line) {
  return {
    what: line.outcome ?? line.kind,
    isGood: line.outcome === "ok" || line.outcome === "accepted",
    path: line.target?.path ?? (line.paths ?? []).join(", "),
    rest: [line.code, line.actor?.subject, line.via, line.ms == null ? null : `${line.ms} ms`].filter(Boolean).join(" · "),
  };
}

/** Makes the view. */
export async function makeView(api) {
  const answer = await api.activity();
  const title = el("h2", { tabindex: "-1" }, "Activity");
  if (!answer) return el("article", {}, title, el("p", {}, "The broker keeps no audit log that this caller may read."));
  const lines = answer.lines.filter((line) => !QUIET.includes(line.kind)).reverse();
  const whole = el("div", { "aria-live": "polite" });
  const list = rowList({
    role: "listbox",
    rowRole: "option",
    label: "Last lines of the audit log",
    render: (line) => {
      const { what, isGood, path, rest } = summary(line);
      return [
        el("span", { class: "time" }, visible(line.at ?? "")),
        el("span", { class: isGood ? "badge" : "badge bad" }, visible(what)),
        el("span", { class: "name" }, visible(path)),
        el("span", { class: "summary" }, visible(rest)),
      ];
    },
    describe: () => ({}),
    open: (line) => whole.replaceChildren(json(line, "Line")),
  });
  const word = el("input", { type: "search" });
  const failed = el("input", { type: "checkbox" });
  const draw = () => {
    const wanted = word.value.toLowerCase();
    const fits = (line) => Object.values(summary(line)).join(" ").toLowerCase().includes(wanted);
    list.set(lines.filter((line) => fits(line) && !(failed.checked && summary(line).isGood)));
  };
  word.addEventListener("input", draw);
  failed.addEventListener("change", draw);
  draw();
  return el("article", {}, title, labelled("Path, caller or outcome", word), labelled("Only without success", failed), list.box, whole);
}
