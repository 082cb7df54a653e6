"""The authorization-code flow of the Python SDKs, as a user of them writes it, with a client that is registered at
the issuer: `python oauth.py v1|v2 legacy|auto ISSUER URL NAME ARGS`. Prints one JSON object.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

from target import plain

REDIRECT = "http://127.0.0.1/callback"


class Storage:
    """What an application keeps."""

    def __init__(self, issuer):
        self.tokens = None
        self.client = OAuthClientInformationFull(
            client_id="python", redirect_uris=[REDIRECT], token_endpoint_auth_method="none", issuer=issuer
        )

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """The step that the user of an application does; the issuer asks nothing and redirects."""

    def __init__(self, http, result):
        self.http = http
        self.result = result

    async def open(self, page):
        async with self.http.AsyncClient(follow_redirects=False) as client:
            answer = await client.get(page)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        self.callback = {name: values[0] for name, values in query.items()}

    async def wait(self):
        return self.result(self.callback)


async def use(client, name, arguments):
    tools = (await client.list_tools()).tools
    call = await client.call_tool(name, json.loads(arguments))
    return {"tools": [tool.name for tool in tools], "call": plain(call)}


async def first_generation(http, url, *call):
    from mcp import ClientSession

    transport = streamable_http_client(url, http_client=http)
    async with transport as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        return await use(session, *call)


async def second_generation(http, mode, url, *call):
    from mcp import Client

    async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        return await use(client, *call)


async def main():
    generation, mode, issuer, url, *call = sys.argv[1:]
    if generation == "v1":
        import httpx as http

        browser = Browser(http, lambda callback: (callback["code"], callback["state"]))
    else:
        import httpx2 as http
        from mcp.shared.auth import AuthorizationCodeResult

        browser = Browser(http, lambda callback: AuthorizationCodeResult(**callback))
    auth = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(redirect_uris=[REDIRECT], token_endpoint_auth_method="none"),
        storage=Storage(issuer),
        redirect_handler=browser.open,
        callback_handler=browser.wait,
    )
    async with http.AsyncClient(auth=auth) as client:
        if generation == "v1":
            seen = await first_generation(client, url, *call)
        else:
            seen = await second_generation(client, mode, url, *call)
    print(json.dumps(seen))


asyncio.run(main())
