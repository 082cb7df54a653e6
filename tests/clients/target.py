"""The arguments of the Python clients behind the mode: `[--call NAME ARGS | --steps STEPS | --list]`, then the URL of a
server or the command that starts one; and the steps.
"""

import asyncio
import json
import os
import sys
import time
from importlib.metadata import version


def parse():
    """The call as (name, arguments) or None, the steps or `--list` or None, the URL or None, and the command."""
    rest = sys.argv[2:]
    call = None
    steps = None
    if rest[0] == "--call":
        call = (rest[1], json.loads(rest[2]))
        rest = rest[3:]
    elif rest[0] == "--steps":
        steps = json.loads(rest[1])
        rest = rest[2:]
    elif rest[0] == "--list":
        steps = rest[0]
        rest = rest[1:]
    url = rest[0] if rest[0].startswith(("http://", "https://", "ws://")) else None
    return call, steps, url, rest


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def listing(page):
    """Prints all tools, as `listing` of `scenario.mjs`; `page` gets one page for a cursor."""
    seen = {"version": f"mcp {version('mcp')}", "tools": []}
    cursor = None
    while True:
        tools, cursor = await page(cursor)
        names = [plain(tool) for tool in tools]
        seen["tools"] += [{"name": tool["name"], "output": "outputSchema" in tool} for tool in names]
        if cursor is None:
            break
    print(json.dumps(seen))


class Changes:
    """Counts the announcements of other lists of tools."""

    def __init__(self):
        self.count = 0

    async def __call__(self, message):
        inner = getattr(message, "root", message)
        if getattr(inner, "method", None) == "notifications/tools/list_changed":
            self.count += 1


async def several(steps, ask, names):
    """Makes a call for each step, as `several` of `scenario.mjs`; `names` lists the names of the tools."""

    async def attempt(step):
        try:
            return await ask(step["name"], step["arguments"])
        # Whatever a client raises is its result here.
        except Exception as error:
            details = getattr(error, "error", None)
            return {"thrown": str(error), "code": getattr(details, "code", None)}

    async def waited(result, seconds):
        """Waits for the job that a call has become, as the host of a model does."""
        job_id = (result.get("structuredContent") or {}).get("job_id")
        end = time.monotonic() + seconds
        while job_id and time.monotonic() < end:
            result = await attempt({"name": "job", "arguments": {"id": job_id}})
            texts = [block.get("text", "") for block in result.get("content", [])]
            if not any("again to wait for its result" in text for text in texts):
                break
        return {"job_id": job_id, **result}

    calls = []
    for step in steps:
        if step.get("list"):
            calls.append(await names())
            continue
        files = step.get("rename")
        if files:
            os.replace(*files)
        result = await attempt(step)
        end = time.monotonic() + 20
        while files and not result.get("isError") and "thrown" not in result and time.monotonic() < end:
            await asyncio.sleep(0.02)
            result = await attempt(step)
        if step.get("wait"):
            result = await waited(result, step["wait"])
        calls.append(result)
    return calls
