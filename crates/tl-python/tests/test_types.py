"""Type checkers find the mistakes of users, and no others."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

SCRIPTS = pathlib.Path(__file__).parent / "typing"
# Pyright in a package that has all of it: the one called pyright downloads it.
CHECKERS = {"mypy": ["mypy", "--strict", "--no-incremental"], "pyright": ["basedpyright"]}

# A line, and a pattern of what type checkers say about it.
BAD = {
    'tl.DataLoader("a.tar", batchsize=3)': "batchsize",
    'tl.DataLoader("a.tar", errors="ignore")': "errors",
    'tl.Errors("ignore")': "policy|ignore",
    'tl.DataLoader("a.tar", ranks="all")': "ranks",
    'tl.DataLoader("a.tar", cache=tl.Errors("skip"))': "cache",
    'tl.DataLoader("a.tar", output_format="torchh")': "output_format|torchh",
    'tl.DataLoader("a.tar", tail="keep")': "tail",
    'tl.DataLoader("a.tar", parity="cv2")': "parity",
    'tl.DataLoader("a.tar", batch_size="8")': "batch_size",
    'tl.DataLoader("a.tar", drop_last="no")': "drop_last",
    'tl.DataLoader("a.tar", fields=3)': "fields|_GivenFields",
    'tl.DataLoader("a.tar", 8, 3)': "transform|Transform",
    'T.Resize(224, "bicubicc")': "interpolation|bicubicc",
    'T.Pad(2, padding_mode="mirror")': "padding_mode|mirror",
    'T.Resize("224")': "size|Resize",
    "T.RandomHorizontalFlip(q=0.5)": "q",
    "T.ToTensor(1)": "argument|rguments",
    'tl.DataLoader("a.tar", output_format="Torch")': "output_format|Torch",
    'tl.DataLoader("a.tar").peek()["image"] + 1': "operand|Operator",
    "T.Resize(224).sizes": "sizes",
    'tl.decode("a.jpg")': "decode",
}


def checked(name: str, *paths: pathlib.Path) -> str:
    pytest.importorskip(CHECKERS[name][0])
    folder = paths[0].parent
    if name == "pyright":
        settings = {"typeCheckingMode": "strict", "include": ["."]}
        (folder / "pyrightconfig.json").write_text(json.dumps(settings))
        options = ["--project", str(folder), "--level", "error", "--pythonpath", sys.executable]
        command = [*CHECKERS[name], *options]
    else:
        command = [*CHECKERS[name], *map(str, paths)]
    command = [sys.executable, "-m", *command]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout


@pytest.mark.parametrize("checker", CHECKERS)
def test_scripts_of_users_have_no_errors(tmp_path, checker):
    scripts = []
    for source in sorted(SCRIPTS.glob("*.py")):
        if find_spec("torch") or "import torch" not in source.read_text():
            scripts.append(tmp_path / source.name)
            shutil.copy(source, scripts[-1])
    assert len(scripts) >= 10
    said = checked(checker, *scripts)
    assert "Success" in said or "0 errors" in said, said


@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_of_users_are_found(tmp_path, checker):
    script = tmp_path / "script.py"
    head = "import turboloader as tl\nfrom turboloader import transforms as T\n"
    script.write_text(head + "\n".join(BAD))
    lines = checked(checker, script).splitlines()
    for number, (code, word) in enumerate(BAD.items(), 3):
        found = [line for line in lines if f"script.py:{number}:" in line and "error" in line]
        assert found, (code, lines)
        assert any(re.search(word, line) for line in found), (code, found)
