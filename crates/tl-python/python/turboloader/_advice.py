"""The words for common mistakes: names that are nearly right, and names of other libraries."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Attributes of a data set of Hugging Face's datasets, and what takes their place.
OF_DATASETS = {
    "column_names": "schema has the fields",
    "features": "classes has the names of classes, and schema the fields",
    "map": "a DataLoader takes functions of an image in transform",
    "num_rows": "len(dataset) is the number of samples",
    "set_format": "a DataLoader takes output_format",
    "set_transform": "a DataLoader takes transform",
    "shuffle": "a DataLoader takes shuffle=True and seed",
    "sort": "dataset[numpy.argsort(values)] is the order of some values",
    "train_test_split": "split(0.9, 0.1, seed=0) returns the parts",
    "with_format": "a DataLoader takes output_format",
    "with_transform": "a DataLoader takes transform",
}

# Arguments of datasets.load_dataset.
_OF_LOADING = {
    "data_dir": "pass the folder as path",
    "data_files": "pass the files as path",
    "split": "pass the files of the split, such as 'train-*.parquet'",
    "streaming": "leave it out: samples are read when they are needed",
}

# The places of Ray's tasks, and of their secrets.
_OF_TASKS = "pass ray_remote_args, such as {'num_cpus': 2}"
_OF_STORES = "set environment variables, such as by ray.init(runtime_env={'env_vars': ...})"

# Arguments of other libraries and of other functions, and what takes their place, by owner.
_ELSEWHERE: dict[str, dict[str, str]] = {
    "DataLoader": {
        "batch_sampler": (
            "batches follow shuffle and seed; turboloader.torch.Dataset takes samplers"
        ),
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
        "pin_memory_device": "pass pin_memory='cuda:N', or device='cuda:N' for batches there",
        "root": "pass data",
        "sampler": "shuffle and seed decide the order; turboloader.torch.Dataset takes samplers",
        "size": "pass image_size, or a transform such as Resize",
        **_OF_LOADING,
        "target_transform": "turboloader.torch.Dataset has it; labels of a batch are one tensor",
        "timeout": "pass store=tl.Store(deadline=...) for reads of stores",
        "train": "pass the folder or the file of the part",
        "worker_init_fn": "the workers are threads, and what is random follows from seed",
        "workers": "pass num_workers",
    },
    # The data set of torch.
    "Dataset": {
        "batch_size": "samples are single; torch's DataLoader takes batch_size",
        "columns": "files next to images are fields: pass fields={'json': tl.Bytes()}",
        "loader": "formats are found by their content; leave it out",
        "num_workers": "pass threads, or num_workers to torch's DataLoader",
        "root": "pass data",
        "shuffle": "torch's DataLoader takes shuffle",
    },
    "tokens": {
        "batch_size": "DataLoader takes batch_size",
        "block_size": "pass length",
        "context_length": "pass length",
        "eod": "pass end_token",
        "max_length": "pass length",
        "rank": "DataLoader takes ranks",
        "seed": "DataLoader takes seed",
        "seq_len": "pass length",
        "seq_length": "pass length",
        "sequence_length": "pass length",
        "shuffle": "DataLoader takes shuffle",
        "split": "the data set has a method split",
    },
    "pairs": {
        "fields": "name the patterns, such as mask='masks/*.png', and call with_fields",
        "images": "pass image",
        "labels": "call with_labels of the data set",
        "root": "patterns have the folder: 'root/images/*.jpg'",
    },
    "open": _OF_LOADING,
    "read_tbl": {
        "batch_size": "iter_batches of the data set takes batch_size",
        "columns": "call select_columns of the data set",
        "num_cpus": _OF_TASKS,
        "num_gpus": _OF_TASKS,
        "parallelism": "pass override_num_blocks",
        "shuffle": "call random_shuffle of the data set",
        "storage_options": _OF_STORES,
    },
    "write_tbl": {
        "classes": "pass class_names",
        "mode": "pass overwrite=True",
        "num_cpus": _OF_TASKS,
        "path": "pass folder",
    },
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


# The arguments of functions that are called with too many in order.
_IN_ORDER = {
    "mix": "pass a weight for each data set, mix({a: 3, b: 1})",
    "pairs": "pass the pattern of each field by name",
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
    said = advice(owner, unknown, given[unknown], listed)
    raise TypeError(f"{owner} got an unexpected keyword argument {unknown!r}{said}")


def refuse_if_advised(owner: str, name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse an argument that has another name, of a function that takes any name."""
    if said := advice(owner, name, value, known):
        raise TypeError(f"{owner} got an unexpected keyword argument {name!r}{said}")


def advice(owner: str, name: str, value: Any, known: Iterable[str]) -> str:
    """Return what takes the place of an unknown argument, or nothing."""
    listed = list(known)
    if said := _ELSEWHERE.get(owner, {}).get(name):
        return f": {said}"
    if name in _GROUPED and _takes_group(owner, _GROUPED[name], listed):
        return f": pass {_GROUPED[name].format(repr(value))}"
    return nearest(name, listed)


def _takes_group(owner: str, form: str, known: Iterable[str]) -> bool:
    """Return whether an argument such as ``store=tl.Store(...)`` is one of the owner's."""
    name = form.partition("=")[0]
    return owner == "DataLoader" or (name in ("errors", "store") and name in known)


def advised(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse arguments that do not exist in a function as `refuse_unknown` does.

    A function that takes others by any name decides on them itself, unless it lacks one of its own.
    """
    owner = function.__qualname__.removesuffix(".__init__").removesuffix(".__new__")
    parameters = [*inspect.signature(function).parameters.values()]
    # The object that is made comes first.
    own = int(owner != function.__qualname__)
    parameters = parameters[own:]
    known = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
    takes_others = len(known) < len(parameters)
    in_order = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    required = {one.name: place for place, one in enumerate(in_order) if one.default is one.empty}
    by_name = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    takes_more = any(one.kind is one.VAR_POSITIONAL for one in parameters)

    @functools.wraps(function)
    def checked(*arguments: _P.args, **named: _P.kwargs) -> _R:
        count = len(arguments) - own
        lacks = any(name not in named and count <= place for name, place in required.items())
        if lacks or not takes_others:
            refuse_unknown(owner, named, known)
        if by_name and count > len(in_order) and not takes_more:
            said = _IN_ORDER.get(owner, f"pass {', '.join(by_name)} by name")
            positional = f"{len(in_order)} positional argument{'s' * (len(in_order) != 1)}"
            raise TypeError(f"{owner} takes {positional}, not {count}: {said}")
        return function(*arguments, **named)

    return checked
