"""Names of data sets: one, a list, patterns, and ranges as WebDataset writes them."""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Sequence

from . import _native
from .exceptions import PathNotFoundError, SettingError, of_path

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
    return [found for one in _native.expand_braces(path) for found in _matching(one)]


def _matching(path: str) -> list[str]:
    if _URL.match(path) or not _WILDCARDS.search(path) or os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise of_path(PathNotFoundError, errno.ENOENT, path, "no file matches this pattern")
    return found
