"""Transforms."""

from typing import Any

import numpy as np
import numpy.typing as npt
import turboloader as tl
from turboloader import transforms as T  # noqa: N812
from typing_extensions import assert_type


def brighter(image: npt.NDArray[np.uint8], seed: int) -> npt.NDArray[np.uint8]:
    """Do what no transform does."""
    return image + np.uint8(seed % 2)


def main() -> None:
    size = T.Resize(224).size
    print(size, T.Resize((224, 300), "bicubic", antialias=False).interpolation)
    train = (
        T.RandomResizedCrop(224, scale=(0.2, 1.0), interpolation="lanczos")
        | T.RandomHorizontalFlip(p=0.5)
        | brighter
        | T.ToTensor()
        | T.Normalize()
        | T.RandomErasing(value="random")
    )
    assert_type(train, T.Compose)
    image = np.zeros((300, 400, 3), np.uint8)
    assert_type(train(image, seed=1), npt.NDArray[Any])
    steps: list[T.Transform] = train.transforms
    print(steps[0].parameters, T.RandomApply([T.ColorJitter(0.4)], p=0.8).p)
    policies = [T.AutoAugment("cifar10"), T.RandAugment(2, 9), T.TrivialAugmentWide(), T.AugMix()]
    views = T.Views(2, [T.RandomChoice(policies), T.ToTensor()])
    pad = T.Pad((1, 2), fill=(1, 2, 3), padding_mode="reflect")
    mixing = [T.MixUp(num_classes=10), T.CutMix(alpha=0.5, num_classes=10)]
    print(
        pad,
        T.Pad(2, fill=None),
        T.Lambda(brighter),
        T.ToDtype("float32", scale=True),
        T.GaussianBlur(3, (0.1, 2)),
    )
    tl.DataLoader("a.tar", 8, views, batch_transform=mixing, dtype=np.float16, parity="tensor")
    tl.DataLoader("a.tar", 8, [T.Resize(256), T.CenterCrop(224), brighter])
    tl.DataLoader("a.tar", 8, {"weak": T.Resize((8, 8)), "strong": [T.RandomCrop(8)]})
    recipe = T.recipe(train, dtype="bfloat16", channels_last=True)
    assert_type(recipe, tl.Recipe)
    assert_type(recipe.output_size, tuple[int, int] | None)
    T.manual_seed(3)
