"""Warnings that name the line of the code that called the package."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from types import FrameType

_PACKAGE = os.path.dirname(__file__) + os.sep

# A data set of many files may have a note on each of them.
_MOST_NOTES = 8


def warn(text: str) -> None:
    """Warn the user with the line of the first frame outside of the package."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, stacklevel=level)


def warn_of_notes(notes: Sequence[str]) -> None:
    """Warn the user of each note, or of the first ones of many."""
    for note in notes[:_MOST_NOTES]:
        warn(note)
    if len(notes) > _MOST_NOTES:
        warn(f"{len(notes) - _MOST_NOTES} more notes: the attribute notes lists all")
