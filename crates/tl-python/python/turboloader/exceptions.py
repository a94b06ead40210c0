"""The exceptions of TurboLoader.

Every exception derives from `LoaderError` and from the matching built-in exception, so both
``except turboloader.LoaderError`` and ``except OSError`` catch it.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BatchTimeoutError",
    "ClosedError",
    "DecodeError",
    "ForkedError",
    "FormatError",
    "InternalError",
    "LoaderError",
    "OutOfMemoryError",
    "PathExistsError",
    "PathNotFoundError",
    "PathPermissionError",
    "RecipeError",
    "SampleError",
    "SampleIndexError",
    "SettingError",
    "StateError",
    "StorageError",
    "UnsupportedTransformError",
]


class LoaderError(Exception):
    """Anything that TurboLoader refuses or cannot do.

    Attributes
    ----------
    shard : str or None
        The file or folder that it is about.
    sample : int or None
        The sample's number.
    key : str or None
        The sample's name.
    offset : int or None
        The place in the file, in bytes.
    """

    shard: str | None = None
    sample: int | None = None
    key: str | None = None
    offset: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep the attributes when it is sent to another process."""
        names = ("shard", "sample", "key", "offset", "errno", "filename")
        kept = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return _restored, (type(self), self.args, kept)


def _restored(kind: type[LoaderError], args: tuple[Any, ...], kept: dict[str, Any]) -> LoaderError:
    error = kind(*args)
    for name, value in kept.items():
        setattr(error, name, value)
    return error


class FormatError(LoaderError, ValueError):
    """The bytes of a file break its format."""


class StorageError(LoaderError, OSError):
    """The operating system refuses a file, or a file changed while it was open."""

    def __str__(self) -> str:
        """Return the message, which names the file."""
        return str(self.args[0]) if self.args else ""


class PathNotFoundError(StorageError, FileNotFoundError):
    """A file or folder that does not exist."""


class PathExistsError(StorageError, FileExistsError):
    """A file or folder that already exists."""


class PathPermissionError(StorageError, PermissionError):
    """A file or folder that this user may not use."""


def of_path(kind: type[StorageError], number: int, path: str, message: str) -> StorageError:
    """Return an exception about a path, with the number that the system has for it."""
    error = kind(f"{path}: {message}")
    error.errno, error.shard, error.filename = number, path, path
    return error


class DecodeError(LoaderError, ValueError):
    """A sample that is not an image, or is a damaged one."""


class SampleError(LoaderError, ValueError):
    """A sample cannot be used for the requested work."""


class RecipeError(LoaderError, ValueError):
    """Transforms that are invalid, or are not possible in this order."""


class UnsupportedTransformError(RecipeError):
    """A transform of torchvision that TurboLoader does not support."""


class SettingError(LoaderError, ValueError):
    """A setting outside its range, or settings that conflict."""


class StateError(LoaderError, ValueError):
    """A state of another data set or another loader."""


class SampleIndexError(LoaderError, IndexError):
    """A sample that does not exist."""


class OutOfMemoryError(LoaderError, MemoryError):
    """Memory is exhausted, or the memory budget is."""


class ForkedError(LoaderError, RuntimeError):
    """The process is a fork of the one that created the loader, and lacks its threads."""


class ClosedError(LoaderError, RuntimeError):
    """An object was used after it was closed."""


class BatchTimeoutError(LoaderError, TimeoutError):
    """No batch was ready in the time that ``next`` of an iteration was given."""

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0]) if self.args else ""


class InternalError(LoaderError, RuntimeError):
    """A bug in TurboLoader: please report it."""
