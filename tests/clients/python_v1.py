"""The Python SDK, first generation: `python python_v1.py legacy [--call NAME ARGS | --steps STEPS | --list] URL|PROGRAM [ARGUMENT]...`.

Does what `scenario.mjs` does and prints the same JSON objects.
"""

import asyncio
import json

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.websocket import websocket_client

from target import Changes, listing, parse, plain, several


async def main() -> None:
    once, steps, url, command = parse()
    if url and url.startswith("ws://"):
        transport = websocket_client(url)
    elif url and url.endswith("/sse"):
        transport = sse_client(url)
    elif url:
        transport = streamable_http_client(url)
    else:
        transport = stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    # Over HTTP, the third member tells the id of the session.
    changes = Changes()
    async with transport as (read, write, *_), ClientSession(read, write, message_handler=changes) as session:
        hello = await session.initialize()
        seen = {
            "protocol": hello.protocolVersion,
            "instructions": hello.instructions,
            "server": plain(hello.serverInfo),
        }

        async def ask(name, arguments):
            return plain(await session.call_tool(name, arguments))

        async def names():
            return [tool.name for tool in (await session.list_tools()).tools]

        async def page(cursor):
            result = await session.list_tools(cursor)
            return result.tools, result.nextCursor

        if steps == "--list":
            await listing(page)
            return
        seen["tools"] = plain(await session.list_tools())["tools"]
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
        except McpError as error:
            seen["unknown"] = {"code": error.error.code}
        # This generation does not tell the server by itself that a call is not awaited any more.
        slow_id = session._request_id
        slow = asyncio.create_task(
            ask("meta_call", {"path": "/util/slow_echo", "args": {"text": "late", "milliseconds": 8000}})
        )
        # Lets the slow call be sent first.
        await asyncio.sleep(0)
        seen["beside"] = await ask("meta_call", {"path": "/util/hash_text", "args": {"text": "beside"}})
        cancelled = types.CancelledNotification(params=types.CancelledNotificationParams(requestId=slow_id))
        await session.send_notification(types.ClientNotification(cancelled))
        slow.cancel()
        outcome = await asyncio.gather(slow, return_exceptions=True)
        seen["cancelled"] = "cancelled" if isinstance(outcome[0], asyncio.CancelledError) else "answered"
        seen["after"] = await ask("meta_call", {"path": "/util/hash_text", "args": {"text": "after"}})
    print(json.dumps(seen))


asyncio.run(main())
