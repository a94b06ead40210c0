"""The code in the documents and docstrings runs as it stands there.

Blocks that begin with ```` ```python ```` are run, those of one document one behind the other with
the same names. ```` ```python theirs ```` marks code of another library, and ```` ```python torch
```` code that is left out where the package named is not there.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import re
from importlib.util import find_spec

import numpy as np
import pytest
import turboloader as tl
from conftest import run_examples
from stored import ring, write_segment, write_table

ROOT = pathlib.Path(__file__).parents[3]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "crates" / "tl-python" / "README.md",
    ROOT / "docs" / "python.md",
    ROOT / "docs" / "trainers.md",
    ROOT / "docs" / "video.md",
    *sorted((ROOT / "docs" / "migration").glob("*.md")),
]
BLOCK = re.compile(r"^```python(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: pathlib.Path) -> list[tuple[int, list[str], str]]:
    """The blocks of code: the line each begins on, its words, its text."""
    text = document.read_text()
    found = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start(2))
        found.append((line, match[1].split(), match[2]))
    return found


@pytest.fixture
def folder(tmp_path, photos, monkeypatch):
    """A folder with the data sets that documents name."""
    os.symlink(ROOT / "testdata", tmp_path / "testdata")
    tl.convert(photos, tmp_path / "train.tar", sync=False)
    tl.convert(photos, tmp_path / "train.tbl", sync=False)
    os.symlink(photos, tmp_path / "photos")
    os.symlink(ROOT / "testdata" / "lerobot", tmp_path / "robot")
    os.symlink(photos / "animals" / "chelsea.jpg", tmp_path / "photo.jpg")
    write_table(tmp_path / "table.idv", 100)
    vectors = np.arange(100, dtype=np.float32).reshape(20, 5)
    write_segment(tmp_path / "nodes.tbf", vectors, ring(20), "float32")
    np.arange(100, dtype=np.uint16).tofile(tmp_path / "corpus.bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that has what a checkout has."""
    os.symlink(ROOT / "testdata", tmp_path / "testdata")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Trainers warn of what a page leaves out for brevity.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_code_of_a_document_runs_twice(document, checkout):
    for _ in range(2):
        os.chdir(checkout)
        run_code(document)


def run_code(document):
    names: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for line, words, text in blocks(document):
        if "theirs" in words or any(find_spec(package) is None for package in words):
            continue
        # Blank lines, so that errors have the document's line.
        exec(compile("\n" * line + text, str(document), "exec"), names)
        ran += 1
    assert ran > 0


# Those of turboloader.ray are run where its cluster is.
MODULES = [
    "_files",
    "_idv",
    "_lerobot",
    "_paths",
    "_tbf",
    "_tbf_files",
    "_tokens",
    "compat",
    "compat.pytorch_compat",
    "compat.sequence",
    "compat.tbl",
    "loader",
    "settings",
    "torch",
    "transforms",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name, folder):
    if name == "torch":
        pytest.importorskip("torch")
    run_examples(importlib.import_module(f"turboloader.{name}"))


def test_the_examples_of_the_package_run(folder):
    run_examples(tl)


def test_the_five_lines_are_the_same_everywhere():
    first = [blocks(document)[0][2] for document in DOCUMENTS[:3]]
    assert first[0] == first[1] == first[2]
    assert len([line for line in first[0].splitlines() if line]) == 5


def test_the_notebook_runs(folder):
    notebook = json.loads((ROOT / "docs" / "quickstart.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        text = "".join(cell["source"])
        exec(compile(text, f"cell {number}", "exec"), names)
    assert len(cells) >= 5


def test_links_between_documents_lead_somewhere():
    link = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
    for document in DOCUMENTS:
        for target in link.findall(document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
