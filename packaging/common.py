"""The parts that all packages share: arguments, programs, pages, and archives without times and users."""

import argparse
import gzip
import hashlib
import io
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The earliest time that every format of an archive can have, so that equal inputs give equal bytes.
TIME = 315532800
MAINTAINER = "The mcp-broker maintainers <maintainers@example.org>"
SUMMARY = "Puts reviewed, locked MCP tools behind three stable meta-tools"

# For each target: wheel platform (with the C library's version in place of %d), npm name, npm fields, Debian, OCI.
TARGETS = {
    "x86_64-unknown-linux-gnu": ("manylinux_2_%d_x86_64", "linux-x64-gnu", ("x64", "glibc"), "amd64"),
    "aarch64-unknown-linux-gnu": ("manylinux_2_%d_aarch64", "linux-arm64-gnu", ("arm64", "glibc"), "arm64"),
    "x86_64-unknown-linux-musl": ("musllinux_1_2_x86_64", "linux-x64-musl", ("x64", "musl"), "amd64"),
    "aarch64-unknown-linux-musl": ("musllinux_1_2_aarch64", "linux-arm64-musl", ("arm64", "musl"), "arm64"),
}
DEFAULT_TARGET = "x86_64-unknown-linux-gnu"
SHELLS = {"bash": "broker-gen", "zsh": "_broker-gen", "fish": "broker-gen.fish"}


def arguments(description):
    """Returns the arguments that every package has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--binary", type=Path, required=True, help="folder with broker-gen and mcp-broker-runtime or mcp-broker")
    parser.add_argument("--out", type=Path, required=True, help="folder for the package")
    parser.add_argument("--target", choices=TARGETS, default=DEFAULT_TARGET, help="what the programs were built for")
    parser.add_argument("--level", type=int, default=9, help="level of compression; 1 is fast")
    parser.add_argument("--pages-by", type=Path, help="a broker-gen that runs here, if --binary was built for another machine")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def version():
    """Returns the version of the workspace."""
    text = (ROOT / "Cargo.toml").read_text()
    section = text.split("[workspace.package]", 1)[1]
    return re.search(r'^version = "(.+)"', section, re.MULTILINE)[1]


def programs(folder):
    """Returns the bytes of the programs by the names that they have in a package."""
    runtime = folder / "mcp-broker-runtime"
    if not runtime.exists():
        runtime = folder / "mcp-broker"
    return {"broker-gen": (folder / "broker-gen").read_bytes(), "mcp-broker": runtime.read_bytes()}


def libc_minor(programs):
    """Returns N of the newest version 2.N of glibc that a program names; at least 17."""
    found = (re.findall(rb"\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)", program) for program in programs.values())
    return max([17] + [int(minor) for minors in found for minor in minors])


def generated_pages(args):
    """Returns man pages and completions of both programs by their names."""
    by = args.pages_by or args.binary / "broker-gen"
    def run(*words):
        return subprocess.run([by, *words], check=True, capture_output=True).stdout
    pages = {}
    with tempfile.TemporaryDirectory() as folder:
        for program in ["broker-gen", "mcp-broker"]:
            run("man", "--program", program, "--out", folder)
        for page in sorted(Path(folder).iterdir()):
            pages["man1/" + page.name] = page.read_bytes()
    for program in ["broker-gen", "mcp-broker"]:
        for shell, name in SHELLS.items():
            name = name.replace("broker-gen", program)
            pages[f"{shell}/{name}"] = run("completions", shell, "--program", program)
    return pages


def tarball(files):
    """Returns the bytes of an archive of files, `name: (bytes, mode)`, in the order of their names, with their folders."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        folders = {name[:at] for name in files for at in range(2, len(name)) if name[at] == "/"}
        entries = [(folder, None) for folder in folders] + list(files.items())
        for name, content in sorted(entries, key=lambda entry: entry[0]):
            info = tarfile.TarInfo(name)
            info.mtime = TIME
            if content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
            else:
                info.size, info.mode = len(content[0]), content[1]
                archive.addfile(info, io.BytesIO(content[0]))
    return out.getvalue()


def gzipped(data, level):
    """Returns compressed bytes without a time and a name."""
    return gzip.compress(data, level, mtime=0)


def sha256(data):
    """Returns the digest in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def write(path, data):
    """Writes a package and prints its name."""
    path.write_bytes(data)
    print(path)
