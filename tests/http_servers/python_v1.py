"""Servers of the Python SDK of the first generation (FastMCP), which supports the legacy era."""

import warnings

import mcp.types as types
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import Context, FastMCP

from shared import OneToken, add_tools, listen

warnings.simplefilter("ignore")


def make(**settings):
    return add_tools(FastMCP("python-v1", instructions="Test tools.", **settings), Context, types)


def protected():
    auth = AuthSettings(issuer_url="https://issuer.example", resource_server_url=None)
    return make(auth=auth, token_verifier=OneToken(AccessToken))


listen(
    {
        "/sessions": make().streamable_http_app(),
        "/sessions-json": make(json_response=True).streamable_http_app(),
        "/stateless": make(stateless_http=True).streamable_http_app(),
        "/stateless-json": make(stateless_http=True, json_response=True).streamable_http_app(),
        "/events": make().sse_app(),
        "/protected": protected().streamable_http_app(),
    }
)
