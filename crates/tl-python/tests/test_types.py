"""Type checkers find the mistakes of users, and no others."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

GOOD = """
import turboloader as tl
from turboloader import transforms as T

loader = tl.DataLoader("a.tar", 64, shuffle=True, transform=[T.Resize((8, 8)), T.ToTensor()])
for batch in loader:
    print(batch["image"].numpy(), batch[0]["label"], batch[1:3].torch(), batch.label)
for images, labels in tl.DataLoader("a.tar", fields=("image", "label"), output_format="torch"):
    print(images, labels)
size = T.Resize(224).size
tl.DataLoader("a.tar", tail="pad", errors="skip", parity="tensor", memory="2GB", seed=None)
tl.DataLoader("a.tar", cache=tl.Cache("2GB", decoded=True), errors=tl.Errors("skip", at_most=0.01))
tl.DataLoader("a.idv", columns=["a"], ranks="auto", store={"region": "eu"}, buckets=tl.Buckets(8))
tl.open("a.tar", store=tl.Store(connections=4))
"""

# A line, and what a type checker says about it.
BAD = {
    'tl.DataLoader("a.tar", batchsize=3)': "batchsize",
    'tl.DataLoader("a.tar", errors="ignore")': "errors",
    'tl.Errors("ignore")': "Errors",
    'tl.DataLoader("a.tar", ranks="all")': "ranks",
    'tl.DataLoader("a.tar", cache=tl.Errors("skip"))': "cache",
    'tl.DataLoader("a.tar", output_format="torchh")': "output_format",
    'tl.DataLoader("a.tar", tail="keep")': "tail",
    'tl.DataLoader("a.tar", parity="cv2")': "parity",
    'tl.DataLoader("a.tar", batch_size="8")': "batch_size",
    'tl.DataLoader("a.tar", drop_last="no")': "drop_last",
    "T.Resize(224).sizes": "sizes",
    'tl.decode("a.jpg")': "decode",
}


def checked(checker: list[str], path: pathlib.Path) -> str:
    command = [sys.executable, "-m", *checker, str(path)]
    return subprocess.run(command, capture_output=True, text=True).stdout


@pytest.mark.parametrize("checker", [["mypy", "--strict", "--no-incremental"]], ids=["mypy"])
def test_a_script_of_a_user_has_the_types_it_should(tmp_path, checker):
    pytest.importorskip(checker[0])
    script = tmp_path / "script.py"
    script.write_text(GOOD)
    assert "Success" in checked(checker, script)
    head = "import turboloader as tl\nfrom turboloader import transforms as T\n"
    script.write_text(head + "\n".join(BAD))
    lines = checked(checker, script).splitlines()
    for number, (code, word) in enumerate(BAD.items(), 3):
        found = [line for line in lines if f"script.py:{number}:" in line and "error" in line]
        assert found, (code, lines)
        assert any(word in line for line in found), (code, found)
