"""The arguments of the Python clients behind the mode: `[--call NAME ARGS]`, then the URL of a server or
the command that starts one.
"""

import json
import sys


def parse():
    """The call as (name, arguments) or None, the URL or None, and the command."""
    rest = sys.argv[2:]
    call = None
    if rest[0] == "--call":
        call = (rest[1], json.loads(rest[2]))
        rest = rest[3:]
    url = rest[0] if rest[0].startswith(("http://", "https://")) else None
    return call, url, rest


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
