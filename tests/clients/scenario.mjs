// What every TypeScript client does with a broker: `scenario` on the smoke config with the meta-tools, `single` with
// any server. Each prints one JSON object.

// The arguments behind the mode: `[--call NAME ARGS]`, then the URL of a server or the command that starts one.
export function parse(argv) {
    const call = argv[0] === "--call" ? { name: argv[1], arguments: JSON.parse(argv[2]) } : null;
    const [target, ...args] = call ? argv.slice(3) : argv;
    const url = /^https?:\/\//.test(target) ? new URL(target) : null;
    return { call, url, command: target, args };
}

export async function run(client, given, how) {
    await (given.call ? single(client, given.call, how) : scenario(client, how));
}

// Lists the tools and makes one call.
async function single(client, params, { protocol, call }) {
    const seen = { protocol, server: client.getServerVersion() };
    seen.tools = (await client.listTools()).tools;
    seen.call = await call(params);
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
