"""Errors that are also ``RuntimeError``, which the first turboloader raised for all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..exceptions import DecodeError, FormatError, LoaderError, SampleError, StorageError

# Errors of files and samples. Settings raised ValueError there as well.
_RUNTIME = (DecodeError, FormatError, SampleError, StorageError)


class OriginalError(LoaderError):
    """An error of `turboloader` that ``except RuntimeError`` catches."""


_kinds: dict[type[LoaderError], type[LoaderError]] = {}


def _kind(kind: type[LoaderError]) -> type[LoaderError]:
    """Return a class that is ``kind`` and a RuntimeError, with the name of ``kind``."""
    if kind in _kinds:
        return _kinds[kind]

    def reduced(self: LoaderError) -> tuple[Any, ...]:
        restore, (_, *arguments) = LoaderError.__reduce__(self)[:2]
        return _restored, (restore, kind, *arguments)

    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__reduce__": reduced}
    made = type(kind.__name__, (OriginalError, kind, RuntimeError), body)
    return _kinds.setdefault(kind, made)


def _restored(restore: Any, kind: type[LoaderError], *arguments: Any) -> Any:
    return restore(_kind(kind), *arguments)


@contextmanager
def original_errors(opening: str | None = None) -> Iterator[None]:
    """Make errors of files and samples RuntimeErrors as well.

    Parameters
    ----------
    opening
        What is opened, such as ``"TAR"``: an error of storage then says so, in the words that the
        first turboloader had.
    """
    try:
        yield
    except _RUNTIME as error:
        if not isinstance(error, RuntimeError):
            own: type[LoaderError] = type(error)
            error.__class__ = _kind(own)  # type: ignore[assignment]
            if opening is not None and isinstance(error, StorageError):
                error.args = (f"Failed to open {opening}: {error}",)
        raise
