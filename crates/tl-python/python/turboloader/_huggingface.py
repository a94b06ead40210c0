"""Data sets of Hugging Face's ``datasets``, read where their rows are.

>>> import turboloader as tl
>>> from datasets import load_dataset
>>> loader = tl.DataLoader(tl.from_hf(load_dataset("beans", split="train")), image_size=224)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from . import _native
from ._advice import advised
from ._checks import check_flags
from ._warnings import warn, warn_of_notes
from .dataset import Dataset
from .exceptions import PathNotFoundError, SettingError
from .fields import Field

if TYPE_CHECKING:
    from ._native import Dataset as Native

__all__ = ["from_hf"]

# The most bytes of a table on disk that are copied because its columns changed their types.
_MOST_COPIED: Final = 1 << 30

# Rows of a record batch in memory.
_BATCH_ROWS: Final = 1000

# What tables do to all columns alike.
_SAME: Final = {"cast", "combine_chunks", "replace_schema_metadata", "slice"}


@dataclass(frozen=True)
class _Table:
    """Rows of an Arrow file, or of a stream in memory."""

    path: str | None
    data: bytes | None
    # The columns by their names in the file, with their names in the data set.
    columns: tuple[tuple[str, str], ...]
    # The rows that the data set has: the first one, and how many.
    start: int
    rows: int


@advised
def from_hf(
    dataset: Any,
    *,
    image: str | None = None,
    label: str | None = None,
    fields: Mapping[str, Field] | None = None,
    exif: bool = True,
) -> Dataset:
    """Open a ``datasets.Dataset``: the rows that it has, in its order, where they are.

    Rows of Arrow files, which are the cache of ``datasets`` and what ``save_to_disk`` writes, are
    read in these files. Tables in memory are copied once. ``select``, ``shuffle``, ``filter``,
    ``sort`` and ``train_test_split`` of ``datasets`` are kept as an order of the rows, and renamed
    and removed columns as they are. No sample passes through Python.

    Images are turned upright by their EXIF orientation, as ``datasets`` does; data sets that `open`
    opens are not. A copy that ``convert`` writes is opened without it.

    Batches of a data set without images have its columns, as those of `open` have of a table.

    ``batch["index"]`` is the number of the row in the stored tables, as for every view.

    Parameters
    ----------
    dataset
        The ``Dataset``; of a ``DatasetDict`` one split.
    image
        The column of the images; by default the only one of type ``Image``.
    label
        The column of the labels; by default the only ``ClassLabel``, or ``label``.
    fields
        What batches have from other columns, as `Dataset.with_fields`.
    exif
        Whether loaders turn images by their EXIF orientation, unless their own ``exif`` says
        otherwise.

    Raises
    ------
    SettingError
        If the rows cannot be read in any order, as those of an ``IterableDataset``, or a function
        makes them, as ``set_transform`` does. The message says what to write.
    """
    check_flags(exif=exif)
    _check(dataset)
    made = _opened(dataset, image, label)
    _warn_of_mode(dataset.features, image)
    warn_of_notes(made.notes(usual=False, knows_images=True))
    opened = _named(made, (dataset, image, label, exif))
    return opened.with_fields(fields) if fields else opened


def _named(made: Native, arguments: tuple[Any, ...]) -> Dataset:
    opened = Dataset(made, _reopened, arguments, name="from_hf")
    # Rows without images are those of a table.
    opened.exif = arguments[-1] and "rows" not in made.kinds
    return opened


def _reopened(dataset: Any, image: str | None, label: str | None, exif: bool) -> Dataset:
    """Open a data set again, whose notes were warnings before."""
    return _named(_opened(dataset, image, label), (dataset, image, label, exif))


def _warn_of_mode(features: Mapping[str, Any], image: str | None) -> None:
    """Warn of images that ``datasets`` converts, as a feature ``Image(mode="L")`` says."""
    for name, feature in features.items():
        mode = getattr(feature, "mode", None)
        if mode in (None, "RGB") or name != (image or name):
            continue
        channels = {"L": "channels=1 of the loader does so", "RGBA": "channels=4 keeps the alpha"}
        warn(
            f"column {name}: datasets converts these images to {mode}, and here they are RGB"
            + (f"; {channels[mode]}" if mode in channels else "")
        )


def _check(dataset: Any, function: str = "from_hf") -> None:
    kind = type(dataset).__name__
    is_images = function == "from_hf"
    if kind.endswith("DatasetDict") and isinstance(dataset, Mapping):
        splits = ", ".join(map(str, dataset))
        raise SettingError(
            f"{function} takes one split of a {kind}, such as "
            f"dataset[{next(iter(dataset), 'train')!r}]; it has {splits}"
        )
    if kind == "IterableDataset":
        raise SettingError(
            f"{function} takes a Dataset, whose rows can be read in any order, and not an "
            "IterableDataset: load it without streaming=True, or open its Parquet files by "
            "turboloader.open"
        )
    if not all(hasattr(dataset, name) for name in ("data", "features", "_indices")):
        paths = ": turboloader.open takes paths" if isinstance(dataset, (str, os.PathLike)) else ""
        raise SettingError(f"{function} takes a datasets.Dataset, not {kind}{paths}")
    if getattr(dataset, "_format_type", None) == "custom":
        transform = "pass to DataLoader as transform what the function does to an image"
        advice = f", and {transform}" if is_images else ""
        raise SettingError(
            f"{function} reads stored rows, and set_transform makes others: call reset_format()"
            + advice
        )
    if not _native.HAS_ARROW:
        raise SettingError(f"{function} needs the feature `arrow`, which this build lacks")


def _opened(dataset: Any, image: str | None, label: str | None) -> Native:
    import numpy as np

    wanted = dataset._format_columns
    names = [name for name in dataset.column_names if wanted is None or name in wanted]
    tables = [table for table in _tables(dataset.data, names) if table.rows > 0]
    if not tables:
        raise SettingError("from_hf: the data set has no rows")
    # A file is opened once, whatever the number of its parts.
    sources: dict[tuple[Any, ...], int] = {}
    opened: list[dict[str, Any]] = []
    listed: list[int] = []
    for table in tables:
        path = f"memory-{len(opened)}.arrow" if table.path is None else table.path
        source = sources.setdefault((path, table.columns), len(opened))
        if source == len(opened):
            opened.append({"path": path, "data": table.data, "columns": list(table.columns)})
        listed.append(source)
    described = {name: kind for name, kind in dataset.features.to_dict().items() if name in names}
    features = json.dumps({"info": {"features": described}})
    settings = {"features": features, "image": image, "label": label, "folder": os.getcwd()}
    made, starts = _native.rows(opened, settings)
    numbers = np.concatenate(
        [
            np.arange(starts[source] + table.start, starts[source] + table.start + table.rows)
            for source, table in zip(listed, tables, strict=True)
        ]
    )
    if dataset._indices is not None:
        numbers = numbers[dataset._indices.column(0).to_numpy()]
    if len(numbers) == len(made) and (numbers == np.arange(len(made))).all():
        return made
    return made.subset(numbers.tolist())


def _token_column(schema: Any, names: Sequence[str]) -> str:
    """Return the only column of lists of integers, or of several the one of tokenizers."""
    from pyarrow import types

    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    found = [
        name
        for name in names
        if any(is_list(schema.field(name).type) for is_list in lists)
        and types.is_integer(schema.field(name).type.value_type)
    ]
    if "input_ids" in found:
        return "input_ids"
    if len(found) != 1:
        known = f"these are {', '.join(found)}" if found else f"there are {', '.join(names)}"
        raise SettingError(f"tokens takes one column of lists of integers, and {known}: name it")
    return found[0]


def token_files(dataset: Any, column: str | None) -> tuple[list[str], str | None]:
    """Return the files of a data set of tokens, and the column in them."""
    import pyarrow

    _check(dataset, "tokens")
    names = dataset._format_columns or dataset.column_names
    if column is None:
        column = _token_column(dataset.features.arrow_schema, names)
    elif column not in dataset.column_names:
        raise SettingError(
            f"no column {column!r}, the columns are {', '.join(dataset.column_names)}"
        )
    paths: list[str] = []
    stored: list[str] = []
    is_stored = dataset._indices is None and bool(dataset.cache_files)
    for table in _tables(dataset.data, [column]) if is_stored else ():
        if table.path is None:
            is_stored = False
            break
        with pyarrow.memory_map(table.path) as file:
            is_stored &= table.rows == pyarrow.ipc.open_stream(file).read_all().num_rows
        paths.append(table.path)
        stored.extend(name for name, _ in table.columns)
    if not is_stored or len(set(stored)) != 1:
        raise SettingError(
            "tokens reads the files of a Dataset, and its rows are others: write them by "
            "dataset.save_to_disk(folder), and pass the folder"
        )
    return paths, stored[0]


def _tables(table: Any, names: Sequence[str]) -> Iterator[_Table]:
    """Yield the parts of a table of ``datasets``, whose rows follow each other."""
    kind = type(table).__name__
    if kind == "ConcatenationTable":
        row = 0
        for blocks in table.blocks:
            count = blocks[0].num_rows
            if len(blocks) == 1:
                yield from _tables(blocks[0], names)
            else:
                # Tables next to each other, as add_column makes them.
                is_stored = any(type(block).__name__ == "MemoryMappedTable" for block in blocks)
                yield _copied(table.table.slice(row, count), names, is_stored=is_stored)
            row += count
        return
    is_stored = kind == "MemoryMappedTable"
    mapped = _mapped(table, names) if is_stored else None
    yield mapped or _copied(table.table, names, is_stored=is_stored)


def _mapped(table: Any, names: Sequence[str]) -> _Table | None:
    """Return the rows of a file, None if what was done to them is more than a choice of them."""
    import pyarrow

    if not os.path.exists(table.path):
        raise PathNotFoundError(
            f"{table.path}: the file of the data set was moved or removed; load the data set from "
            "where it is, or again"
        )
    with pyarrow.memory_map(table.path) as file:
        schema = pyarrow.ipc.open_stream(file).schema
    stored = list(schema.names)
    # The columns, by their names in the table, and the names in the file.
    now, start = list(stored), 0
    for method, arguments, named in table.replays or []:
        if named and method != "cast":
            return None
        if method == "slice":
            start += arguments[0]
        elif method == "rename_columns":
            now = list(arguments[0])
        elif method in ("select", "drop"):
            places = [
                place
                for place, name in enumerate(now)
                if (name in arguments[0]) == (method == "select")
            ]
            if method == "select":
                places.sort(key=lambda place: arguments[0].index(now[place]))
            now, stored = [now[place] for place in places], [stored[place] for place in places]
        elif method == "remove_column":
            del now[arguments[0]], stored[arguments[0]]
        elif method not in _SAME:
            return None
    if now != table.column_names:
        return None
    columns = dict(zip(now, stored, strict=True))
    for name in names:
        if schema.field(columns[name]).type != table.schema.field(name).type:
            return None
    pairs = tuple((columns[name], name) for name in names)
    return _Table(os.path.abspath(table.path), None, pairs, start, table.num_rows)


def _copied(table: Any, names: Sequence[str], *, is_stored: bool) -> _Table:
    """Return a copy of rows in memory, unless they are of a file and take too much."""
    import pyarrow

    table = table.select(list(names))
    if is_stored and table.nbytes > _MOST_COPIED:
        raise SettingError(
            "from_hf: columns were added, or have other types than in their files, and the rows "
            "take more than 1 GiB: write them by dataset.save_to_disk(folder), and pass "
            "load_from_disk(folder)"
        )
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=_BATCH_ROWS)
    pairs = tuple((name, name) for name in names)
    return _Table(None, sink.getvalue().to_pybytes(), pairs, 0, table.num_rows)
