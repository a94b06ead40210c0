"""Processes without a usable device: what they open, and that everything else works.

The driver is found by the system's loader, as the real one is: each test has a process of its own.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
from test_device import driver

SCRIPT = """
import json
import sys
import warnings

import numpy as np
import turboloader as tl
from turboloader import transforms as T

NAMES = ("libcuda", "libcudart", "libnvidia", "libnvjpeg")


def opened():
    return [line for line in open("/proc/self/maps") if any(name in line for name in NAMES)]


train = [T.RandomResizedCrop(24), T.RandomHorizontalFlip()]
settings = {"batch_size": 5, "shuffle": True, "num_workers": 2, "transform": train}
assert opened() == []
host = [batch["image"].numpy().copy() for batch in tl.DataLoader(sys.argv[1], **settings)]
assert opened() == []
said = []
for setting in ({"device": "cuda"}, {"pin_memory": True}):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader = tl.DataLoader(sys.argv[1], **setting, **settings)
    batches = list(loader)
    assert all(np.array_equal(batch["image"].numpy(), one) for batch, one in zip(batches, host))
    assert len(batches) == len(host)
    said += [str(one.message) for one in caught]
    try:
        required = tl.Device("cuda", required=True)
        tl.DataLoader(sys.argv[1], **{name: required for name in setting}, **settings)
    except tl.LoaderError as error:
        said.append(str(error))
print(json.dumps({"said": said, "opened": len(opened())}))
"""


def said(folder: pathlib.Path, photos: pathlib.Path, **variables: str) -> dict:
    """Run the script with the driver in a folder."""
    unset = ("CUDA_VISIBLE_DEVICES", "LOCAL_RANK")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    variables = {"LD_LIBRARY_PATH": os.fspath(folder), "PYTHONPATH": path, **variables}
    command = [sys.executable, "-c", SCRIPT, os.fspath(photos)]
    run = subprocess.run(
        command, check=False, env=kept | variables, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def check(found: dict, reason: str) -> None:
    """Check the warning and the error of both settings."""
    starts = ("batches on a device: on the host instead; ", "device: ")
    starts += ("pinned memory: ordinary memory instead, which is copied more slowly; ", "device: ")
    assert len(found["said"]) == len(starts)
    for text, start in zip(found["said"], starts, strict=True):
        assert text.startswith(start + reason), text


@pytest.mark.skipif(sys.platform != "linux", reason="the driver of Linux")
@pytest.mark.parametrize(
    ("macro", "visible", "reason"),
    [
        ("VERSION=10020", None, "the NVIDIA driver supports CUDA 10.2, and 11.0 is the oldest"),
        ("HIDES=1", "", "no CUDA device 0: this process sees 0 "),
        ("DEVICES=0", None, "no CUDA device 0: this process sees 0 "),
    ],
)
def test_an_unusable_driver_is_a_reason(photos, tmp_path, macro, visible, reason):
    driver(tmp_path, macro).rename(tmp_path / "libcuda.so.1")
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    found = said(tmp_path, photos, **variables)
    check(found, reason)
    # The library was opened when a device was asked for, and not before.
    assert found["opened"] > 0


@pytest.mark.skipif(sys.platform != "linux", reason="the driver of Linux")
def test_no_driver_is_a_reason(photos, tmp_path):
    # A file that is not a library hides the one that the machine may have.
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    found = said(tmp_path, photos)
    check(found, "no NVIDIA driver: ")
    assert found["opened"] == 0
