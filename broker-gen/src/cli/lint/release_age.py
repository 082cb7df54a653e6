# Prints the time of a release of a Python package, as {VERSION: TIME}. Asks the index of uv, else that of pip.
import base64, json, os, re, subprocess, sys, urllib.parse, urllib.request

LIMIT = 64 << 20  # bytes of an answer
name, version = sys.argv[1:]


def pip(*words):
    done = subprocess.run([sys.executable, "-I", "-m", "pip", *words], capture_output=True, text=True, timeout=10)
    return done.stdout if done.returncode == 0 else ""


def index():
    for variable in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if os.environ.get(variable):
            return os.environ[variable]
    configured = pip("config", "get", "global.index-url").strip()
    if configured:
        return configured
    # The help of pip names its default.
    found = re.search(r"default\s+(https://[^\s)]+)\)", pip("install", "--help"))
    if not found:
        sys.exit("pip names no index")
    return found.group(1).rstrip(".")


def is_of(filename):
    if filename.endswith(".whl"):
        return filename.split("-")[1] == version
    return re.sub(r"\.(tar\.\w+|zip|tgz)$", "", filename).endswith("-" + version)


page = urllib.parse.urlsplit(index().rstrip("/") + "/" + re.sub(r"[-_.]+", "-", name).lower() + "/")
headers = {"Accept": "application/vnd.pypi.simple.v1+json"}  # PEP 691; the times are those of PEP 700
login, has_login, host = page.netloc.rpartition("@")
if has_login:
    headers["Authorization"] = "Basic " + base64.b64encode(urllib.parse.unquote(login).encode()).decode()
request = urllib.request.Request(page._replace(netloc=host).geturl(), headers=headers)
with urllib.request.urlopen(request, timeout=15) as answer:
    text = answer.read(LIMIT + 1)
if len(text) > LIMIT:
    sys.exit("the answer is too large")
times = [one["upload-time"] for one in json.loads(text)["files"] if "upload-time" in one and is_of(one["filename"])]
print(json.dumps({version: min(times)} if times else {}))
