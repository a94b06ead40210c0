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
_ALTERNATIVES = re.compile(r"\{[^{}]*,[^{}]*\}")
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
    return path if is_url(path) else os.path.abspath(path)


def shown(path: str) -> str:
    """Return a path for people: the query of a web server's URL may sign it.

    Examples
    --------
    >>> shown("https://host/train.tar?X-Amz-Signature=abc")
    'https://host/train.tar?...'
    """
    if not is_url(path) or not path.lower().startswith("http"):
        return path
    scheme, _, rest = path.partition("://")
    head, has_query, _ = rest.partition("?")
    host, slash, key = head.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{key}{'?...' if has_query else ''}"


def is_url(path: str) -> bool:
    """Return whether a path is the URL of an object in a store."""
    return _URL.match(path) is not None


def refuse_url(destination: str | os.PathLike[str]) -> None:
    """Refuse to write into a store."""
    if is_url(os.fspath(destination)):
        path = shown(os.fspath(destination))
        raise SettingError(f"{path}: files are written locally, expected a path")


def _expand_one(path: str) -> list[str]:
    path = os.path.expanduser(path)
    if not os.path.exists(path):
        _refuse_foreign(path)
    return [found for one in _native.expand_braces(path) for found in _matching(one)]


def _refuse_foreign(path: str) -> None:
    """Refuse ways of other libraries to name several files, or commands."""
    if not path:
        raise SettingError("the path of the data set is an empty text")
    if path.startswith("pipe:"):
        raise SettingError(f"{path}: commands are not run; pass a file, a folder or a URL")
    if "::" in path:
        raise SettingError(f"{path}: pass a list instead of names with :: between them")
    if _ALTERNATIVES.search(path):
        raise SettingError(
            f"{path}: pass a list instead of alternatives in braces; only ranges such as "
            "{000..127} are expanded"
        )


def _matching(path: str) -> list[str]:
    if is_url(path) or not _WILDCARDS.search(path) or os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise of_path(PathNotFoundError, errno.ENOENT, path, "no file matches this pattern")
    return found
