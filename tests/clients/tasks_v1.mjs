// A task of revision 2025-11-25 with the TypeScript SDK, first generation: `node tasks_v1.mjs NAME ARGUMENTS URL`. Prints
// the kinds of messages that the SDK shows, and the result.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [name, given, url] = process.argv.slice(2);
const client = new Client({ name: "typescript-v1", version: "0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
// The list says which tools take tasks.
await client.listTools();
const seen = { messages: [] };
const stream = client.experimental.tasks.callToolStream({ name, arguments: JSON.parse(given) }, undefined, {
    task: { ttl: 60000 },
});
for await (const message of stream) {
    seen.messages.push(message.type);
    if (message.type === "taskCreated") {
        seen.task = message.task.taskId;
    } else if (message.type === "result") {
        seen.result = message.result;
    } else if (message.type === "error") {
        seen.error = String(message.error);
    }
}
seen.status = (await client.experimental.tasks.getTask(seen.task)).status;
console.log(JSON.stringify(seen));
await client.close();
