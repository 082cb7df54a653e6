"""A stand-in for the Docker daemon and its command line; README.md says what it does.

docker.py daemon SOCKET IMAGES    runs containers until its standard input ends
docker.py client SOCKET ARGS...   is `docker ARGS...`
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading

containers = {}
lock = threading.Lock()


def start(request):
    """Starts a container. Its process must not be a descendant of the client."""
    name = request["name"] or os.urandom(6).hex()
    with lock:
        if name in containers:
            raise ValueError(f'Conflict. The container name "{name}" is already in use')
    argv = request["images"][request["image"]]
    environment = {"PATH": os.environ["PATH"], **request["env"]}

    def prepare():
        signal.signal(signal.SIGTERM, signal.SIG_DFL if request["init"] else signal.SIG_IGN)

    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
        preexec_fn=prepare,
    )
    identity = os.urandom(32).hex()
    with lock:
        containers[name] = (identity, process)
    return name, identity, process


def end(name, process, by=signal.SIGKILL):
    try:
        os.killpg(process.pid, by)
    except ProcessLookupError:
        pass


def serve(connection, images):
    reader = connection.makefile("rb")
    request = json.loads(reader.readline())

    def send(**message):
        try:
            connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass

    if request["verb"] == "ps":
        with lock:
            send(names=sorted(containers))
        return connection.close()
    if request["verb"] == "rm":
        with lock:
            found = [n for n, (i, _) in containers.items() if request["name"] in (n, i)]
            identity, process = containers.pop(found[0]) if found else (None, None)
        if process is not None:
            end(found[0], process)
            process.wait()
        send(found=bool(found))
        return connection.close()
    try:
        name, identity, process = start({**request, "images": images})
    except (ValueError, KeyError) as error:
        send(error=str(error))
        return connection.close()
    send(id=identity)

    def pump(stream, key):
        while chunk := stream.read1(65536):
            send(**{key: chunk.decode("latin-1")})

    pumps = [
        threading.Thread(target=pump, args=(process.stdout, "out"), daemon=True),
        threading.Thread(target=pump, args=(process.stderr, "err"), daemon=True),
    ]
    for one in pumps:
        one.start()

    def wait():
        process.wait()
        for one in pumps:
            one.join(1)
        with lock:
            containers.pop(name, None)
        send(exit=process.returncode if process.returncode >= 0 else 128 - process.returncode)

    threading.Thread(target=wait, daemon=True).start()
    for line in reader:
        message = json.loads(line)
        try:
            if "in" in message:
                process.stdin.write(message["in"].encode("latin-1"))
                process.stdin.flush()
            elif "signal" in message:
                end(name, process, message["signal"])
            elif "eof" in message:
                process.stdin.close()
        except OSError:
            pass
    # The client is gone: its input ends, and the container runs on.
    try:
        process.stdin.close()
    except OSError:
        pass


def daemon(path, images):
    with open(images, encoding="utf-8") as file:
        images = json.load(file)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)

    def until_end():
        sys.stdin.buffer.read()
        for name, (_, process) in list(containers.items()):
            end(name, process)
        os._exit(0)

    threading.Thread(target=until_end, daemon=True).start()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, images), daemon=True).start()


def variables(words):
    """The variables of options, and the rest."""
    environment = {}
    options = {"env": environment, "init": False, "name": None, "id_file": None}

    def add(word):
        name, has_value, value = word.partition("=")
        if has_value:
            environment[name] = value
        elif name in os.environ:
            environment[name] = os.environ[name]

    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if word == "--init":
            options["init"] = True
        elif name in ("-e", "--env", "--env-file", "--name", "--cidfile"):
            value = value if has_value else words.pop(0)
            if name == "--name":
                options["name"] = value
            elif name == "--cidfile":
                options["id_file"] = value
            elif name == "--env-file":
                with open(value, encoding="utf-8") as file:
                    for line in file.read().split():
                        add(line)
            else:
                add(value)
    return options, words


def client(path, words):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    reader = connection.makefile("rb")
    sending = threading.Lock()

    def send(**message):
        with sending:
            connection.sendall(json.dumps(message).encode() + b"\n")

    verb, words = words[0], words[1:]
    if verb == "ps":
        send(verb="ps")
        print("\n".join(json.loads(reader.readline())["names"]))
        return 0
    if verb == "rm":
        force = words.pop(0)
        assert force in ("-f", "--force"), "the stand-in removes running containers only with -f"
        send(verb="rm", name=words[0])
        if json.loads(reader.readline())["found"]:
            return 0
        print(f"Error: No such container: {words[0]}", file=sys.stderr)
        return 1
    options, words = variables(words)
    id_file = options.pop("id_file")
    if id_file is not None and os.path.exists(id_file):
        print("docker: container ID file found, make sure the other container isn't running", file=sys.stderr)
        return 125
    if verb == "exec":
        # A process in a container that exists: no signal is passed on.
        image = [word for word in words if word != "--"][1]
        send(verb="run", image=image, **{**options, "name": None})
    else:
        send(verb="run", image=words[0], **options)
    answer = json.loads(reader.readline())
    if "error" in answer:
        print(f"docker: Error response from daemon: {answer['error']}", file=sys.stderr)
        return 125
    if id_file is not None:
        with open(id_file, "x", encoding="utf-8") as file:
            file.write(answer["id"])
    if verb == "run":
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda number, _: send(signal=number))

    def pump():
        while chunk := os.read(0, 65536):
            send(**{"in": chunk.decode("latin-1")})
        send(eof=True)

    threading.Thread(target=pump, daemon=True).start()
    for line in reader:
        message = json.loads(line)
        if "out" in message:
            os.write(1, message["out"].encode("latin-1"))
        elif "err" in message:
            os.write(2, message["err"].encode("latin-1"))
        else:
            return message["exit"]
    print("docker: the daemon is gone", file=sys.stderr)
    return 125


if __name__ == "__main__":
    if sys.argv[1] == "daemon":
        daemon(sys.argv[2], sys.argv[3])
    else:
        code = client(sys.argv[2], sys.argv[3:])
        sys.stdout.flush()
        os._exit(code)
