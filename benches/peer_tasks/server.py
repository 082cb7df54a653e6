"""The server of the comparison: FastMCP with tasks on Redis. Each execution of a call is a line of the journal."""

import asyncio
import os
from datetime import timedelta

from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension

JOURNAL = os.environ["JOURNAL"]

mcp = FastMCP("peer")
mcp.add_extension(TasksExtension(url=os.environ["REDIS"], redelivery_timeout=timedelta(seconds=10)))


def note(n: int) -> None:
    # One write is one line, also if the process is killed right after it.
    file = os.open(JOURNAL, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{n}\n".encode())
    os.close(file)


@mcp.tool(task=True)
async def quick(n: int) -> str:
    note(n)
    return f"done {n}"


@mcp.tool(task=True)
async def slow(n: int) -> str:
    note(n)
    await asyncio.sleep(0.5)
    return f"done {n}"


mcp.run(transport="http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
