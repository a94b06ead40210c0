"""A line on the terminal about a loader that runs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from .exceptions import ClosedError, SettingError

if TYPE_CHECKING:
    from .loader import DataLoader

# To the start of the line, and erase it.
_AGAIN = "\r\x1b[K"

_MOST_SECONDS = 3600

_USUAL_WIDTH = 80


@contextlib.contextmanager
def watch(loader: DataLoader[Any, Any], *, every: float = 1.0) -> Iterator[None]:
    """Show on the terminal what a loader does during a ``with`` statement.

    One line of standard error has the samples of a second, the part of its time that training
    waited for a batch, and what limits the loader, all of the last ``every`` seconds, and the
    batches in use at this moment: in the making, ready, or with training. At the end a line about
    the whole statement stays; if the loader was closed in it, the last line that was drawn. If
    standard error is not a terminal, nothing is shown, and a terminal that is closed meanwhile
    raises no error. Jobs of many processes watch in one of them, such as rank 0.

    >>> import turboloader as tl
    >>> loader = tl.DataLoader("train.tar", batch_size=64)
    >>> with tl.watch(loader):
    ...     for batch in loader:
    ...         train(batch)

    Parameters
    ----------
    loader
        The loader, before or during an epoch.
    every
        The time between two lines in seconds.

    Raises
    ------
    SettingError
        If ``every`` is not a number from above 0 to 3600.
    ClosedError
        If the loader is closed.
    """
    is_number = isinstance(every, (int, float)) and not isinstance(every, bool)
    if not (is_number and 0 < every <= _MOST_SECONDS):
        raise SettingError(
            f"every is {every!r}, expected seconds, more than 0 and at most {_MOST_SECONDS}"
        )
    started = loader.report()
    stream = sys.stderr
    if not _is_terminal(stream):
        yield
        return
    ended = threading.Event()
    shown = _Line(stream)
    thread = threading.Thread(target=_show, args=(loader, every, ended, shown), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        try:
            shown.end(loader.report().since(started).line)
        except ClosedError:
            # The loader was closed in the statement: the last line that was drawn stays.
            shown.end(None)


class _Line:
    """The last line of a terminal, which is drawn again and again."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_drawn = False

    def draw(self, text: str) -> None:
        # A line that wraps cannot be erased.
        self._write(_AGAIN + text[: _width(self._stream) - 1])
        self._is_drawn = True

    def end(self, text: str | None) -> None:
        """End the line with this text, or with the one that it has."""
        if text is not None:
            self._write(f"{_AGAIN}{text}\n")
        elif self._is_drawn:
            self._write("\n")

    def _write(self, text: str) -> None:
        # Training does not fail because a terminal is closed. Closed files raise ValueError.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _show(loader: DataLoader[Any, Any], every: float, ended: threading.Event, line: _Line) -> None:
    """Show a line each time until the event is set or the loader is closed."""
    with contextlib.suppress(ClosedError):
        earlier = loader.report()
        while not ended.wait(every):
            now = loader.report()
            line.draw(now.since(earlier).line)
            earlier = now


def _is_terminal(stream: TextIO | None) -> bool:
    # Closed files raise ValueError.
    with contextlib.suppress(OSError, ValueError):
        return stream is not None and stream.isatty()
    return False


def _width(stream: TextIO) -> int:
    """Return the columns of the terminal; standard output may go elsewhere."""
    # Streams of notebooks have no number of a file; some terminals have no width.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    return _USUAL_WIDTH
