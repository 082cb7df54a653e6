// The TypeScript SDK, second generation: `node typescript_v2.mjs legacy|auto [--call NAME ARGS | --steps STEPS | --list] URL|PROGRAM [ARGUMENT]...`.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { httpTransport, parse, run } from "./scenario.mjs";

const mode = process.argv[2];
const given = parse(process.argv.slice(3));
const client = new Client({ name: "typescript-v2", version: "0" }, { versionNegotiation: { mode } });
await client.connect(given.url ? httpTransport(given.url, SSEClientTransport, StreamableHTTPClientTransport) : new StdioClientTransport(given));
await run(client, given, {
    name: "client",
    compile: (schema) => new AjvJsonSchemaValidator().getValidator(schema),
    protocol: client.getNegotiatedProtocolVersion(),
    call: (params, options) => client.callTool(params, options),
});
