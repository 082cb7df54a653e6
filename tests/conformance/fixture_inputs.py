"""What the server of the conformance tests asks its clients for: in the modern era by a result that says
which input is missing, in the legacy era by a request.
"""

import mcp_types as types

def form(field, kind="string"):
    return {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}


def elicitation(message, schema):
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def sampling(prompt, tokens=100):
    said = {"role": "user", "content": {"type": "text", "text": prompt}}
    return {"method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": tokens}}


def roots():
    return {"method": "roots/list", "params": {}}


def required(requests, state=None):
    result = {"resultType": "input_required", "inputRequests": requests}
    return result if state is None else result | {"requestState": state}


def ask_for(state=None, **fields):
    """Asks for one text per name, given as (message, field)."""
    return required({key: elicitation(message, form(field)) for key, (message, field) in fields.items()}, state)


def answers(ctx):
    """The client's answers by key, as they were sent."""
    given = ctx.params.get("inputResponses")
    return given if isinstance(given, dict) else {}


def field_input(ctx, key, field):
    """What the user entered, or None if it has to be asked for."""
    answer = answers(ctx).get(key)
    content = answer.get("content") if isinstance(answer, dict) else None
    return content.get(field) if isinstance(content, dict) else None


def legacy(ctx):
    return ctx.protocol_version < "2026"


def declares(ctx, capability):
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and getattr(capabilities, capability) is not None


async def legacy_elicitation(ctx, message, schema):
    return await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)


async def legacy_sampling(ctx, prompt):
    said = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    return await ctx.session.create_message([said], max_tokens=100, related_request_id=ctx.request_id)
