from __future__ import annotations

import doctest
import json
import pathlib
import re
import struct
import subprocess
import types
from importlib.util import find_spec

import numpy as np
import pytest
import turboloader as tl

HEIGHT, WIDTH = 6, 10


def bmp(pixels: np.ndarray) -> bytes:
    """A bitmap of these pixels: rows from the bottom up, blue first, rows of whole words."""
    height, width, _ = pixels.shape
    stride = (3 * width + 3) // 4 * 4
    rows = np.zeros((height, stride), np.uint8)
    rows[:, : 3 * width] = pixels[::-1, :, ::-1].reshape(height, -1)
    data = rows.tobytes()
    head = struct.pack("<2sIHHI", b"BM", 54 + len(data), 0, 0, 54)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(data), 0, 0, 0, 0)
    return head + info + data


def image(index: int, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """The pixels of sample `index`."""
    rng = np.random.default_rng(index)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def write(path: pathlib.Path, count: int, **sizes: int) -> pathlib.Path:
    """A TBL file of so many images; sample i is labelled i % 7."""
    with tl.TblWriter(path, sync=False) as writer:
        for index in range(count):
            key = f"{index:05d}.bmp"
            writer.add_sample(bmp(image(index, **sizes)), key=key, label=index % 7)
    return path


IMPORTED = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


def run_examples(module: types.ModuleType) -> None:
    """Run the examples in the docstrings of a module, but for those that need what is not there."""
    names = {"T": tl.transforms, "np": np, "pathlib": pathlib}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder().find(module, extraglobs=names):
        needed = IMPORTED.findall("".join(example.source for example in test.examples))
        if all(find_spec(package) for package in needed):
            runner.run(test)
    assert (runner.failures, runner.tries > 0) == (0, True)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """100 images of 6x10 pixels."""
    return write(tmp_path_factory.mktemp("data") / "train.tbl", 100)


@pytest.fixture(scope="session")
def photos() -> pathlib.Path:
    """The photographs of the repository: a folder of classes."""
    return pathlib.Path(__file__).parents[3] / "testdata" / "photos"


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks of tiers, and those of plugins that need not be there."""
    config.addinivalue_line("markers", "torch: needs torch")
    config.addinivalue_line("markers", "ray: needs ray, and starts processes of it")
    config.addinivalue_line("markers", "force_parallel_threads(n): of pytest-run-parallel")


@pytest.fixture
def run():
    """Run commands at the same time, and return what each prints in JSON."""

    def run(commands: list[list[str]]) -> list:
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE) for command in commands]
        printed = [process.communicate()[0] for process in processes]
        assert [process.returncode for process in processes] == [0] * len(commands)
        return [json.loads(text) for text in printed]

    return run
