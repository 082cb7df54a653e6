"""The MCP server behind the broker in the conformance tests, with the names that the official suite asks for.

`python fixture.py` serves both eras over standard input and output, `--era legacy` only the legacy
one: it refuses `server/discover`. `--http PORT` serves the same at `http://127.0.0.1:PORT/mcp`, and prints
the address on standard error; the port 0 is a free one.
"""

import argparse
import asyncio
import json
import warnings

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

import fixture_tasks  # noqa: F401  registers its tools
import fixture_tools
from fixture_inputs import ask_for, field_input

# Both eras are served on purpose, so the parts that the modern one drops are too.
warnings.simplefilter("ignore")

NAME = "conformance-fixture"
PICTURE = fixture_tools.PICTURE
PROMPTS = [
    {"name": "test_simple_prompt", "description": "A prompt without arguments"},
    {
        "name": "test_prompt_with_arguments",
        "description": "A prompt that repeats its arguments",
        "arguments": [{"name": name, "required": True} for name in ("arg1", "arg2")],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt with a resource in it",
        "arguments": [{"name": "resourceUri", "required": True}],
    },
    {"name": "test_prompt_with_image", "description": "A prompt with an image in it"},
    {"name": "test_input_required_result_prompt", "description": "A prompt that asks the user first"},
]
RESOURCES = [
    {"uri": "test://static-text", "name": "Static text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "Static image", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "Watched text", "mimeType": "text/plain"},
]
TEMPLATES = [{"uriTemplate": "test://template/{id}/data", "name": "Data by id", "mimeType": "application/json"}]


def messages(*contents):
    return {"messages": [{"role": "user", "content": content} for content in contents]}


def text(value):
    return {"type": "text", "text": value}


async def list_prompts(ctx, params):
    return {"prompts": PROMPTS}


async def get_prompt(ctx, params):
    given = params.arguments or {}
    if params.name == "test_simple_prompt":
        return messages(text("This is a simple prompt for testing."))
    if params.name == "test_prompt_with_arguments":
        return messages(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))
    if params.name == "test_prompt_with_embedded_resource":
        resource = {"uri": given["resourceUri"], "mimeType": "text/plain"}
        resource["text"] = "Embedded resource content for testing."
        question = text("Please process the embedded resource above.")
        return messages({"type": "resource", "resource": resource}, question)
    if params.name == "test_prompt_with_image":
        image = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
        return messages(image, text("Please analyze the image above."))
    if params.name == "test_input_required_result_prompt":
        answer = field_input(ctx, "user_context", "context")
        if answer is None:
            return ask_for(user_context=("What context should the prompt use?", "context"))
        return messages(text(f"The context is {answer}."))
    raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name}")


async def list_resources(ctx, params):
    return {"resources": RESOURCES}


async def list_templates(ctx, params):
    return {"resourceTemplates": TEMPLATES}


async def read_resource(ctx, params):
    uri = str(params.uri)
    content = {"uri": uri, "mimeType": "text/plain"}
    if uri == "test://static-text":
        content["text"] = "This is the content of the static text resource."
    elif uri == "test://watched-resource":
        content["text"] = "This is the content of the watched resource."
    elif uri == "test://static-binary":
        content |= {"mimeType": "image/png", "blob": PICTURE}
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.removeprefix("test://template/").removesuffix("/data")
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        content |= {"mimeType": "application/json", "text": json.dumps(data)}
    else:
        raise MCPError(INVALID_PARAMS, f"there is no resource {uri}", {"uri": uri})
    return {"contents": [content]}


async def complete(ctx, params):
    words = ["paris", "park", "party"]
    values = [word for word in words if word.startswith(params.argument.value)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


async def nothing(ctx, params):
    return {}


def typed(model, handler):
    """The handler with the SDK's type for its result, which fills in what the modern era adds."""

    async def handle(ctx, params):
        result = await handler(ctx, params)
        return result if "resultType" in result else model.model_validate(result)

    return handle


def make_server():
    bus = InMemorySubscriptionBus()
    call_tool = fixture_tools.make_call_tool(bus)
    server = Server(
        NAME,
        version="1.0.0",
        instructions="A server for the conformance suite.",
        on_list_tools=typed(types.ListToolsResult, fixture_tools.list_tools),
        on_call_tool=typed(types.CallToolResult, call_tool),
        on_list_prompts=typed(types.ListPromptsResult, list_prompts),
        on_get_prompt=typed(types.GetPromptResult, get_prompt),
        on_list_resources=typed(types.ListResourcesResult, list_resources),
        on_list_resource_templates=typed(types.ListResourceTemplatesResult, list_templates),
        on_read_resource=typed(types.ReadResourceResult, read_resource),
        on_subscribe_resource=nothing,
        on_unsubscribe_resource=nothing,
        on_subscriptions_listen=ListenHandler(bus),
        on_completion=typed(types.CompleteResult, complete),
        on_set_logging_level=nothing,
    )
    server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return server


async def serve_stdio(server, era):
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    options = server.create_initialization_options(changes)
    async with stdio_server() as (read, write):
        if era == "both":
            await server.run(read, write, options)
        else:
            async with server.lifespan(server) as state:
                await serve_loop(server, read, write, lifespan_state=state, init_options=options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--era", choices=["both", "legacy"], default="both", help="the eras that it supports")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP at this port of 127.0.0.1")
    given = parser.parse_args()
    server = make_server()
    if given.http is None:
        asyncio.run(serve_stdio(server, given.era))
    else:
        app = server.streamable_http_app()
        if given.era == "legacy":
            # Without the entry of the modern era a request belongs to a session, as in older releases of the SDK.
            server.session_manager.asgi_app = server.session_manager._handle_stateful_request
        # It prints its address at the level `info`.
        uvicorn.run(app, host="127.0.0.1", port=given.http, log_level="info", access_log=False)


main()
