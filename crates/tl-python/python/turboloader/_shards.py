"""The files of a data set as separate tasks, for frameworks that spread work over processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from . import _native
from ._paths import shown

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


def run_shard(
    task: str, places: tuple[str, str | None, str | None, bool], store: Store | None
) -> tuple[str, bool]:
    """Work on a shard; return its record, and whether an earlier run has made it."""
    return _native.run_shard(task, *places, store)
