"""The OpenAI Agents SDK, with its default timeout of 5 s, as a client that calls at once:
`python openai_agents.py STARTS PATH PROGRAM [ARGUMENT]...` starts the broker so many times, and calls PATH each time.
"""

import asyncio
import sys

from agents.mcp import MCPServerStdio


async def main() -> None:
    starts, path, command, *rest = sys.argv[1:]
    for start in range(int(starts)):
        async with MCPServerStdio(params={"command": command, "args": rest}) as server:
            await server.list_tools()
            result = await server.call_tool("meta_call", {"path": path, "args": {}})
            if result.isError:
                raise SystemExit(f"start {start}: {result.content[0].text}")
    print(f"{starts} starts")


asyncio.run(main())
