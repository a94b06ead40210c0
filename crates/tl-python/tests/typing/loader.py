"""A training loop over batches."""

from typing import Any

import numpy as np
import numpy.typing as npt
import turboloader as tl
from turboloader import transforms as T  # noqa: N812
from typing_extensions import assert_type


def train(loader: tl.DataLoader) -> float:
    """Use a loader of any format."""
    total = 0.0
    for batch in loader:
        total += float(batch["label"].sum())
    return total


def main() -> None:
    recipe = T.Compose([T.RandomResizedCrop(224), T.ToTensor(), T.Normalize()])
    with tl.DataLoader("train.tar", 64, recipe, shuffle=True, errors="skip") as loader:
        print(len(loader), loader.class_names, loader.explain())
        assert_type(loader.peek(), tl.Batch[tl.Tensor])
        for epoch in range(3):
            loader.set_epoch(epoch)
            for batch in loader:
                assert_type(batch, tl.Batch[tl.Tensor])
                assert_type(batch["image"], tl.Tensor)
                assert_type(batch.label, tl.Tensor)
                assert_type(batch["image"].numpy(), npt.NDArray[Any])
                assert_type(batch[0], dict[str, Any])
                assert_type(batch[2:4]["label"], tl.Tensor)
                shape: tuple[int, ...] = batch["image"].shape
                print(shape, [sample["label"] for sample in batch], batch["key"])
        for image in loader.peek()["image"]:
            assert_type(image, tl.Tensor)
        state: dict[str, Any] = loader.state_dict()
        loader.load_state_dict(state)
        report = loader.report()
        print(report.verdict, report.rate, f"{loader.audit}")
    print(train(loader), train(tl.DataLoader("train.tar", output_format="numpy")))
    print(np.asarray(loader.peek()["image"]).mean())
