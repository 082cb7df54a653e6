"""A task of revision 2025-11-25 with the Python SDK, first generation: `python tasks_v1.py NAME ARGUMENTS URL`.

Prints the states that the SDK shows, and the result.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from target import plain


async def main() -> None:
    name, given, url = sys.argv[1:]
    async with streamable_http_client(url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        created = await session.experimental.call_tool_as_task(name, json.loads(given))
        task = created.task.taskId
        seen = {"task": task, "states": []}
        async for state in session.experimental.poll_task(task):
            seen["states"].append(state.status)
        seen["result"] = plain(await session.experimental.get_task_result(task, CallToolResult))
        seen["status"] = seen["states"][-1]
        print(json.dumps(seen))


asyncio.run(main())
