// The TypeScript SDK, first generation: `node typescript_v1.mjs legacy PROGRAM [ARGUMENT]...`.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { scenario } from "./scenario.mjs";

const [, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "typescript-v1", version: "0" });
const transport = new StdioClientTransport({ command, args });
await client.connect(transport);
// It does not say which revision was negotiated.
await scenario(client, {
    protocol: null,
    call: (params, options) => client.callTool(params, undefined, options),
});
