"""Copies the tree, for checks that change its code."""

import os
import subprocess
import tomllib


def copy_tree(root, to, name):
    """Copies the files that git knows or would add. The packages get another version, with `name`: else Cargo would take
    the compiled ones of the tree, and those of the copy for the ones of the tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
    present = [name for name in names.split(b"\0") if name and os.path.lexists(os.path.join(os.fsencode(root), name))]
    archive = ["tar", "-C", root, "--null", "--no-recursion", "-T", "-", "-cf", "-"]
    packed = subprocess.run(archive, check=True, input=b"\0".join(present), capture_output=True).stdout
    subprocess.run(["tar", "-C", to, "-xmf", "-"], check=True, input=packed)
    manifest, lock = to / "Cargo.toml", to / "Cargo.lock"
    version = tomllib.loads(manifest.read_text())["workspace"]["package"]["version"]
    old, new = f'version = "{version}"', f'version = "{version}+{name}"'
    manifest.write_text(manifest.read_text().replace(f"[workspace.package]\n{old}", f"[workspace.package]\n{new}"))
    packages = lock.read_text().split("\n\n")
    lock.write_text("\n\n".join(text if "\nsource = " in text else text.replace(old, new, 1) for text in packages))
