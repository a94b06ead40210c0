"""Names of data sets: one, a list, patterns, and ranges as WebDataset writes them."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterator, Sequence

from .exceptions import PathNotFoundError, SettingError, of_path

_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
# Of one range: more than any data set has, and names that take no time to make.
_MOST_FILES = 1_000_000
_WILDCARDS = re.compile(r"[*?\[]")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def expand(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return the paths that are meant, in the order given; those of a pattern are sorted.

    Examples
    --------
    >>> expand("train-{08..10}.tar")
    ['train-08.tar', 'train-09.tar', 'train-10.tar']
    """
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not listed:
        raise SettingError("no data set: the list of paths is empty")
    return [found for path in listed for found in _expand_one(os.fspath(path))]


def absolute(path: str) -> str:
    """Return a path that means the same in every folder; a URL does anyway."""
    return path if _URL.match(path) else os.path.abspath(path)


def _expand_one(path: str) -> list[str]:
    if os.path.exists(path):
        return [path]
    ranged = list(_ranges(path))
    if ranged != [path]:
        return [found for one in ranged for found in _expand_one(one)]
    if _URL.match(path) or not _WILDCARDS.search(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise of_path(PathNotFoundError, errno.ENOENT, path, "no file matches this pattern")
    return found


def _ranges(path: str) -> Iterator[str]:
    match = _RANGE.search(path)
    if match is None:
        yield path
        return
    first, last = match.groups()
    width = max(map(len, (first, last))) if "0" in (first[0], last[0]) else 0
    start, stop = int(first), int(last)
    step = 1 if start <= stop else -1
    if abs(stop - start) >= _MOST_FILES:
        raise SettingError(f"{path} names {abs(stop - start) + 1} files, at most {_MOST_FILES}")
    for number in range(start, stop + step, step):
        one = f"{path[: match.start()]}{number:0{width}d}{path[match.end() :]}"
        yield from _ranges(one)
