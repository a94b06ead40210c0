"""Data sets from lists, pairs and memory."""

import numpy as np
import turboloader as tl


class Items:
    """Samples by number, without being a `Sequence`."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> tuple[bytes, str]:
        return b"...", "cat"


def main() -> None:
    listed = tl.manifest("train.csv", image="path", label="class", files=["mask"])
    paired = tl.pairs("images/*.jpg", mask="masks/*.png")
    arrays = tl.from_arrays(np.zeros((4, 8, 8, 3), np.uint8), label=[0, 1, 0, 1])
    annotated = tl.coco("images", "instances.json")
    items = tl.from_items(Items())
    for dataset in (listed, paired, arrays, annotated, items):
        loader = tl.DataLoader(dataset, batch_size=4, image_size=64)
        print(len(loader), dataset.box_classes)
