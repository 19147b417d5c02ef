"""`python -m f2_softmax`: the program `f2` that came with this package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def program() -> str | None:
    """The path of `f2`: next to this Python, or found on the `PATH`."""
    name = "f2.exe" if os.name == "nt" else "f2"
    schemes = [None, *(scheme for scheme in sysconfig.get_scheme_names() if scheme.endswith("user"))]
    for scheme in schemes:
        folder = sysconfig.get_path("scripts") if scheme is None else sysconfig.get_path("scripts", scheme)
        if folder and (Path(folder) / name).is_file():
            return str(Path(folder) / name)
    return shutil.which("f2")


def main() -> int:
    found = program()
    if found is None:
        print("error: the program f2 is not installed beside this Python, nor on the path", file=sys.stderr)
        print("  help: install the wheel f2-softmax with pip, or build f2 with cargo", file=sys.stderr)
        return 4
    if os.name == "nt":
        return subprocess.call([found, *sys.argv[1:]])
    os.execv(found, [found, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
