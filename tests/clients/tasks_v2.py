"""A task of the extension with the Python SDK, second generation: `python tasks_v2.py NAME ARGUMENTS URL`.

The SDK has extensions of clients, and this script the one for tasks. Prints the states and the result.
"""

import asyncio
import json
import sys
from typing import Any, Literal

from mcp import Client
from mcp.client.extension import ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result

from target import plain

SEEN: dict[str, Any] = {"states": []}


class Task(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class TaskState(Result):
    task_id: str
    status: str
    result: dict[str, Any] | None = None


class TaskParams(RequestParams):
    task_id: str


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


async def resolve(task, ctx):
    SEEN["task"] = task.task_id
    while True:
        state = await ctx.session.send_request(GetTask(params=TaskParams(task_id=task.task_id)), TaskState)
        SEEN["states"].append(state.status)
        if state.status != "working":
            SEEN["status"] = state.status
            return CallToolResult.model_validate(state.result)
        await asyncio.sleep(0.2)


class Tasks(ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"

    def claims(self):
        return [ResultClaim(result_type="task", model=Task, resolve=resolve)]


async def main() -> None:
    name, given, url = sys.argv[1:]
    async with Client(url, mode="auto", extensions=[Tasks()]) as client:
        SEEN["result"] = plain(await client.call_tool(name, json.loads(given)))
        print(json.dumps(SEEN))


asyncio.run(main())
