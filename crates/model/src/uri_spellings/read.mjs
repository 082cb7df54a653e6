// Reads URIs as a server with Node's `URL` does. One line in for each URI and one line out with its readings: JSON.
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const decoded = (text) => decodeURIComponent(text);

/** The IPv4 address in an IPv6 address that contains one, which a connection reaches. */
function address(host) {
  const mapped = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(host);
  if (!mapped) return host;
  const [high, low] = mapped.slice(1).map((text) => parseInt(text, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

function readings(uri) {
  const url = new URL(uri);
  const host = address(decoded(url.hostname)).replace(/\.+$/, "");
  const before = host ? `${url.protocol}//${host}` : url.protocol;
  const found = [`${before}${decoded(url.pathname)}`];
  if (url.protocol === "file:") found.push(`file:${fileURLToPath(url)}`);
  return found;
}

for await (const line of createInterface({ input: process.stdin })) {
  let found = [];
  try {
    found = readings(JSON.parse(line));
  } catch {
    // Refused: no reading.
  }
  console.log(JSON.stringify(found));
}
