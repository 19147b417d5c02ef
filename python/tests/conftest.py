"""Fixtures shared by several tests: the repository, the program, and small trained models."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


def run(*arguments: object, cwd: Path | None = None) -> str:
    """Runs `f2`, which must succeed, and returns its standard output."""
    command = [sys.executable, "-m", "f2_softmax", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, f"f2 {' '.join(command[3:])}: {done.stderr}"
    return done.stdout


def run_json(*arguments: object) -> dict:
    return json.loads(run(*arguments, "--json"))


SMALL = [
    *("--set", "model.layers=2", "--set", "model.width=32", "--set", "model.heads=4"),
    *("--set", "model.feed_forward=64", "--set", "batch.sequence=64", "--set", "batch.size=8"),
]


class Models:
    """Models trained on the documentation of this repository, and their exports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.corpus = folder / "corpus"
        text = folder / "text"
        text.mkdir()
        for number, page in enumerate(sorted((REPOSITORY / "docs").glob("*.md"))):
            shutil.copy(page, text / f"{number}.txt")
        run("prepare", text, "--out", self.corpus, "--vocab-size", 600, "--end-of-text", "--split", "0.8,0.1,0.1")
        run("classes", self.corpus)

    def trained(self, name: str, *settings: object) -> Path:
        out = self.folder / name
        if not out.exists():
            run("train", self.corpus, "--out", out, "--steps", 80, *SMALL, *settings)
        return out

    def exported(self, name: str, *settings: object) -> Path:
        run_folder, out = self.trained(name, *settings), self.folder / f"{name}-exported"
        if not out.exists():
            run("export", run_folder, "--out", out)
        return out


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    return Models(tmp_path_factory.mktemp("models"))
