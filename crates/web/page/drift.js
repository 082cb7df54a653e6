// The view of the drift: the reviewed and the live value of each difference, its rule, an example and the command to run.

import { command, el, facts, toolHash } from "./dom.js";
import { block, visible } from "./text.js";

/** Returns a finding. */
function finding(found) {
  const values = [
    ["Reviewed", found.reviewed],
    ["Live", found.live],
    ["Example", found.witness],
  ].filter(([, text]) => text != null);
  const remedy = found.remedy && command(() => found.remedy).box;
  return el(
    "li",
    {},
    el("p", {}, el("span", { class: "badge" }, found.class), " ", el("code", {}, found.rule), " ", visible(found.message)),
    facts(["place", found.pointer && visible(found.pointer)]),
    el("div", { class: "compared" }, values.map(([title, text]) => el("div", {}, el("h4", {}, title), block(text, title)))),
    remedy,
  );
}

/** Returns what differs at a tool or a source. */
function entry(found) {
  const isTool = found.tool != null;
  const name = visible(found.path);
  return el(
    "section",
    {},
    el(
      "h3",
      {},
      isTool && found.is_reviewed ? el("a", { href: toolHash(found.path) }, name) : name,
      " ",
      el("span", { class: `badge ${found.withdraws ? "bad" : ""}` }, found.withdraws ? `${found.class}: withdrawn` : found.class),
    ),
    el("ul", { class: "findings" }, found.findings.map(finding)),
    found.more > 0 && el("p", {}, `and ${found.more} more`),
  );
}

/** Makes the view. */
export async function makeView(api) {
  const answer = await api.drift();
  const found = answer?.entries ?? [];
  return el(
    "article",
    {},
    el("h2", { tabindex: "-1" }, "Drift"),
    el("p", {}, "Differences between the sources and the lock. A person accepts one by a new lock, not here."),
    found.length ? found.map(entry) : el("p", {}, "No source that was compared differs from the lock."),
    answer?.more > 0 && el("p", {}, `and ${answer.more} entries more`),
    answer?.not_compared?.length > 0 &&
      el("p", { class: "note" }, "Not compared yet: ", answer.not_compared.map((path) => [visible(path), " "])),
  );
}
