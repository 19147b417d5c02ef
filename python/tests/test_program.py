"""The program that comes with the wheel."""

import subprocess
import sys
from pathlib import Path

import f2_softmax
from conftest import run


def test_the_program_is_installed_and_has_the_version_of_the_package():
    assert run("--version").split()[:2] == ["f2", f2_softmax.__version__]


def test_exit_codes_come_through():
    done = subprocess.run([sys.executable, "-m", "f2_softmax", "perplexity", "nowhere", "x"], capture_output=True)
    assert done.returncode == 3 and b"nowhere" in done.stderr


def test_the_package_is_typed():
    folder = Path(f2_softmax.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_native.pyi").exists()
