"""A line on the terminal about a loader that runs."""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .exceptions import ClosedError, SettingError

if TYPE_CHECKING:
    from .loader import DataLoader

# To the start of the line, and erase it.
_AGAIN = "\r\x1b[K"

_MOST_SECONDS = 3600


@contextlib.contextmanager
def watch(loader: DataLoader[Any, Any], *, every: float = 1.0) -> Iterator[None]:
    """Show on the terminal what a loader does during a ``with`` statement.

    One line of standard error has the samples of a second, the part of its time that training
    waited for a batch, what limits the loader, and the memory of batches, all of the last ``every``
    seconds. At the end a line about the whole statement stays. If standard error is not a
    terminal, nothing is shown. Jobs of many processes watch in one of them, such as rank 0.

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
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(loader, every, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        with contextlib.suppress(ClosedError):
            _write(_AGAIN + loader.report().since(started).line + "\n")


def _show(loader: DataLoader[Any, Any], every: float, ended: threading.Event) -> None:
    """Show a line each time until the event is set or the loader is closed."""
    with contextlib.suppress(ClosedError):
        earlier = loader.report()
        while not ended.wait(every):
            now = loader.report()
            # A line that wraps cannot be erased.
            width = shutil.get_terminal_size().columns
            _write(_AGAIN + now.since(earlier).line[: max(width - 1, 0)])
            earlier = now


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
