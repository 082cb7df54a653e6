// The TypeScript SDK, second generation, as a client that meets a broker for the first time:
// `node first_call.mjs PATH ARGS PROGRAM [ARGUMENT]...` lists the tools, reads the tree and calls PATH.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [path, args, command, ...rest] = process.argv.slice(2);
const client = new Client({ name: "first-call", version: "0" }, { versionNegotiation: { mode: "auto" } });
await client.connect(new StdioClientTransport({ command, args: rest }));
const names = (await client.listTools()).tools.map((tool) => tool.name);
const ask = async (name, given) => {
    const result = await client.callTool({ name, arguments: given });
    if (result.isError) throw new Error(`${name}: ${result.content[0].text.replace(/\s+/g, " ")}`);
    return result;
};
const tree = (await ask("meta_tree", { path: "/" })).content[0].text;
const areas = tree.split("\n").map((line) => line.split("  ")[0].replace(/\/$/, ""));
const result = await ask("meta_call", { path, args: JSON.parse(args) });
await client.close();
console.log(`typescript: ${names.join(" ")}; ${areas.join(" ")}; ${result.content[0].text.replace(/\s+/g, " ")}`);
