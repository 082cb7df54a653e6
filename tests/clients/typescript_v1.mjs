// The TypeScript SDK, first generation: `node typescript_v1.mjs legacy [--call NAME ARGS | --steps STEPS] URL|PROGRAM [ARGUMENT]...`.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { parse, run } from "./scenario.mjs";

const given = parse(process.argv.slice(3));
const client = new Client({ name: "typescript-v1", version: "0" });
await client.connect(given.url ? new StreamableHTTPClientTransport(given.url) : new StdioClientTransport(given));
// It does not say which revision was negotiated.
await run(client, given, {
    protocol: null,
    call: (params, options) => client.callTool(params, undefined, options),
});
