// Loaded before a server of Node: it listens at a free port of 127.0.0.1, whatever its program says, and prints
// `listening on http://127.0.0.1:PORT` on standard error.

import { Server } from "node:net";

const listen = Server.prototype.listen;
Server.prototype.listen = function (...args) {
  this.once("listening", () => console.error(`listening on http://127.0.0.1:${this.address().port}`));
  const listener = args.find((arg) => typeof arg === "function");
  return listen.call(this, { host: "127.0.0.1", port: 0 }, listener);
};
