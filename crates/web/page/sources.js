// The view of the sources: their states, causes and next attempts.

import { el, facts, table } from "./dom.js";
import { visible } from "./text.js";

/** Returns the state of a source with its cause. */
function state({ state, cause }) {
  const kind = state === "ready" ? "good" : state === "starting" ? "" : "bad";
  return el("span", {}, el("span", { class: `badge ${kind}` }, state), cause && ` ${cause}`);
}

/** Returns what needs attention at a source. */
function notes(source) {
  const parts = source.left_out ?? [];
  const warnings = source.warnings ?? [];
  if (!parts.length && !warnings.length) return null;
  const items = parts.map((part) =>
    el("li", {}, `${part.code}: `, visible(part.name ?? part.kind), " – ", visible(part.reason), " ", visible(part.remedy)),
  );
  const more = (source.left_out_count ?? 0) - parts.length;
  return el(
    "details",
    {},
    el("summary", {}, `${source.path}: ${source.left_out_count ?? parts.length} parts left out, ${warnings.length} warnings`),
    el("ul", {}, items, more > 0 && el("li", {}, `and ${more} more`), warnings.map((text) => el("li", {}, visible(text)))),
  );
}

/** Makes the view. */
export async function makeView(api) {
  const [ready, answer] = await Promise.all([api.ready(), api.sources()]);
  const sources = answer?.sources ?? [];
  const rows = sources.map((source) => {
    const next = (source.instances ?? []).map((one) => one.next_attempt).find(Boolean);
    return [
      visible(source.path),
      state(source),
      source.since,
      next ?? "–",
      `${source.tools}${source.withdrawn ? `, ${source.withdrawn} withdrawn` : ""}`,
      source.counters && `${source.counters.calls}, ${source.counters.failures} failed`,
      source.latency_ms && `${source.latency_ms.p50} / ${source.latency_ms.p99} ms`,
      source.last_ok ?? "–",
    ];
  });
  const heads = ["Source", "State", "Since", "Next attempt", "Tools", "Calls", "p50 / p99", "Last answer"];
  const jobs = answer?.jobs && `${answer.jobs.state}: ${answer.jobs.reason}`;
  return el(
    "article",
    {},
    el("h2", { tabindex: "-1" }, "Sources"),
    facts(
      ["ready", ready.ready ? "yes" : "no"],
      ["degraded", ready.degraded == null ? null : ready.degraded ? "yes" : "no"],
      ["catalog", ready.catalog_digest],
      ["MCP sessions", answer?.mcp_sessions],
      ["jobs", jobs && visible(jobs)],
      ["audit log", ready.audit && (ready.audit.available ? "needs space soon" : "cannot be written")],
    ),
    table("Sources", heads, rows),
    sources.map(notes),
  );
}
