"""Stored data sets: reading, writing and checking them."""

from typing import Any

import numpy as np
import turboloader as tl
from typing_extensions import assert_type


def main() -> None:
    with tl.TblWriter("new.tbl", compression="zstd:3", class_names=["cat"]) as writer:
        writer.add_sample(b"...", key="a.jpg", label=0, fields={"txt": "a cat"})
        writer.add_pixels(np.zeros((4, 4, 3), np.uint8), label=0)
        print(writer.num_samples)
    reader = tl.TblReader("new.tbl")
    for number, data in enumerate(reader):
        assert_type(data, bytes)
        print(number, reader.entry(number)["key"], reader.fields(number))
    assert_type(reader[0], bytes)
    found: dict[str, Any] = tl.verify("new.tbl", decode=True)
    print(found["is_good"], len(reader), reader.class_names)
    written: int = tl.convert("photos", "copy.tar", overwrite=True)
    image = tl.decode(reader[0])
    assert_type(image, tl.Tensor)
    info = tl.probe(reader[0])
    assert_type(info.width, int)
    print(written, image.numpy().mean(), int(image[0][0][0]), f"{image.item(0, 0, 0):d}")
    print(tl.decode_jpeg(reader[0], region=(0, 0, 8, 8)).shape)
