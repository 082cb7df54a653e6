// Starts the page: the credential, the views that the caller may see, and the view that the address names.

import { Refused, address, api, useCredential } from "./api.js";
import { el } from "./dom.js";
import { visible } from "./text.js";
import { treeView } from "./tree.js";

const byId = (id) => document.getElementById(id);
const options = { calls: false, access: null, origin: address, fail };
/** The view of the tree, once it was asked for, and the end of `learn`. */
let tree = null;
let known = null;
/** Grows with each change of view, so that a late answer replaces no later view. */
let turn = 0;

const VIEWS = {
  tools: { title: "Tools" },
  sources: { title: "Sources", load: () => import("./sources.js") },
  drift: { title: "Drift", load: () => import("./drift.js") },
  access: { title: "Access", load: () => import("./access.js") },
  activity: { title: "Activity", load: () => import("./activity.js") },
  jobs: { title: "Jobs", load: () => import("./jobs.js") },
};

/** Shows why something failed. */
function fail(error) {
  const needs = error instanceof Refused && error.status === 401;
  const hint = needs ? " Enter a key, token or secret." : error.hint ? ` ${error.hint}` : "";
  byId("notice").replaceChildren(visible(`${error.message}.${hint}`));
  if (needs) byId("key").focus();
}

/** Returns the view and the path that the address names. */
function place() {
  const [view, ...rest] = location.hash.replace(/^#\//, "").split("/");
  let path = "";
  try {
    path = rest.length ? "/" + rest.map(decodeURIComponent).join("/") : "";
  } catch {
    // An address that a person typed: it names no entry.
  }
  return { view: view in VIEWS ? view : "tools", path };
}

/** Shows the view that the address names. */
async function show() {
  const { view, path } = place();
  const own = (turn += 1);
  byId("notice").replaceChildren();
  for (const link of byId("views").children) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${VIEWS[view].title} – MCP broker`;
  try {
    if (view === "tools") {
      const shown = await (tree ??= treeView(api, options));
      if (own !== turn) return;
      if (!shown.view.isConnected) byId("main").replaceChildren(shown.view);
      await known;
      if (own === turn) await shown.open(path);
    } else {
      const { makeView } = await VIEWS[view].load();
      const made = await makeView(api, options);
      if (own === turn) byId("main").replaceChildren(made);
    }
  } catch (error) {
    if (own === turn) fail(error);
  }
}

/** Names the views that the caller may see. */
async function showViews() {
  const [sources, access, jobs, activity] = await Promise.all([api.sources(), api.access(), api.jobs(), api.activity()]);
  const isOperator = sources?.sources?.every((source) => source.path) ?? false;
  options.access = access;
  const has = { tools: true, sources: isOperator, drift: isOperator, access: access, activity: activity, jobs: jobs };
  const names = Object.keys(VIEWS).filter((name) => has[name]);
  const view = place().view;
  const links = names.map((name) =>
    el("a", { href: `#/${name}`, "data-view": name, "aria-current": name === view ? "page" : null }, VIEWS[name].title),
  );
  byId("views").replaceChildren(...links);
}

/** Begins again, for a caller with another credential. */
async function begin() {
  tree = null;
  byId("main").replaceChildren();
  // The list waits for no other answer.
  const first = treeView(api, options);
  tree = first;
  first.catch(() => tree === first && (tree = null));
  known = first.then(learn, learn).catch(fail);
  await show();
}

/** Learns the settings of the page and the rights of the caller. */
async function learn() {
  const [settings] = await Promise.all([api.settings(), showViews()]);
  options.calls = settings.calls;
}

byId("credential").addEventListener("submit", (event) => {
  event.preventDefault();
  useCredential(byId("key").value);
  byId("key").value = "";
  begin();
});
window.addEventListener("hashchange", show);
begin();
