"""Writes the numbers of torchvision's automatic augmentation, for the tests of tl-transform.

`policies.json` has the sub-policies of AutoAugment as they are, the names that each policy chooses from
in their order, and the magnitudes of every name at a few numbers of bins and sizes of images. What has
no magnitude has null. `generate.py` runs this too.
"""

import json
import pathlib

from torchvision.transforms import v2
from torchvision.transforms.v2 import AutoAugmentPolicy

SIZES = [(375, 500), (1, 3)]


def magnitudes(space, bins, size):
    values = {}
    for name, (function, _) in space.items():
        found = function(bins, *size)
        values[name] = None if found is None else [float(value) for value in found]
    return values


def space(space, bins):
    return {
        "names": list(space),
        "signed": [name for name, (_, signed) in space.items() if signed],
        "magnitudes": [
            {
                "bins": count,
                "size": size[::-1],
                "values": magnitudes(space, count, size),
            }
            for count in bins
            for size in (SIZES if count == bins[0] else SIZES[:1])
        ],
    }


def policies():
    tables = {
        policy.value: v2.AutoAugment(policy)._policies
        for policy in (AutoAugmentPolicy.IMAGENET, AutoAugmentPolicy.CIFAR10, AutoAugmentPolicy.SVHN)
    }
    return {
        "tables": tables,
        "spaces": {
            "auto_augment": space(v2.AutoAugment._AUGMENTATION_SPACE, [10]),
            "rand_augment": space(v2.RandAugment._AUGMENTATION_SPACE, [31, 2, 7]),
            "trivial_augment_wide": space(v2.TrivialAugmentWide._AUGMENTATION_SPACE, [31, 2, 10]),
            "aug_mix": space(v2.AugMix._AUGMENTATION_SPACE, [10]),
            "aug_mix_partial": space(v2.AugMix._PARTIAL_AUGMENTATION_SPACE, [10]),
        },
    }


def write(folder):
    text = json.dumps(policies(), separators=(",", ":"))
    # A line for each list of magnitudes.
    text = text.replace('{"bins"', '\n{"bins"').replace('"spaces"', '\n"spaces"')
    (folder / "policies.json").write_text(text + "\n")


if __name__ == "__main__":
    write(pathlib.Path(__file__).resolve().parent)
