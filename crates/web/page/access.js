// The view of the access rules, for operators: which groups may call which entries.

import { el, labelled, toolHash } from "./dom.js";
import { rowList } from "./rows.js";
import { visible } from "./text.js";

/** Makes the view. */
export async function makeView(api) {
  const answer = await api.access();
  const title = el("h2", { tabindex: "-1" }, "Access");
  if (!answer?.groups?.length) {
    return el("article", {}, title, el("p", {}, "The config has no access rules: each caller that is let in may call each tool."));
  }
  const names = (of) => of.map((at) => answer.groups[at]).join(", ");
  const list = rowList({
    role: "listbox",
    rowRole: "option",
    label: "Who may call what",
    render: (tool) => [
      el("span", { class: "name" }, visible(tool.path)),
      el("span", { class: "summary" }, tool.may_call.length ? names(tool.may_call) : "no group"),
      tool.narrowed.length > 0 && el("span", { class: "badge" }, `some arguments: ${names(tool.narrowed)}`),
    ],
    describe: () => ({}),
    open: (tool) => (location.hash = toolHash(tool.path)),
  });
  const group = el("select", {}, el("option", { value: "" }, "any"));
  answer.groups.forEach((name, at) => group.append(el("option", { value: at }, name)));
  const count = el("span", { role: "status" });
  const draw = () => {
    const at = Number(group.value);
    const tools = answer.tools.filter((tool) => group.value === "" || tool.may_call.includes(at) || tool.narrowed.includes(at));
    list.set(tools);
    count.textContent = `${tools.length} of ${answer.tools.length}`;
  };
  group.addEventListener("change", draw);
  draw();
  return el("article", {}, title, labelled("Group", group), count, list.box);
}
