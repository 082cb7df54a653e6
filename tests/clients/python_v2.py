"""The Python SDK, second generation: `python python_v2.py legacy|auto [--call NAME ARGS | --steps STEPS | --list] URL|PROGRAM [ARGUMENT]...`.

Does what `scenario.mjs` does and prints the same JSON objects.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client

from target import Changes, listing, parse, plain, several


async def main() -> None:
    mode = sys.argv[1]
    once, steps, url, command = parse()
    if url and url.endswith("/sse"):
        server = sse_client(url)
    else:
        server = url or stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    changes = Changes()
    async with Client(server, mode=mode, message_handler=changes) as client:
        seen = {
            "protocol": client.protocol_version,
            "instructions": client.instructions,
            "server": plain(client.server_info),
        }

        async def ask(name, arguments):
            return plain(await client.call_tool(name, arguments))

        async def names():
            return [tool.name for tool in (await client.list_tools()).tools]

        async def page(cursor):
            result = await client.list_tools(cursor=cursor)
            return result.tools, result.next_cursor

        if steps == "--list":
            await listing(page)
            return
        seen["tools"] = plain(await client.list_tools())["tools"]
        if once:
            seen["call"] = await ask(*once)
            print(json.dumps(seen))
            return
        if steps:
            seen["calls"] = await several(steps, ask, names)
            seen["changes"] = changes.count
            print(json.dumps(seen))
            return
        seen["tree"] = await ask("meta_tree", {"path": "/", "depth": 2})
        seen["description"] = await ask("meta_desc", {"path": "/util/hash_text"})
        seen["call"] = await ask("meta_call", {"path": "/util/hash_text", "args": {"text": "hello"}})
        seen["mistake"] = await ask("meta_call", {"path": "/util/hash_text", "args": {"txt": "hello"}})
        seen["failure"] = await ask("meta_call", {"path": "/util/fail", "args": {"kind": "tool", "message": "planned"}})
        try:
            seen["unknown"] = await ask("no_such_tool", {})
        except MCPError as error:
            seen["unknown"] = {"code": error.error.code}
        slow = asyncio.create_task(
            ask("meta_call", {"path": "/util/slow_echo", "args": {"text": "late", "milliseconds": 8000}})
        )
        # Lets the slow call be sent first.
        await asyncio.sleep(0)
        seen["beside"] = await ask("meta_call", {"path": "/util/hash_text", "args": {"text": "beside"}})
        slow.cancel()
        outcome = await asyncio.gather(slow, return_exceptions=True)
        seen["cancelled"] = "cancelled" if isinstance(outcome[0], asyncio.CancelledError) else "answered"
        seen["after"] = await ask("meta_call", {"path": "/util/hash_text", "args": {"text": "after"}})
    print(json.dumps(seen))


asyncio.run(main())
