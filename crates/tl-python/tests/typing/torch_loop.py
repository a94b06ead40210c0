"""A training loop of torch."""

import torch
import turboloader as tl
import turboloader.torch
from turboloader import transforms as T  # noqa: N812
from typing_extensions import assert_type


def step(model: torch.nn.Module, batch: tl.Batch[torch.Tensor]) -> torch.Tensor:
    """Return the loss of a batch."""
    logits: torch.Tensor = model(batch["image"])
    return torch.nn.functional.cross_entropy(logits, batch["label"])


def main(model: torch.nn.Module) -> None:
    loader = tl.DataLoader("train.tar", 64, image_size=224, dtype="float32", output_format="torch")
    for batch in loader:
        assert_type(batch["image"], torch.Tensor)
        step(model, batch).backward()  # type: ignore[no-untyped-call]
        moved = batch.to("cuda")
        print(moved["image"])
    names = ("image", "label")
    for images, labels in tl.DataLoader("a.tar", 64, fields=names, output_format="torch"):
        images.requires_grad_()
        print(labels.to("cpu"))
    for images, labels in tl.DataLoader("a.tar", fields=("image", "label"), output_format="torch"):
        assert_type(images, torch.Tensor)
        assert_type(labels.to("cpu"), torch.Tensor)
    tensor = tl.DataLoader("train.tar").peek()["image"]
    assert_type(tensor.torch(), torch.Tensor)
    flipped = T.RandomHorizontalFlip()(torch.zeros(3, 8, 8, dtype=torch.uint8))
    assert_type(flipped, torch.Tensor)
    samples = turboloader.torch.Dataset("photos", T.Compose([T.Resize(224), T.ToTensor()]))
    batches = turboloader.torch.IterableDataset("train.tar", 64, image_size=224)
    print(len(samples), samples.classes, len(batches))
