// The view of the activity, for operators: the last lines of the audit log, with filters.

import { el, labelled } from "./dom.js";
import { rowList } from "./rows.js";
import { visible } from "./text.js";

/** Makes the view. */
export async function makeView(api) {
  const answer = await api.activity();
  const title = el("h2", { tabindex: "-1" }, "Activity");
  if (!answer) return el("article", {}, title, el("p", {}, "The broker keeps no audit log, or it cannot be read."));
  const lines = answer.lines.toReversed();
  const list = rowList({
    role: "listbox",
    rowRole: "option",
    label: "Last lines of the audit log",
    render: (line) => [
      el("span", { class: "time" }, visible(line.time)),
      el("span", { class: line.outcome === "ok" ? "badge" : "badge bad" }, visible(line.outcome ?? line.kind)),
      el("span", { class: "name" }, visible(line.path ?? "")),
      el("span", { class: "summary" }, visible([line.caller, line.detail].filter(Boolean).join(" · "))),
    ],
    describe: () => ({}),
    open: () => {},
  });
  const word = el("input", { type: "search" });
  const failed = el("input", { type: "checkbox" });
  const draw = () => {
    const wanted = word.value.toLowerCase();
    const fits = (line) => [line.path, line.caller, line.outcome, line.kind].join(" ").toLowerCase().includes(wanted);
    list.set(lines.filter((line) => fits(line) && !(failed.checked && line.outcome === "ok")));
  };
  word.addEventListener("input", draw);
  failed.addEventListener("change", draw);
  draw();
  return el("article", {}, title, labelled("Path, caller or outcome", word), labelled("Only without success", failed), list.box);
}
