"""Servers of the Python SDK of the second generation (MCPServer), which supports both eras."""

import warnings

import mcp_types as types
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer

from shared import OneToken, add_tools, listen

warnings.simplefilter("ignore")


def make(**settings):
    return add_tools(MCPServer("python-v2", instructions="Test tools.", **settings), Context, types)


def protected():
    auth = AuthSettings(issuer_url="https://issuer.example", resource_server_url=None)
    return make(auth=auth, token_verifier=OneToken(AccessToken))


listen(
    {
        "/sse": make().streamable_http_app(),
        "/json": make().streamable_http_app(json_response=True),
        "/stateless-json": make().streamable_http_app(stateless_http=True, json_response=True),
        "/protected": protected().streamable_http_app(),
    }
)
