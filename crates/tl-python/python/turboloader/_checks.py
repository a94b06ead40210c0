"""Values of settings, checked and brought into one form."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, KeysView, Mapping, Set
from typing import Any

from .exceptions import SettingError

_SIZE = re.compile(
    r"([0-9]{1,999})(?:\.([0-9]{1,999}))? ?(?:([kmgt])(i?b|i)?|b)?",
    re.IGNORECASE,
)

# Of workers, ranks, sides, epochs and so on.
_MOST = (1 << 32) - 1
_MOST_BYTES = 1 << 62


def check_choice(setting: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    listed = list(choices)
    # Arrays answer such a question for each of their elements.
    if not isinstance(value, str) or value not in listed:
        raise SettingError(f"{setting} is {value}, expected one of {', '.join(listed)}")


def check_flags(**flags: Any) -> None:
    """Refuse what is neither true nor false, also of NumPy."""
    for setting, value in flags.items():
        if type(value).__name__ not in ("bool", "bool_"):
            raise SettingError(f"{setting} is {value!r}, expected True or False")


def whole(setting: str, value: Any, most: int = _MOST) -> int:
    """Return a whole number from 0 on, also of NumPy or torch."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise SettingError(f"{setting} is {value!r}, expected a whole number, 0 or more")
    if number > most:
        raise SettingError(f"{setting} is {number}, at most {most}")
    return number


def one_or_more(setting: str, value: Any, most: int = _MOST) -> int:
    """Return a whole number from 1 on."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= most:
        raise SettingError(f"{setting} is {value!r}, expected a whole number from 1 to {most}")
    return number


def byte_count(setting: str, value: Any) -> int:
    """Return a number of bytes, which may be text such as ``"2GB"`` or ``"512 MiB"``.

    As in coreutils, ``"2G"`` and ``"2GiB"`` are powers of 1024, ``"2GB"`` of 1000.
    """
    number = _of_text(value) if isinstance(value, str) else value
    try:
        return whole(setting, number, most=_MOST_BYTES)
    except SettingError:
        is_large = isinstance(number, int) and number > _MOST_BYTES
        expected = "a number, or text such as '2GB' or '512 MiB'"
        said = f"at most {_MOST_BYTES} bytes" if is_large else f"expected bytes: {expected}"
        raise SettingError(f"{setting} is {value!r}, {said}") from None


def _of_text(text: str) -> int | None:
    """Return the bytes that a size in text stands for; parts of a byte are left out."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    digits, parts, prefix, unit = found.groups()
    parts = parts or ""
    base = 1000 if (unit or "").lower() == "b" else 1024
    scale = base ** " kmgt".index((prefix or " ").lower())
    return int(digits + parts) * int(scale) // int(10 ** len(parts))


def wholes(setting: str, values: Any) -> list[int]:
    """Return a list of whole numbers."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise SettingError(f"{setting} is {values!r}, expected a list of numbers")
    return [whole(setting, value) for value in values]


def sides(setting: str, value: Any) -> list[int]:
    """Return a height and a width."""
    is_text = isinstance(value, (str, bytes))
    several = isinstance(value, Iterable) and not is_text
    sides = wholes(setting, value if several else [value, value])
    if len(sides) != 2:
        raise SettingError(f"{setting} is {value!r}, expected one number or (height, width)")
    return sides


def names(setting: str, names: Any) -> list[str]:
    """Return a list of names, which one text is not."""
    if isinstance(names, str):
        raise SettingError(f"{setting} is the text {names!r}, expected a list of names")
    if not isinstance(names, Iterable):
        raise SettingError(f"{setting} is {names!r}, expected a list of names")
    if isinstance(names, Set) and not isinstance(names, KeysView):
        raise SettingError(f"{setting} is a set, which has no order: pass a list of names")
    listed = list(names)
    if others := [name for name in listed if not isinstance(name, str)]:
        raise SettingError(f"{setting} has {others[0]!r}, expected names")
    return listed


def folder(setting: str, value: Any) -> str:
    """Return the path of a folder as text."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise SettingError(f"{setting} is {value!r}, expected the path of a folder")
    return path


def path_list(paths: Any, setting: str = "data") -> Any:
    """Return a list of paths."""
    if not isinstance(paths, (str, os.PathLike, Iterable)):
        others = "; or a Dataset of turboloader.open" if setting == "data" else ""
        raise SettingError(
            f"{setting} is {paths!r}, expected a path or URL, or a list of them{others}"
        )
    if isinstance(paths, (str, os.PathLike)):
        return [paths]
    if hasattr(paths, "column_names"):
        raise SettingError(
            f"{setting} is a {type(paths).__name__} of datasets: pass turboloader.from_hf(dataset)"
        )
    # Arrays, bytes and the like would be lists of numbers.
    named = hasattr(paths, "dtype") or isinstance(paths, (bytes, bytearray, memoryview))
    listed = [paths] if named else list(paths)
    other = next((one for one in listed if not isinstance(one, (str, os.PathLike))), None)
    if other is not None:
        raise SettingError(
            f"{setting} has a value of type {type(other).__name__}, expected paths: "
            "turboloader.from_items takes the bytes of images, turboloader.from_arrays arrays, "
            "turboloader.concat data sets"
        )
    return listed


def given(settings: Mapping[str, Any]) -> str:
    """Return the names of the settings that have values."""
    return ", ".join(
        name
        for name, value in settings.items()
        if value is not None and not (isinstance(value, (tuple, list)) and not value)
    )


def type_name(dtype: Any) -> str:
    """Return the name of a type: a text, or a type of NumPy's or PyTorch's."""
    if isinstance(dtype, str):
        return dtype
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    if not isinstance(name, str):
        raise SettingError(f"dtype is {dtype!r}, expected a type such as 'uint16'")
    return name.removeprefix("torch.")
