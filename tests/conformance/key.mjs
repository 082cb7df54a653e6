// Gives the suite the key of a caller: `node --import=./key.mjs …` with the address of the broker in `KEY_FOR` and the
// key in `KEY`. The suite has no option for a header. Node announces each request on these channels before it is sent.
import { subscribe } from "node:diagnostics_channel";

const { KEY_FOR, KEY } = process.env;
const header = ["Authorization", `Bearer ${KEY}`];

// `fetch` and the package `undici`.
subscribe("undici:request:create", ({ request }) => {
    if (String(request.origin) === `http://${KEY_FOR}`) request.addHeader(...header);
});

// `node:http`. A request has its own `Host` header, which may be wrong on purpose.
subscribe("http.client.request.created", ({ request }) => {
    if (request.host === KEY_FOR.split(":")[0]) request.setHeader(...header);
});
