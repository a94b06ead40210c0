"""The transforms: their parameters in torchvision's order, with its defaults.

The native library has the table with its texts; this brings it into the form of Python's
signatures and docstrings.
"""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Mapping
from typing import Any, Final

from . import _native


class Required:
    """The default of a parameter that has none."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Final = Required()


# The types of parameters, by the kinds of the native library.
_TYPES: Final = {
    "antialias": "bool",
    "channels": "float | Sequence[float]",
    "count": "int",
    "count_or_pair": "int | Sequence[int]",
    "counts": "int | Sequence[int]",
    "erasing_value": 'float | Sequence[float] | Literal["random"]',
    "fill": "float | Sequence[float] | None",
    "filter": "Interpolation",
    "flag": "bool",
    "interval": "Sequence[float]",
    "number": "float",
    "optional_size": "int | Sequence[int] | None",
    "padding_mode": "PaddingMode",
    "pair": "Sequence[int]",
    "point": "Sequence[float]",
    "policy": "Policy",
    "probability": "float",
    "range": "float | Sequence[float]",
    "sides": "int | Sequence[int]",
    "size": "int | Sequence[int]",
    "transforms": "Iterable[Function]",
    "warp_filter": "Interpolation",
    "weights": "Sequence[float]",
}

_IMAGES = (
    "Called directly, it takes an image as a NumPy array of ``uint8`` and shape (height, width, "
    "3), or as a tensor of torch of shape (3, height, width), and returns the same layout."
)
_BATCHES = (
    "``batch['image']`` keeps its shape and type: (batch, channels, height, width), or (batch, "
    "height, width, channels)."
)


def _rows(signatures: str, images: str) -> dict[str, tuple[str, dict[str, Any]]]:
    return {
        row["name"]: (
            _document(row, images),
            {parameter["name"]: _default(parameter) for parameter in row["parameters"]},
        )
        for row in json.loads(signatures)
    }


def _default(parameter: Mapping[str, Any]) -> Any:
    value = parameter.get("default", REQUIRED)
    return tuple(value) if isinstance(value, list) else value


def _document(row: Mapping[str, Any], images: str) -> str:
    """Return the docstring of a class."""
    summary, _, details = row["document"].partition("\n\n")
    result, _, counterpart = details.replace("\n", " ").partition(" Counterpart: ")
    of_torchvision = f"torchvision.transforms.v2 has it as {counterpart}"
    counterpart = "torchvision does not have it." if counterpart == "none." else of_torchvision
    text = "\n\n".join([summary, _wrapped(result), _wrapped(f"{images} {counterpart}")])
    if not row["parameters"]:
        return text
    listed = "\n".join(map(_entry, row["parameters"]))
    return f"{text}\n\nParameters\n----------\n{listed}"


def _entry(parameter: Mapping[str, Any]) -> str:
    """Return the lines of a docstring about a parameter."""
    default = _default(parameter)
    given = "" if default is REQUIRED else f", default {_short(default)}"
    about = textwrap.indent(_wrapped(parameter["document"]), "    ")
    return f"{parameter['name']} : {type_of(parameter)}{given}\n{about}"


def _short(default: Any) -> str:
    """Return a default without the last digits of fractions such as 4/3."""
    if isinstance(default, tuple):
        return f"({', '.join(map(_short, default))})"
    return repr(round(default, 5) if isinstance(default, float) else default)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 92, break_long_words=False, break_on_hyphens=False)


def type_of(parameter: Mapping[str, Any]) -> str:
    """Return the type of a parameter's values, as an annotation."""
    annotation = _TYPES[parameter["kind"]]
    is_optional = parameter.get("default", REQUIRED) is None and "None" not in annotation
    return f"{annotation} | None" if is_optional else annotation


_SIGNATURES: Final = _native.signatures()
TABLE, BATCH_TABLE = map(_rows, _SIGNATURES, (_IMAGES, _BATCHES))

# The types of parameters by transform and name.
ANNOTATIONS: Final = {
    row["name"]: {parameter["name"]: type_of(parameter) for parameter in row["parameters"]}
    for row in [*json.loads(_SIGNATURES[0]), *json.loads(_SIGNATURES[1])]
}


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
