"""The notebook runs, and so do the examples of the READMEs."""

import json
import re

import pytest
from conftest import REPOSITORY


def run_notebook(name, monkeypatch, **changes):
    cells = json.loads((REPOSITORY / "examples" / name).read_text(encoding="utf-8"))["cells"]
    monkeypatch.chdir(REPOSITORY / "examples")
    scope = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            code = "".join(cell["source"])
            for key, value in changes.items():
                code = re.sub(rf"^{key} = .*$", f"{key} = {value}", code, flags=re.M)
            exec(code, scope)
    return scope


def test_the_notebook_runs(monkeypatch, capsys):
    pytest.importorskip("torch")
    scope = run_notebook("torch_layer.ipynb", monkeypatch, STEPS=10)
    assert set(scope["scores"]) == {"plain", "F²", "human"}
    assert scope["scores"]["human"]["kld"] == 0.0


@pytest.mark.parametrize("needs, marker", [(None, "metrics"), ("torch", "F2Softmax"), (None, "mefmax")])
def test_the_examples_of_the_readme_run(needs, marker, capsys):
    if needs:
        pytest.importorskip(needs)
    readme = (REPOSITORY / "python/README.md").read_text(encoding="utf-8")
    codes = [code for code in re.findall(r"```python\n(.*?)```", readme, re.S) if marker in code]
    assert codes
    for code in codes:
        exec(code, {})
