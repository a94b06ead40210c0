"""The words for common mistakes: names that are nearly right, and names of other libraries."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

# Arguments of other loaders, and what takes their place.
_ELSEWHERE = {
    "batch_sampler": "batches follow shuffle and seed; turboloader.torch.Dataset takes samplers",
    "augment": "pass the transforms as transform=[...]",
    "bs": "pass batch_size",
    "collate_fn": "a batch has fields by name; fields=('image', 'label') gives pairs",
    "data": "pass data_path",
    "dataset": "pass data_path, or see turboloader.compat.MapDataLoader for Python objects",
    "generator": "pass seed",
    "in_order": "batches always come in order",
    "multiprocessing_context": "the workers are threads",
    "path": "pass data_path",
    "persistent_workers": "threads last as long as the loader; leave it out",
    "pin_memory": "batch.to(device) copies by way of pinned memory",
    "pin_memory_device": "batch.to(device) copies by way of pinned memory",
    "root": "pass data_path",
    "sampler": "shuffle and seed decide the order; turboloader.torch.Dataset takes samplers",
    "size": "pass image_size, or a transform such as Resize",
    "target_transform": "turboloader.torch.Dataset has it; labels of a batch are one tensor",
    "timeout": "reads of stores have deadline",
    "train": "pass the folder or the file of the part",
    "worker_init_fn": "the workers are threads, and what is random follows from seed",
    "workers": "pass num_workers",
}


def nearest(name: str, known: Iterable[str]) -> str:
    """Return advice about an unknown name: the known one that is nearly the same, if there is."""
    listed = list(known)
    # Names that only lack an underscore, then those that differ in few letters.
    plain = {other.replace("_", ""): other for other in listed}
    close = difflib.get_close_matches(name.lower(), listed, 1, 0.7)
    longer = [other for other in listed if other.startswith(name.lower())]
    found = plain.get(name.lower().replace("_", "")) or next(iter([*longer, *close]), None)
    return "" if found is None else f": did you mean {found}?"


def refuse_unknown(owner: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse arguments that do not exist, with what takes their place.

    Raises
    ------
    TypeError
        As Python raises for such arguments.
    """
    listed = list(known)
    unknown = next((name for name in given if name not in listed), None)
    if unknown is None:
        return
    advice = _ELSEWHERE.get(unknown) if owner == "DataLoader" else None
    said = nearest(unknown, listed) if advice is None else f": {advice}"
    raise TypeError(f"{owner} got an unexpected keyword argument {unknown!r}{said}")
