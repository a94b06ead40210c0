"""Writes the arrays that tests of `.npy` and `.npz` files read."""

import sys
from pathlib import Path

import numpy as np

folder = Path(sys.argv[1])
array = np.arange(6, dtype="<f4").reshape(2, 3) / 4
np.save(folder / "f4_fortran.npy", np.asfortranarray(array))
np.save(folder / "i2_big_endian.npy", np.array([1, -2, 300], dtype=">i2"))
np.savez(
    folder / "stored.npz",
    latent=array.astype("f2"),
    mask=np.array([True, False]),
    **{"dir/x": np.int64(-5)},
)
np.savez_compressed(
    folder / "deflated.npz", latent=np.zeros((40, 5), "u1"), label=np.array(7)
)
