// The TypeScript SDK, first generation: `node typescript_v1.mjs legacy [--call NAME ARGS | --steps STEPS | --list] URL|PROGRAM [ARGUMENT]...`.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import { httpTransport, parse, run } from "./scenario.mjs";

const given = parse(process.argv.slice(3));
const client = new Client({ name: "typescript-v1", version: "0" });
await client.connect(given.url ? httpTransport(given.url, SSEClientTransport, StreamableHTTPClientTransport) : new StdioClientTransport(given));
// It does not say which revision was negotiated.
await run(client, given, {
    protocol: null,
    name: "sdk",
    compile: (schema) => new AjvJsonSchemaValidator().getValidator(schema),
    call: (params, options) => client.callTool(params, undefined, options),
});
