"""A server over stdio with the prompts, templates and resources of a JSON file. It writes each request to get a prompt, to
read a resource or to complete an argument into a log, and announces changes when the file changes."""

import json
import os
import sys
import threading
import time

file, log = sys.argv[1], sys.argv[2]
lock = threading.Lock()


def lists():
    with open(file, encoding="utf-8") as text:
        return json.load(text)


def send(message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def watch():
    known = os.stat(file).st_mtime_ns
    while True:
        time.sleep(0.05)
        now = os.stat(file).st_mtime_ns
        if now != known:
            known = now
            for name in ["prompts", "resources"]:
                send({"method": f"notifications/{name}/list_changed"})


def answer(method, params):
    if method == "initialize":
        changing = {"listChanged": True}
        capabilities = {"prompts": changing, "resources": changing, "tools": {}, "completions": {}}
        return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "items", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "noop", "inputSchema": {"type": "object"}}, *lists().get("tools", [])]}
    if method == "prompts/list":
        return {"prompts": lists().get("prompts", [])}
    if method == "resources/list":
        return {"resources": lists().get("resources", [])}
    if method == "resources/templates/list":
        return {"resourceTemplates": lists().get("templates", [])}
    if method not in ["resources/read", "prompts/get", "completion/complete"]:
        return {}
    with open(log, "a", encoding="utf-8") as out:
        print(json.dumps([method, params]), file=out, flush=True)
    if method == "resources/read":
        content = {"uri": params["uri"], "text": f"content of {params['uri']}"}
        return {"contents": [{**content, **lists().get("content", {})}]}
    if method == "prompts/get":
        text = json.dumps([params["name"], params.get("arguments")], ensure_ascii=False)
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if method == "completion/complete":
        return {"completion": {"values": [params["argument"]["value"] + "!"], "hasMore": False}}
    return {}


threading.Thread(target=watch, daemon=True).start()
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        send({"id": message["id"], "result": answer(message["method"], message.get("params", {}))})
