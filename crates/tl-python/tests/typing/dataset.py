"""Data sets and their views."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import turboloader as tl
from typing_extensions import assert_type


def main() -> None:
    dataset = tl.open("photos", format="folder")
    assert_type(dataset[0], tl.Sample)
    assert_type(dataset[1:5], tl.Dataset)
    assert_type(dataset[[0, 3]], tl.Dataset)
    assert_type(dataset[np.array([True, False])], tl.Dataset)
    labels: npt.NDArray[Any] = dataset.labels
    print(labels.max())
    assert_type(dataset.classes, list[str])
    train, validation = dataset.split(0.9, 0.1, seed=1, stratify="label")
    for fold in range(5):
        one, other = dataset.fold(fold, of=5)
        print(len(one), len(other))
    large = dataset.filter("width >= 224").filter(lambda sample: sample.height >= 224)
    mixed = tl.mix({train: 3, large: 1}, length="first-used-up")
    both = tl.concat(train, validation) + large
    view = dataset.select(label=["cat", "dog"]).take(10).skip(2).shard(0, 2).repeat(3)
    weighted = dataset.weights([1.0] * len(dataset), replacement=False).balance()
    histogram: dict[str | int, int] = dataset.histogram()
    schema: dict[str, str] = dataset.schema
    for sample in dataset:
        fields: Mapping[str, Any] = sample
        print(sample.image.shape, sample["label"], sample.key, fields)
    for loaded in (mixed, both, view, weighted):
        print(tl.DataLoader(loaded, 32, image_size=64))
    print(histogram, schema, dataset.class_to_idx["cat"], dataset.explain(), dataset.notes)
    dataset.convert("copy.tbl", overwrite=True)
