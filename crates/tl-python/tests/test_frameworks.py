"""JAX and TensorFlow, where they are, in processes of their own: a bad buffer ends TensorFlow."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = """
import sys
import numpy as np
import turboloader as tl
from conftest import HEIGHT, WIDTH, image, write
from stored import ring, write_segment
import pathlib

form, folder = sys.argv[1], pathlib.Path(sys.argv[2])


def address(array):
    if form == "jax":
        return array.unsafe_buffer_pointer()
    return np.from_dlpack(array).__array_interface__["data"][0]


count = 1000
path = write(folder / "many.tbl", count)
loader = tl.DataLoader(path, batch_size=1, image_size=(HEIGHT, WIDTH), num_workers=2)
kept = []
for batch in loader:
    tensor = batch["image"]
    array = getattr(tensor, form)()
    assert address(array) == tensor.data_ptr()
    kept.append(array)
assert len(kept) == count
for index, array in enumerate(kept):
    np.testing.assert_array_equal(np.asarray(array)[0], image(index))
fields = getattr(batch, form)()
assert list(fields) == batch.keys()
assert np.asarray(fields["label"]).tolist() == [999 % 7]
# Rows do not start at a cache line, and a mapped file cannot be written.
batch = next(iter(tl.DataLoader(path, batch_size=8, image_size=(HEIGHT, WIDTH))))
np.testing.assert_array_equal(np.asarray(getattr(batch["image"][3], form)()), image(3))
# Images in their own sizes are a list of such.
fields = getattr(next(iter(tl.DataLoader(path, batch_size=3))), form)()
assert type(fields["image"][2]) is type(fields["label"])
np.testing.assert_array_equal(np.asarray(fields["image"][2]), image(2))
vectors = np.arange(100, dtype=np.float32).reshape(20, 5)
segment = tl.TbfSegment(write_segment(folder / "a.tbf", vectors, ring(20), "bfloat16"))
stored = getattr(segment.embeddings, form)()
np.testing.assert_array_equal(np.asarray(stored).astype(np.float32), vectors)
print("done")
"""


@pytest.mark.parametrize(("module", "form"), [("jax", "jax"), ("tensorflow", "tf")])
def test_batches_are_shared_and_stay(module, form, tmp_path):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not there")
    here = pathlib.Path(__file__).parent
    paths = os.pathsep.join([str(here), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", SCRIPT, form, str(tmp_path)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.stdout.split() == ["done"], ran.stderr[-2000:]
