"""The Python SDK, second generation, as a client that meets a broker for the first time:
`python first_call.py PATH ARGS PROGRAM [ARGUMENT]...` lists the tools, reads the tree and calls PATH.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    path, args, command, *rest = sys.argv[1:]
    parameters = StdioServerParameters(command=command, args=rest)
    async with Client(stdio_client(parameters), mode="auto") as client:

        async def ask(name, given):
            result = await client.call_tool(name, given)
            if result.is_error:
                raise SystemExit(f"{name}: {result.content[0].text}")
            return result

        names = [tool.name for tool in (await client.list_tools()).tools]
        tree = (await ask("meta_tree", {"path": "/"})).content[0].text
        result = await ask("meta_call", {"path": path, "args": json.loads(args)})
        areas = [line.split("  ")[0].removesuffix("/") for line in tree.splitlines()]
        print(f"python: {' '.join(names)}; {' '.join(areas)}; {' '.join(result.content[0].text.split())}")


asyncio.run(main())
