// The TypeScript SDK, second generation: `node typescript_v2.mjs legacy|auto PROGRAM [ARGUMENT]...`.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { scenario } from "./scenario.mjs";

const [mode, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "typescript-v2", version: "0" }, { versionNegotiation: { mode } });
const transport = new StdioClientTransport({ command, args });
await client.connect(transport);
await scenario(client, {
    protocol: client.getNegotiatedProtocolVersion(),
    call: (params, options) => client.callTool(params, options),
});
