// Asks the broker. The credential is in memory only: it is in no address, no cookie and no storage.

/** The broker's own address: the folder above the page. */
const ROOT = new URL("..", document.baseURI);

let credential = "";

/** Sets the credential of the requests from now on. */
export function useCredential(text) {
  credential = text.trim();
}

/** An answer with an error. */
export class Refused extends Error {
  constructor(status, error) {
    super(error?.message ?? `the broker answered with status ${status}`);
    this.status = status;
    this.code = error?.code ?? "";
    this.hint = error?.hint ?? "";
  }
}

/** Returns the address of a route. */
export function address(route) {
  return new URL(route, ROOT).href;
}

/** Sends a request; returns the JSON of its answer. */
async function ask(method, route, body) {
  const headers = credential ? { Authorization: `Bearer ${credential}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  const reply = await fetch(address(route), {
    method,
    headers,
    body: body && JSON.stringify(body),
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
  });
  const value = await reply.json().catch(() => null);
  if (!reply.ok && !(route === "readyz" && value)) throw new Refused(reply.status, value?.error);
  return value;
}

/** Returns the answer of a route, or null if the caller does not get it. */
async function permitted(route) {
  try {
    return await ask("GET", route);
  } catch (refused) {
    if (refused instanceof Refused && [401, 403, 404].includes(refused.status)) return null;
    throw refused;
  }
}

export const api = {
  settings: () => ask("GET", "ui/settings"),
  tree: () => ask("POST", "meta_tree", { depth: 16 }),
  search: (query) => ask("POST", "meta_tree", { query, limit: 50 }),
  describe: (path) => ask("POST", "meta_desc", { path }),
  call: (path, args) => ask("POST", "meta_call", { path, args }),
  ready: () => ask("GET", "readyz"),
  sources: () => permitted("sources"),
  drift: () => permitted("drift"),
  access: () => permitted("access"),
  activity: () => permitted("activity"),
  jobs: () => permitted("jobs?limit=100"),
  cancel: (id) => ask("DELETE", `jobs/${encodeURIComponent(id)}`),
};
