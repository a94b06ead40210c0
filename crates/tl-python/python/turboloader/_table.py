"""The transforms: their parameters in torchvision's order, with its defaults.

The native library has the table; this brings it into the form of Python's signatures.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any, Final

from . import _native


class Required:
    """The default of a parameter that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final = Required()


def _rows(signatures: str) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        row["name"]: (
            row["summary"],
            {parameter["name"]: _default(parameter) for parameter in row["parameters"]},
        )
        for row in json.loads(signatures)
    }


def _default(parameter: Mapping[str, Any]) -> Any:
    value = parameter.get("default", REQUIRED)
    return tuple(value) if isinstance(value, list) else value


TABLE, BATCH_TABLE = map(_rows, _native.signatures())


def signature_of(parameters: Mapping[str, Any]) -> inspect.Signature:
    """Return the signature of a row."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(name, kind, default=empty if default is REQUIRED else default)
            for name, default in parameters.items()
        ]
    )
