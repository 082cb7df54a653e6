"""What the servers of both Python SDKs share: their tools, the token of the protected one, and how they listen.

A program prints `http://127.0.0.1:PORT` on standard error once it takes connections.
"""

import contextlib
import os

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

PICTURE = "iVBORw0KGgo="
# Long enough that the result needs many reads.
LARGE = "large é\u2028" * 60_000


def add_tools(server, context, types):
    """Adds the tools; `context` and `types` are those of the SDK's generation."""

    @server.tool()
    def echo(text: str) -> str:
        """Says it again."""
        return text

    @server.tool()
    def add(a: float, b: float) -> dict[str, float]:
        """Adds two numbers."""
        return {"sum": a + b}

    @server.tool(structured_output=False)
    def blocks() -> list:
        """A content block of each kind."""
        text = types.TextResourceContents(uri="mem://b", mimeType="text/plain", text="b")
        return [
            types.TextContent(type="text", text="one\ntwo"),
            types.ImageContent(type="image", data=PICTURE, mimeType="image/png"),
            types.AudioContent(type="audio", data="UklGRg==", mimeType="audio/wav"),
            types.ResourceLink(type="resource_link", uri="file:///a.txt", name="a"),
            types.EmbeddedResource(type="resource", resource=text),
        ]

    @server.tool()
    def refuse() -> str:
        """Fails."""
        raise ValueError("planned failure: “no”")

    @server.tool(structured_output=False)
    def large() -> str:
        """A long text."""
        return LARGE

    async def steps(ctx, text: str) -> str:
        """Reports progress and writes log messages before its result."""
        for step in (1, 2, 3):
            await ctx.report_progress(step, 3, f"step {step}")
            await ctx.info(f"step {step}")
        return text

    # The generations find their context by its type.
    steps.__annotations__["ctx"] = context
    server.tool()(steps)
    return server


class OneToken:
    """Accepts the token of the variable `TOKEN`."""

    def __init__(self, access_token):
        self._access_token = access_token

    async def verify_token(self, token):
        if token != os.environ["TOKEN"]:
            return None
        return self._access_token(token=token, client_id="test", scopes=[])


def listen(apps):
    """Serves each application below its own path, at a free port of 127.0.0.1."""

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with contextlib.AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    routes = [Mount(path, app) for path, app in apps.items()]
    app = Starlette(routes=routes, lifespan=lifespan)
    # It prints its address at the level `info`.
    uvicorn.run(app, host="127.0.0.1", port=0, log_level="info", access_log=False)
