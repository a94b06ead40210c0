"""The type of fields by the format, and tuples of fields."""

from typing import Any

import numpy.typing as npt
import turboloader as tl
from turboloader._parts import Batches
from typing_extensions import assert_type


def of_numpy() -> None:
    for batch in tl.DataLoader("a.tar", image_size=224, output_format="numpy"):
        assert_type(batch["image"], npt.NDArray[Any])
        print(batch.image.mean())
    for batch in tl.DataLoader("a.tar", image_size=224, output_format="numpy", channels_last=False):
        assert_type(batch["valid"], npt.NDArray[Any])
    for images, rows in tl.DataLoader("a.tar", fields=("image", "index"), output_format="numpy"):
        assert_type(images, npt.NDArray[Any])
        assert_type(rows, npt.NDArray[Any])
    pairs = tl.DataLoader("a.tar", fields=("image", "label"), output_format="numpy")
    for images, labels in pairs:
        print(images.mean(), labels.tolist())


def of_tuples() -> None:
    for images, labels in tl.DataLoader("a.tar", image_size=224, fields=("image", "label")):
        assert_type(images, tl.Tensor)
        assert_type(labels, tl.Tensor)
    for image, label, key in tl.DataLoader("a.tar", 4, fields=("image", "label", "key")):
        print(image, label, key)
    for image, captions in tl.DataLoader("a.tar", fields=("image", "caption")):
        print(image.numpy(), captions[0].upper())


def of_dicts() -> None:
    named = tl.DataLoader("a.tar", fields={"pixel_values": "image", "labels": "label"})
    assert_type(iter(named), Batches[dict[str, Any]])
    assert_type(iter(named).next(timeout=0.5), dict[str, Any])
    for one in named:
        print(one["pixel_values"], one)
    kinds = tl.DataLoader("a.tar", 8, image_size=64, fields={"caption": tl.Text("txt")})
    for part in kinds:
        assert_type(part["image"], tl.Tensor)
        captions: list[str | None] = part["caption"]
        print(captions)
    stored = next(iter(tl.DataLoader("a.tar", decode=False)))
    data: list[bytes] = stored["bytes"]
    print(data)
