"""Reads URIs as a server with Python's `urllib` does. One line in for each URI and one line out with its readings: JSON."""

import ipaddress
import json
import socket
import sys
import unicodedata
from urllib.parse import unquote, urlparse
from urllib.request import url2pathname


def host_of(name):
    """The host to which a connection goes: an address, or a name as `socket` encodes it."""
    name = name.rstrip(".")
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        pass
    else:
        mapped = getattr(address, "ipv4_mapped", None)
        return str(mapped or address)
    try:
        return socket.inet_ntoa(socket.inet_aton(name))
    except OSError:
        return name.encode("idna").decode("ascii") if name else ""


def readings(uri):
    url = urlparse(uri)
    path = unquote(url.path)
    host = host_of(unquote(url.hostname or ""))
    before = f"{url.scheme}://{host}" if host else f"{url.scheme}:"
    found = [f"{before}{path}"]
    # Some file systems store names in the form NFC.
    found.append(unicodedata.normalize("NFC", found[0]))
    if url.scheme == "file" and url.netloc in ("", "localhost", "127.0.0.1"):
        found.append(f"file:{url2pathname(url.path)}")
    return found


for line in sys.stdin:
    try:
        found = readings(json.loads(line))
    except ValueError:
        found = []
    print(json.dumps(sorted(set(found))), flush=True)
