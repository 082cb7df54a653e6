// The TypeScript SDK, second generation: `node typescript_v2.mjs legacy|auto [--call NAME ARGS | --steps STEPS] URL|PROGRAM [ARGUMENT]...`.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { parse, run } from "./scenario.mjs";

const mode = process.argv[2];
const given = parse(process.argv.slice(3));
const client = new Client({ name: "typescript-v2", version: "0" }, { versionNegotiation: { mode } });
await client.connect(given.url ? new StreamableHTTPClientTransport(given.url) : new StdioClientTransport(given));
await run(client, given, {
    protocol: client.getNegotiatedProtocolVersion(),
    call: (params, options) => client.callTool(params, options),
});
