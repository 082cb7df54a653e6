"""Tasks of FastMCP on Redis while their server is killed again and again: how often a task is executed twice, and how often it
is lost without an error. The counterpart of `jobs_end_once_through_crashes_under_load` for docs/jobs.md; not a part of CI.

    apt-get install redis-server
    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install 'fastmcp[tasks]==4.1.4'
    /tmp/peer/bin/python benches/peer_tasks/run.py 300
"""

import collections
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "peer", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
# Tasks that are made between two kills, and the number that has not ended at a kill.
ROUND, LEFT = 25, 20
# The time after the last start in which each task must end: six times the redelivery.
PATIENCE = 60
ENDED = ("completed", "failed", "cancelled")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens at {port}")


class Server:
    """A running server."""

    def __init__(self, folder, redis):
        self.port = free_port()
        variables = {
            "JOURNAL": os.path.join(folder, "journal"),
            "REDIS": f"redis://127.0.0.1:{redis}/0",
            "PORT": str(self.port),
        }
        log = open(os.path.join(folder, "log"), "ab")
        command = [sys.executable, os.path.join(FOLDER, "server.py")]
        self.process = subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log)
        await_port(self.port)

    def ask(self, method, name, params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": META}})
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": method,
            "Mcp-Name": name,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("POST", "/mcp", body, headers)
        text = connection.getresponse().read().decode()
        connection.close()
        for line in text.splitlines():
            if line.startswith("data: {"):
                text = line[len("data: ") :]
        return json.loads(text)

    def make(self, n):
        tool = "slow" if n % 2 == 0 else "quick"
        answer = self.ask("tools/call", tool, {"name": tool, "arguments": {"n": n}})
        return answer["result"]["taskId"]

    def status(self, task):
        answer = self.ask("tasks/get", task, {"taskId": task})
        return answer["result"]["status"] if "result" in answer else "unknown"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    folder = tempfile.mkdtemp()
    port = free_port()
    settings = ["--port", str(port), "--dir", folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always"]
    redis = subprocess.Popen(["redis-server", *settings], stdout=subprocess.DEVNULL)
    await_port(port)
    try:
        tasks, open_tasks, kills = {}, [], 0
        while len(tasks) < count:
            server = Server(folder, port)
            for n in range(len(tasks), min(count, len(tasks) + ROUND)):
                task = server.make(n)
                tasks[task] = n
                open_tasks.append(task)
            end = time.monotonic() + PATIENCE
            while len(open_tasks) > LEFT and time.monotonic() < end:
                open_tasks = [task for task in open_tasks if server.status(task) not in ENDED]
            server.kill()
            kills += 1
        server = Server(folder, port)
        states, left = {}, list(tasks)
        end = time.monotonic() + PATIENCE
        while left and time.monotonic() < end:
            states |= {task: server.status(task) for task in left}
            left = [task for task in left if states[task] not in ENDED]
            time.sleep(0.2)
        server.kill()
    finally:
        redis.terminate()
        redis.wait()
    with open(os.path.join(folder, "journal")) as file:
        executed = collections.Counter(int(line) for line in file)
    ends = collections.Counter(states.values())
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.split()[2]
    print(f"redis {version} {' '.join(settings[4:])}; redelivery_timeout 10 s")
    print(f"tasks {len(tasks)}, kills {kills}, ends {dict(ends)}")
    print(f"executed twice or more: {sum(1 for times in executed.values() if times > 1)}")
    print(f"not executed: {sum(1 for n in tasks.values() if n not in executed)}")
    print(f"not ended after {PATIENCE} s, or unknown: {len(left)}")


main()
