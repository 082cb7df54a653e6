"""The tools for the suite's scenarios of tasks. They answer plain calls: the broker makes tasks of those that take long."""

import asyncio

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from fixture_tools import TOOLS, failed, one_text, said, tool

# A call becomes a task after one second (`jobs.promote_after`).
LONG = 1.5


@tool("Greets", one_text("name"))
async def greet(ctx, given):
    return said(f"Hello, {given['name']}!")


@tool("Computes for a time", {"type": "object", "properties": {"seconds": {"type": "number"}}})
async def slow_compute(ctx, given):
    seconds = given.get("seconds", 0)
    if seconds > 0:
        await asyncio.sleep(max(seconds, LONG))
    return said(f"Computed for {seconds} seconds.")


@tool("Fails after a time")
async def failing_job(ctx, given):
    await asyncio.sleep(LONG)
    return failed("This job fails.")


# Only lists of the legacy era can say it.
TOOLS["failing_job"][0]["execution"] = {"taskSupport": "required"}


@tool("Breaks after a time")
async def protocol_error_job(ctx, given):
    await asyncio.sleep(LONG)
    raise MCPError(INTERNAL_ERROR, "this job breaks")


@tool("Deletes a file after a question, which this server cannot ask in a task", one_text("filename"))
async def confirm_delete(ctx, given):
    return said("The file was not deleted, since the user cannot be asked.")
