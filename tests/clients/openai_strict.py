"""The OpenAI Agents SDK with strict schemas: `python openai_strict.py PROGRAM [ARGUMENT]...` prints which tools the SDK
converts, and the answers to calls with every member, as a model in strict mode sends them.
"""

import asyncio
import json
import sys

from agents import Agent
from agents.mcp import MCPServerStdio, MCPUtil
from agents.run_context import RunContextWrapper
from agents.tool_context import ToolContext

HASH = "/util/hash_text"
CALLS = [
    ("meta_tree", {"query": "hash text", "limit": 5, "path": "/", "depth": 1}),
    ("meta_tree", {"query": None, "limit": None, "path": None, "depth": None}),
    ("meta_tree", {"query": "", "limit": 5, "path": "/util", "depth": 1}),
    ("meta_desc", {"path": HASH, "paths": [], "full": False}),
    ("meta_desc", {"path": HASH, "paths": ["/util/hex"], "full": None}),
    ("meta_call", {"path": HASH, "args": {"text": "a"}, "meta": None}),
    ("meta_call", {"path": HASH, "args": '{"text": "a"}', "meta": {}}),
]


async def main() -> None:
    command, *rest = sys.argv[1:]
    async with MCPServerStdio(params={"command": command, "args": rest}) as server:
        context = RunContextWrapper(context=None)
        agent = Agent(name="test")
        tools = await MCPUtil.get_function_tools(
            server, True, context, agent, failure_error_function=None
        )
        for tool in tools:
            print(tool.name, "strict" if tool.strict_json_schema else "not converted")
        by_name = {tool.name: tool for tool in tools}
        for name, members in CALLS:
            text = json.dumps(members)
            call = ToolContext(None, tool_name=name, tool_call_id="1", tool_arguments=text)
            answer = await by_name[name].on_invoke_tool(call, text)
            print(json.dumps([name, answer["text"]]))


asyncio.run(main())
