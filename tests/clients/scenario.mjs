// What every TypeScript client does with the broker on the smoke config; prints one JSON object.
export async function scenario(client, { protocol, call }) {
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
