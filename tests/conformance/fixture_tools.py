"""The tools of the server behind the broker in the conformance tests."""

import asyncio
import json
import time

from mcp.server.subscriptions import PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY

from fixture_inputs import (
    answers,
    ask_for,
    declares,
    elicitation,
    field_input,
    form,
    legacy,
    legacy_elicitation,
    legacy_sampling,
    required,
    roots,
    sampling,
)

# One red pixel.
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
# A header without samples.
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(["First", "Second", "Third"], 1)]
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
}
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}
PERSON = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
# Keywords of the 2020-12 dialect that a broker must not lose.
DIALECT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

TOOLS = {}


def tool(description, schema=None):
    """Registers a function as the tool of its name."""

    def register(function):
        definition = {"name": function.__name__, "description": description, "inputSchema": schema or {"type": "object"}}
        TOOLS[function.__name__] = (definition, function)
        return function

    return register


def one_text(name):
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


def text(value):
    return {"type": "text", "text": value}


def said(*contents):
    return {"content": [text(part) if isinstance(part, str) else part for part in contents]}


def failed(message):
    return said(message) | {"isError": True}


def image():
    return {"type": "image", "data": PICTURE, "mimeType": "image/png"}


def resource(uri, kind, content):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": content}}


@tool("Returns a text")
async def test_simple_text(ctx, given):
    return said("This is a simple text response for testing.")


@tool("Returns an image")
async def test_image_content(ctx, given):
    return said(image())


@tool("Returns a sound")
async def test_audio_content(ctx, given):
    return said({"type": "audio", "data": SOUND, "mimeType": "audio/wav"})


@tool("Returns a resource")
async def test_embedded_resource(ctx, given):
    return said(resource("test://embedded-resource", "text/plain", "This is an embedded resource content."))


@tool("Returns a text, an image and a resource")
async def test_multiple_content_types(ctx, given):
    data = json.dumps({"test": "data", "value": 123})
    mixed = resource("test://mixed-content-resource", "application/json", data)
    return said("Multiple content types test:", image(), mixed)


async def log(ctx, message):
    await ctx.session.send_log_message("info", message, related_request_id=ctx.request_id)


@tool("Logs three messages")
async def test_tool_with_logging(ctx, given):
    await log(ctx, "Tool execution started")
    await asyncio.sleep(0.05)
    await log(ctx, "Tool processing data")
    await asyncio.sleep(0.05)
    await log(ctx, "Tool execution completed")
    return said("Logged three messages.")


@tool("Logs a message")
async def test_logging_tool(ctx, given):
    await log(ctx, "A message for who asked for it")
    return said("Logged a message.")


@tool("Reports progress three times")
async def test_tool_with_progress(ctx, given):
    await ctx.session.report_progress(0, 100)
    await asyncio.sleep(0.05)
    await ctx.session.report_progress(50, 100)
    await asyncio.sleep(0.05)
    await ctx.session.report_progress(100, 100)
    return said("Reported progress three times.")


@tool("Fails")
async def test_error_handling(ctx, given):
    return failed("This tool intentionally returns an error for testing")


@tool("Asks the client's model", one_text("prompt"))
async def test_sampling(ctx, given):
    if not declares(ctx, "sampling") or not ctx.session.can_send_request:
        return failed("The client does not offer sampling.")
    answer = await legacy_sampling(ctx, given["prompt"])
    return said(f"LLM response: {answer.content.text}")


async def elicited(ctx, message, schema):
    if not declares(ctx, "elicitation") or not ctx.session.can_send_request:
        return failed("The client does not offer elicitation.")
    answer = await legacy_elicitation(ctx, message, schema)
    return said(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")


@tool("Asks the user", one_text("message"))
async def test_elicitation(ctx, given):
    return await elicited(ctx, given["message"], PERSON)


@tool("Asks the user, with defaults")
async def test_elicitation_sep1034_defaults(ctx, given):
    return await elicited(ctx, "Please check the defaults", DEFAULTS)


@tool("Asks the user to choose")
async def test_elicitation_sep1330_enums(ctx, given):
    return await elicited(ctx, "Please choose", ENUMS)


@tool("Answers after a moment")
async def test_reconnection(ctx, given):
    await asyncio.sleep(0.1)
    return said("Answered after a moment.")


@tool("Takes what the 2020-12 dialect describes", DIALECT)
async def json_schema_2020_12_tool(ctx, given):
    return said(json.dumps(given))


@tool("Needs the client's model")
async def test_missing_capability(ctx, given):
    if declares(ctx, "sampling"):
        return said("The client offers sampling.")
    data = {"requiredCapabilities": {"sampling": {}}}
    raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "the client does not offer sampling", data)


@tool("Reports progress, then asks the user if it can")
async def test_streaming_elicitation(ctx, given):
    await ctx.session.report_progress(1, 2)
    if not declares(ctx, "elicitation") or answers(ctx):
        return said("Nothing more is needed.")
    return ask_for(user_name=("What is your name?", "name"))


HEADER = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "text": {"type": "string"}},
    "required": ["region"],
}


@tool("Takes an argument that HTTP repeats as a header", HEADER)
async def test_x_mcp_header(ctx, given):
    return said(json.dumps(given))


@tool("Asks for a name")
async def test_input_required_result_elicitation(ctx, given):
    name = field_input(ctx, "user_name", "name")
    if not isinstance(name, str):
        return ask_for(user_name=("What is your name?", "name"))
    return said(f"Hello, {name}!")


@tool("Asks the model for a capital")
async def test_input_required_result_sampling(ctx, given):
    answer = answers(ctx).get("capital_question")
    if answer is None:
        return required({"capital_question": sampling("What is the capital of France?")})
    return said(f"The model says: {json.dumps(answer.get('content'))}")


@tool("Asks for the client's roots")
async def test_input_required_result_list_roots(ctx, given):
    answer = answers(ctx).get("client_roots")
    if answer is None:
        return required({"client_roots": roots()})
    return said(f"The roots are {json.dumps(answer.get('roots'))}.")


@tool("Asks to confirm, with a state")
async def test_input_required_result_request_state(ctx, given):
    if ctx.params.get("requestState") != "confirming" or field_input(ctx, "confirm", "ok") is None:
        return required({"confirm": elicitation("Please confirm", form("ok", "boolean"))}, "confirming")
    return said("state-ok")


@tool("Asks for three things at once")
async def test_input_required_result_multiple_inputs(ctx, given):
    wanted = {
        "user_name": elicitation("What is your name?", form("name")),
        "greeting": sampling("Generate a greeting", 50),
        "client_roots": roots(),
    }
    if set(wanted) - set(answers(ctx)):
        return required(wanted, "asked three")
    return said("Everything was answered.")


@tool("Asks for two things in turn")
async def test_input_required_result_multi_round(ctx, given):
    state = ctx.params.get("requestState")
    if state == "step 2" and field_input(ctx, "step2", "color") is not None:
        return said("Both steps are done.")
    if state == "step 1" and field_input(ctx, "step1", "name") is not None:
        return ask_for("step 2", step2=("Step 2: What is your favorite color?", "color"))
    return ask_for("step 1", step1=("Step 1: What is your name?", "name"))


@tool("Asks to confirm, with a state that must come back as it was")
async def test_input_required_result_tampered_state(ctx, given):
    return await test_input_required_result_request_state(ctx, given)


@tool("Asks for what the client offers only")
async def test_input_required_result_capabilities(ctx, given):
    offered = {}
    if declares(ctx, "elicitation"):
        offered["user_name"] = elicitation("What is your name?", form("name"))
    if declares(ctx, "sampling"):
        offered["greeting"] = sampling("Generate a greeting", 50)
    if not offered or set(offered) <= set(answers(ctx)):
        return said("Nothing more is needed.")
    return required(offered)


# The tool that `test_trigger_tool_change` removes from the list or adds again: a broker announces a change that it
# sees, not the announcement of its server.
CHANGING = "test_reconnection"
# A broker lists the tools of a server at longer intervals if its announcements follow each other faster.
SECONDS_BETWEEN_CHANGES = 1.3
removed = set()


async def list_tools(ctx, params):
    return {"tools": [definition for name, (definition, _) in TOOLS.items() if name not in removed]}


def make_call_tool(bus):
    changed_at = float("-inf")

    @tool("Removes a tool or adds it again, unless it did so a moment ago")
    async def test_trigger_tool_change(ctx, given):
        nonlocal changed_at
        now = time.monotonic()
        if now - changed_at < SECONDS_BETWEEN_CHANGES:
            return said("The list of tools changed a moment ago.")
        changed_at = now
        removed.symmetric_difference_update({CHANGING})
        if legacy(ctx):
            await ctx.session.send_tool_list_changed()
        await bus.publish(ToolsListChanged())
        return said("The list of tools changed.")

    @tool("Says that the prompts changed")
    async def test_trigger_prompt_change(ctx, given):
        if legacy(ctx):
            await ctx.session.send_prompt_list_changed()
        await bus.publish(PromptsListChanged())
        return said("Said that the prompts changed.")

    async def call_tool(ctx, params):
        if params.name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name}")
        _, function = TOOLS[params.name]
        result = await function(ctx, params.arguments or {})
        if legacy(ctx) and "resultType" in result:
            return failed("The legacy era cannot ask by a result.")
        return result

    return call_tool
