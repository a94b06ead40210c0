"""The logging of the first turboloader, by way of Python's: the logger is ``"turboloader"``."""

from __future__ import annotations

import enum
import logging
import os
import sys
from typing import IO

__all__ = ["LogLevel", "disable_logging", "enable_logging", "set_log_level", "set_log_output"]

LOGGER = logging.getLogger("turboloader")


class LogLevel(enum.IntEnum):
    """How much is logged; the numbers are those of `logging`."""

    DEBUG = logging.DEBUG
    INFO = logging.INFO
    WARNING = logging.WARNING
    ERROR = logging.ERROR
    CRITICAL = logging.CRITICAL


class _Output:
    """The one handler of the logger while logging is enabled."""

    handler: logging.Handler | None = None
    path = ""


def enable_logging() -> None:
    """Write the loaders' log to standard error, or to the file that `set_log_output` names."""
    disable_logging()
    stream: IO[str] = sys.stderr
    path = _Output.path
    handler = logging.FileHandler(path, delay=True) if path else logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    LOGGER.addHandler(handler)
    if LOGGER.level == logging.NOTSET:
        LOGGER.setLevel(LogLevel.INFO)
    _Output.handler = handler


def disable_logging() -> None:
    """Stop writing the log."""
    if _Output.handler is not None:
        LOGGER.removeHandler(_Output.handler)
        _Output.handler.close()
        _Output.handler = None


def set_log_level(level: LogLevel) -> None:
    """Leave out what is below ``level``."""
    LOGGER.setLevel(LogLevel(level))


def set_log_output(path: str | os.PathLike[str]) -> None:
    """Write the log to the end of this file; an empty path means standard error."""
    _Output.path = os.fspath(path)
    if _Output.handler is not None:
        enable_logging()
