// What every TypeScript client does with a broker: `scenario` on the smoke config with the meta-tools, `single`,
// `several` and `listing` with any server. Each prints one JSON object.
import { readFile, rename } from "node:fs/promises";

// The arguments behind the mode: `[--call NAME ARGS | --steps STEPS | --list]`, then the URL of a server or the command that
// starts one.
export function parse(argv) {
    const call = argv[0] === "--call" ? { name: argv[1], arguments: JSON.parse(argv[2]) } : null;
    const steps = argv[0] === "--steps" ? JSON.parse(argv[1]) : null;
    const list = argv[0] === "--list";
    const [target, ...args] = argv.slice(call ? 3 : steps ? 2 : list ? 1 : 0);
    const url = /^https?:\/\//.test(target) ? new URL(target) : null;
    return { call, steps, list, url, command: target, args };
}

// A URL that ends in `/sse` is that of the older transport.
export function httpTransport(url, Sse, StreamableHttp) {
    return url.pathname.endsWith("/sse") ? new Sse(url) : new StreamableHttp(url);
}

export async function run(client, given, how) {
    if (given.list) await listing(client, how);
    else if (given.call) await single(client, given.call, how);
    else if (given.steps) await several(client, given.steps, how);
    else await scenario(client, how);
}

// Lists all tools, page by page, and compiles the schemas of their results. The version is that of the package.
async function listing(client, { name, compile }) {
    const manifest = new URL(`node_modules/@modelcontextprotocol/${name}/package.json`, import.meta.url);
    const seen = { version: `${name} ${JSON.parse(await readFile(manifest)).version}`, tools: [] };
    let cursor;
    do {
        const page = await client.listTools(cursor === undefined ? {} : { cursor });
        seen.tools.push(...page.tools);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    for (const { outputSchema } of seen.tools) if (outputSchema) compile(outputSchema);
    seen.tools = seen.tools.map(({ name, outputSchema }) => ({ name, output: outputSchema !== undefined }));
    await client.close();
    process.stdout.write(JSON.stringify(seen) + "\n");
}

// Lists the tools and makes one call.
async function single(client, params, { protocol, call }) {
    const seen = { protocol, server: client.getServerVersion() };
    seen.tools = (await client.listTools()).tools;
    seen.call = await call(params);
    await client.close();
    process.stdout.write(JSON.stringify(seen) + "\n");
}

// Lists the tools once, so that the client has the schemas, then makes a call for each step. A step with `rename`
// replaces a file first, and repeats its call until the result is an error; a step with `list` lists the tools in place
// of a call; with `wait`, seconds, the job that the call has become is waited for. `changes` counts the announcements of other lists.
async function several(client, steps, { protocol, call }) {
    const seen = { protocol, tools: (await client.listTools()).tools, calls: [], changes: 0 };
    client.fallbackNotificationHandler = async ({ method }) => {
        if (method === "notifications/tools/list_changed") seen.changes += 1;
    };
    // A step with `wait` has these seconds.
    const options = { timeout: 1000 * Math.max(60, ...steps.map(({ wait }) => wait ?? 0)) };
    const attempt = (params) => call(params, options).catch((error) => ({ thrown: error.message, code: error.code }));
    // Waits for the job that a call has become, as the host of a model does: the text of the tool `job` says whether to call it
    // again.
    const waited = async (result, seconds) => {
        const id = result.structuredContent?.job_id;
        const end = Date.now() + seconds * 1000;
        let job = result;
        while (id && Date.now() < end) {
            job = await attempt({ name: "job", arguments: { id } });
            if (!job.content?.[0]?.text?.includes("again to wait for its result")) break;
        }
        return { job_id: id, ...job };
    };
    for (const { name, arguments: args, rename: files, list, wait } of steps) {
        if (list) {
            seen.calls.push((await client.listTools()).tools.map((tool) => tool.name));
            continue;
        }
        const params = { name, arguments: args };
        if (files) await rename(...files);
        let result = await attempt(params);
        const end = Date.now() + 20_000;
        while (files && !result.isError && !result.thrown && Date.now() < end) {
            await new Promise((resolve) => setTimeout(resolve, 20));
            result = await attempt(params);
        }
        seen.calls.push(wait ? await waited(result, wait) : result);
    }
    await client.close();
    process.stdout.write(JSON.stringify(seen) + "\n");
}

async function scenario(client, { protocol, call }) {
    const ask = (name, args, options) => call({ name, arguments: args }, options);
    const seen = { protocol, instructions: client.getInstructions(), server: client.getServerVersion() };
    seen.tools = (await client.listTools()).tools;
    seen.tree = await ask("meta_tree", { path: "/", depth: 2 });
    seen.description = await ask("meta_desc", { path: "/util/hash_text" });
    seen.call = await ask("meta_call", { path: "/util/hash_text", args: { text: "hello" } });
    seen.mistake = await ask("meta_call", { path: "/util/hash_text", args: { txt: "hello" } });
    seen.failure = await ask("meta_call", { path: "/util/fail", args: { kind: "tool", message: "planned" } });
    seen.unknown = await ask("no_such_tool", {}).catch((error) => ({ code: error.code }));
    const stop = new AbortController();
    const slow = ask("meta_call", { path: "/util/slow_echo", args: { text: "late", milliseconds: 8000 } }, { signal: stop.signal });
    const cancelled = slow.then(() => "answered", () => "cancelled");
    // While the slow call runs, others are answered.
    seen.beside = await ask("meta_call", { path: "/util/hash_text", args: { text: "beside" } });
    stop.abort("not needed any more");
    seen.cancelled = await cancelled;
    seen.after = await ask("meta_call", { path: "/util/hash_text", args: { text: "after" } });
    await client.close();
    process.stdout.write(JSON.stringify(seen) + "\n");
}
