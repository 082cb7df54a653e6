// Starts the page of a lock: the tree of its entries, and what else the lock says. The data is in the document.

import { el, facts, table } from "./dom.js";
import { visible } from "./text.js";
import { treeView } from "./tree.js";

const data = JSON.parse(document.getElementById("data").textContent);
const lockOptions = { calls: false, access: null, fail: (error) => failed(error) };

/** Answers as the broker does, from the data. */
const lockApi = {
  tree: async () => data.tree,
  describe: async (path) => {
    const entry = Object.hasOwn(data.entries, path) ? data.entries[path] : null;
    if (!entry) throw new Error(`the lock has no entry at ${path}`);
    return entry;
  },
};

/** Shows why something failed. */
function failed(error) {
  document.getElementById("notice").replaceChildren(visible(error.message));
}

/** Makes the view of the sources and of the parts that the lock leaves out. */
function lockView() {
  const sources = data.sources.map((source) => [
    visible(source.path),
    visible(source.server),
    source.protocol_version,
    String(source.exposed),
    String(source.hidden),
    visible(source.package ?? ""),
  ]);
  const parts = data.left_out.map((part) => [visible(part.what), part.state, el("code", {}, part.code), visible(part.reason)]);
  return el(
    "article",
    {},
    el("h2", { tabindex: "-1" }, "Lock"),
    facts(["config", visible(data.config)], ["root digest", el("code", {}, data.root_digest)], ["catalog", el("code", {}, data.catalog_digest)]),
    table("Sources", ["Source", "Server", "Revision", "Tools", "Hidden tools", "Package"], sources),
    parts.length ? table("Left out of the lock", ["Part", "State", "Code", "Reason"], parts) : el("p", {}, "No part is left out of the lock."),
  );
}

const lockTree = treeView(lockApi, lockOptions);

/** Shows the view that the address names. */
async function showLock() {
  const isLock = location.hash.startsWith("#/lock");
  const links = [
    ["#/tools", "Tools", !isLock],
    ["#/lock", "Lock", isLock],
  ];
  const nav = links.map(([href, title, isOpen]) => el("a", { href, "aria-current": isOpen ? "page" : null }, title));
  document.getElementById("views").replaceChildren(...nav);
  failed({ message: "" });
  const main = document.getElementById("main");
  if (isLock) return main.replaceChildren(lockView());
  const { view, open } = await lockTree;
  if (!view.isConnected) main.replaceChildren(view);
  const segments = location.hash.replace(/^#\/tools\/?/, "");
  return open(segments ? "/" + segments.split("/").map(decodeURIComponent).join("/") : "");
}

window.addEventListener("hashchange", () => showLock().catch(failed));
showLock().catch(failed);
