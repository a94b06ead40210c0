"""The documents that this package was asked for in: what they show of Python runs as it stands.

A copy of the calls is in test_files.py, for where the documents are not.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, image
from test_files import archive
from test_remote import DUMMY, served

DATA = pathlib.Path(
    os.environ.get("TURBOLOADER_DATA", pathlib.Path(__file__).parents[4] / "shared" / "data")
)
COUNT = 20


def snippets():
    found = []
    for document in sorted((DATA.parent / "seeds").glob("*.txt")):
        blocks = re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)
        found += [block for block in blocks if re.search(r"\b(turboloader|tl)\.\w", block)]
    return found


SNIPPETS = snippets()


@pytest.mark.skipif(not SNIPPETS, reason="the documents are not there: set TURBOLOADER_DATA")
def test_every_call_of_the_documents_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    archive(tmp_path / "input.tar", COUNT)
    for name in ("dataset.tbl", "imagenet.tbl", "mixed_format.tbl"):
        tl.convert("input.tar", name, sync=False)
    bucket = tmp_path / "store" / "bucket"
    bucket.mkdir(parents=True)
    shutil.copy("input.tar", bucket / "train")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in DUMMY.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    with served(bucket.parent) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        ran = {run(block) for block in SNIPPETS}
    assert ran == {"converted", "samples", "workers", "tensors"}


def run(block):
    # One goes without the import of the ones before it.
    scope = {"turboloader": tl, "heavy_augment": dict, "light_augment": dict}
    exec(block, scope)
    return check(scope)


def check(scope):
    """What a snippet made is what it says."""
    if "progress" in scope:
        assert len(tl.TblReader("output.tbl")) == COUNT
        return "converted"
    if "loader_1" in scope:
        parts = [set(indices(scope[f"loader_{worker}"])) for worker in (0, 1)]
        assert not parts[0] & parts[1]
        # All of them are within the first 64, which are worker 0's.
        assert parts[0] | parts[1] == set(range(COUNT))
        return "workers"
    if "images" in scope:
        assert scope["images"].shape == (COUNT, 3, 224, 224)
        assert scope["labels"].shape == (COUNT,)
        return "tensors"
    sample = scope["sample"]
    assert isinstance(sample["image"], np.ndarray)
    assert sample["image"].shape == (HEIGHT, WIDTH, 3)
    np.testing.assert_array_equal(sample["image"], image(sample["index"]))
    return "samples"


def indices(loader):
    return [index for batch in loader for index in batch["index"].numpy().tolist()]
