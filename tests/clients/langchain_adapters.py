"""The MCP adapters of LangChain, which open a session for each call:
`python langchain_adapters.py CALLS PATH PROGRAM [ARGUMENT]...` calls PATH so many times.
"""

import asyncio
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main() -> None:
    calls, path, command, *rest = sys.argv[1:]
    broker = {"transport": "stdio", "command": command, "args": rest}
    tools = await MultiServerMCPClient({"broker": broker}).get_tools()
    call = next(tool for tool in tools if tool.name == "meta_call")
    for _ in range(int(calls)):
        content = await call.ainvoke({"path": path, "args": {}})
        if "error" in str(content):
            raise SystemExit(str(content))
    print(f"{calls} calls")


asyncio.run(main())
