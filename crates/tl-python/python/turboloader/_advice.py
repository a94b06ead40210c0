"""The words for common mistakes: names that are nearly right, and names of other libraries."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Arguments of other loaders, and what takes their place.
_ELSEWHERE = {
    "batch_sampler": "batches follow shuffle and seed; turboloader.torch.Dataset takes samplers",
    "augment": "pass the transforms as transform=[...]",
    "bs": "pass batch_size",
    "collate_fn": "a batch has fields by name; fields=('image', 'label') gives pairs",
    "data_path": "pass data",
    "dataset": "pass data, or see turboloader.compat.MapDataLoader for Python objects",
    "generator": "pass seed",
    "in_order": "batches always come in order",
    "multiprocessing_context": "the workers are threads",
    "path": "pass data",
    "persistent_workers": "threads last as long as the loader; leave it out",
    "pin_memory": "batch.to(device) copies by way of pinned memory",
    "pin_memory_device": "batch.to(device) copies by way of pinned memory",
    "root": "pass data",
    "sampler": "shuffle and seed decide the order; turboloader.torch.Dataset takes samplers",
    "size": "pass image_size, or a transform such as Resize",
    "target_transform": "turboloader.torch.Dataset has it; labels of a batch are one tensor",
    "timeout": "pass store=tl.Store(deadline=...) for reads of stores",
    "train": "pass the folder or the file of the part",
    "worker_init_fn": "the workers are threads, and what is random follows from seed",
    "workers": "pass num_workers",
}

# Settings of the first turboloader and of earlier versions, and what takes their place; {} is the
# value that was given.
_GROUPED = {
    "block_bytes": "columns=tl.Columns(block_bytes={})",
    "boxes": "fields={{'boxes': tl.Boxes('json:/annotations/*/bbox')}}",
    "cache_decoded": "cache=tl.Cache('512MiB', decoded=True)",
    "cache_dir": "cache=tl.Cache(disk='10GiB', folder={})",
    "cache_l1_mb": "cache='{}MiB'",
    "cache_l2_gb": "cache=tl.Cache(disk='{}GiB')",
    "connections": "store=tl.Store(connections={})",
    "credentials": "store=tl.Store(credentials={})",
    "deadline": "store=tl.Store(deadline={})",
    "enable_cache": "cache='512MiB'",
    "enable_distributed": "ranks='auto'",
    "features": "columns=tl.Columns(features={})",
    "hedge": "store=tl.Store(hedge={})",
    "label": "columns=tl.Columns(label={})",
    "mask": "fields={{'mask': tl.Mask('png')}}",
    "max_error_rate": "errors=tl.Errors('skip', at_most={})",
    "max_errors": "errors=tl.Errors('skip', at_most={})",
    "memory_budget": "memory={}",
    "neighbor_columns": "columns=tl.Columns(neighbors=tl.Neighbors([5], columns={}))",
    "neighbor_direction": "columns=tl.Columns(neighbors=tl.Neighbors([5], direction={}))",
    "neighbors": "columns=tl.Columns(neighbors={})",
    "on_error": "errors={}",
    "prefetch_batches": "memory=tl.Memory(prefetch={})",
    "prefetch_bytes": "memory=tl.Memory(prefetch_bytes={})",
    "read_ahead": "store=tl.Store(read_ahead={})",
    # The values may be secret.
    "storage_options": "store=tl.Store({{...}})",
    "unpack_to": "store=tl.Store(unpack_to={})",
    "world_rank": "ranks=tl.Ranks({}, world_size)",
    "world_size": "ranks=tl.Ranks(rank, {})",
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
    said = nearest(unknown, listed)
    if unknown in _GROUPED and _takes_group(owner, _GROUPED[unknown], listed):
        said = f": pass {_GROUPED[unknown].format(repr(given[unknown]))}"
    elif owner == "DataLoader" and unknown in _ELSEWHERE:
        said = f": {_ELSEWHERE[unknown]}"
    raise TypeError(f"{owner} got an unexpected keyword argument {unknown!r}{said}")


def _takes_group(owner: str, form: str, known: Iterable[str]) -> bool:
    """Return whether an argument such as ``store=tl.Store(...)`` is one of the owner's."""
    name = form.partition("=")[0]
    return owner == "DataLoader" or (name in ("errors", "store") and name in known)


def advised(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse arguments that do not exist in a function as `refuse_unknown` does."""
    known = list(inspect.signature(function).parameters)
    owner = function.__qualname__.removesuffix(".__init__").removesuffix(".__new__")

    @functools.wraps(function)
    def checked(*arguments: _P.args, **named: _P.kwargs) -> _R:
        refuse_unknown(owner, named, known)
        return function(*arguments, **named)

    return checked
