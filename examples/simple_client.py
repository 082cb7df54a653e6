#!/usr/bin/env python3
"""A client of the broker's simple dialect at /v1/mcp, with the standard library only. Reads what the broker offers, then
calls one of its tools in both ways.

    mcp-broker 127.0.0.1:8100
    examples/simple_client.py http://127.0.0.1:8100 text text_case '{"text": "hello world", "to": "title"}'

The variable MCP_BROKER_SECRET has the secret or key, where the broker needs one.
"""

import json
import os
import sys
import urllib.error
import urllib.request


class Broker:
    def __init__(self, url):
        self.endpoint = url.rstrip("/") + "/v1/mcp"
        self.headers = {"Content-Type": "application/json"}
        key = os.environ.get("MCP_BROKER_SECRET")
        if key:
            self.headers["X-API-Key"] = key

    def send(self, method, body=None, headers=None):
        """The status, the headers and the body of a reply."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.endpoint, data, {**self.headers, **(headers or {})}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.headers, reply.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.headers, refusal.read()

    def discover(self):
        status, headers, body = self.send("GET")
        if status != 200:
            sys.exit(f"discovery: HTTP {status}: {body.decode()}")
        again, _, _ = self.send("GET", headers={"If-None-Match": headers["ETag"]})
        print(f"a second request for the same document: HTTP {again}")
        return json.loads(body)

    def ask(self, method, params=None):
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            message["params"] = params
        status, _, body = self.send("POST", message)
        answer = json.loads(body)
        if status != 200:
            sys.exit(f"{method}: HTTP {status}: {answer['error']['message']}")
        return answer


def main():
    if len(sys.argv) != 5:
        sys.exit("usage: simple_client.py URL STAGE COMMAND ARGUMENTS\n\nSTAGE and COMMAND are the path of a tool, and ARGUMENTS one JSON object.")
    url, stage, command, args = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    broker = Broker(url)
    document = broker.discover()
    names = [entry["name"] for entry in document["capabilities"]["commands"]]
    print(f"{document['name']}: {len(names)} commands")
    report = broker.ask("statusReport")["result"]
    print(f"status: {report['status']}, version {report['version']}")
    begun = broker.ask("initialize")["result"]
    print(f"protocol: {begun['protocolVersion']}")
    listed = [tool["name"] for tool in broker.ask("tools/list")["result"]["tools"]]
    print(f"tools/list has the same names: {listed == names}")
    answer = broker.ask("callTool", {"stage": stage, "command": command, "args": args, "mode": "sync"})
    if "error" in answer:
        sys.exit(f"callTool: {answer['error']['message']}: {json.dumps(answer['error'].get('data'))}")
    print(f"callTool: exit code {answer['result']['exit_code']}, output {answer['result']['stdout']}")
    name = f"{stage}-{command}".strip("-").replace("/", "-")
    answer = broker.ask("tools/call", {"name": name, "arguments": args, "mode": "sync"})
    if "error" in answer:
        sys.exit(f"tools/call: {answer['error']['message']}")
    print(f"tools/call: {answer['result']['status']}, output {answer['result']['stdout']}")


if __name__ == "__main__":
    main()
