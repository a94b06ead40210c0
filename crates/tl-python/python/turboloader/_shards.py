"""The files of a data set as separate tasks, for frameworks that spread work over processes."""

from __future__ import annotations

import collections
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ._files import TblReader, convert, verify
from ._paths import is_url, shown
from .exceptions import LoaderError, SettingError

if TYPE_CHECKING:
    from .settings import Store


def parts_of(
    paths: Sequence[str], shards: Sequence[tuple[str, int, int]]
) -> Iterator[tuple[str, int, int]]:
    """Yield the parts of a data set: what opens each, its first sample, and the one after its last.

    A path that stands for many shards is a shard index. If it is the only path, it is the only
    part, because opening it takes fewer requests than opening one of its shards.

    Examples
    --------
    >>> list(parts_of(["a.tlidx"], [("0.tar", 0, 5), ("1.tar", 5, 9)]))
    [('a.tlidx', 0, 9)]
    """
    if len(paths) == len(shards):
        for path, (_, first, end) in zip(paths, shards, strict=True):
            yield path, first, end
    elif len(paths) == 1:
        yield paths[0], shards[0][1], shards[-1][2]
    else:
        given = {shown(path): path for path in paths}
        for location, first, end in shards:
            yield given.get(location, location), first, end


def outputs_of(archives: Sequence[str], folder: pathlib.Path) -> list[str]:
    """Return the TBL file that each archive becomes."""
    outputs = []
    for archive in archives:
        path = archive.partition("?")[0] if is_url(archive) else archive
        if path.lower().endswith(".tlidx"):
            said = "is a shard index, expected archives: pass a pattern such as *.tar"
            raise SettingError(f"{shown(archive)} {said}")
        outputs.append(str(folder / f"{pathlib.PurePath(path).stem}.tbl"))
    for output, archives_of_it in collections.Counter(outputs).items():
        if archives_of_it > 1:
            raise SettingError(f"several archives would become {output}: give them other names")
    return outputs


def convert_one(
    source: str, destination: str, lz4: bool, store: Store | None
) -> tuple[str, str, int, bool]:
    """Convert an archive, unless that was done; return names, samples and whether it was."""
    if os.path.exists(destination) and _is_copy(source, destination, store):
        return shown(source), destination, len(TblReader(destination)), True
    # A task of a job that was killed may end only now, with the same file.
    samples = convert(source, destination, to="tbl", lz4=lz4, overwrite=True, store=store)
    return shown(source), destination, samples, False


def _is_copy(source: str, destination: str, store: Store | None) -> bool:
    """Whether a file is sound and has the samples of an archive."""
    try:
        if not verify(destination)["is_good"]:
            return False
        copy = TblReader(destination)
    except LoaderError:
        return False
    original = TblReader(source, store=store)
    return len(copy) == len(original) and all(
        _known(copy, index) == _known(original, index) and copy[index] == original[index]
        for index in range(len(copy))
    )


def _known(reader: TblReader, index: int) -> tuple[Any, ...]:
    entry = reader.entry(index)
    return entry["key"], entry["label"], entry["bytes"]
