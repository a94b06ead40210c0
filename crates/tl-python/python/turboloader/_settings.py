"""What is said of a loader, checked and brought into one form."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._native import Recipe
from ._ranks import detected_ranks
from .exceptions import SettingError
from .transforms import Resize, Transform, dtype_name, from_torchvision, recipe

# Of workers, ranks, sides, epochs and so on.
_MOST = (1 << 32) - 1

_REMOTE = ("http://", "https://", "s3://", "gs://", "gcs://", "az://", "azure://")


def one_of(name: str, value: Any, other_name: str, other: Any) -> Any:
    if value is not None and other is not None:
        raise SettingError(f"{name} and {other_name} are the same setting; pass only one")
    return other if value is None else value


def check_choice(setting: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    listed = list(choices)
    if value not in listed:
        raise SettingError(f"{setting} is {value}, none of {', '.join(listed)}")


def check_flags(**flags: Any) -> None:
    """Refuse what is neither true nor false, also of NumPy."""
    for setting, value in flags.items():
        if type(value).__name__ not in ("bool", "bool_"):
            raise SettingError(f"{setting} is {value!r}, expected True or False")


def whole(setting: str, value: Any) -> int:
    """Return a whole number from 0 on, also of NumPy or torch."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise SettingError(f"{setting} is {value!r}, expected a whole number, 0 or more")
    if number > _MOST:
        raise SettingError(f"{setting} is {number}, at most {_MOST}")
    return number


def wholes(setting: str, values: Any) -> list[int]:
    """Return a list of whole numbers."""
    try:
        listed = list(values)
    except TypeError:
        raise SettingError(f"{setting} is {values!r}, expected a list of numbers") from None
    return [whole(setting, value) for value in listed]


def sides(setting: str, value: Any) -> list[int]:
    """Return a height and a width."""
    sides = wholes(setting, _pair(value, value))
    if len(sides) != 2:
        raise SettingError(f"{setting} is {value!r}, expected one number or (height, width)")
    return sides


def _pair(value: Any, second: Any) -> Any:
    """Return values that come together, or one value and ``second``; text is one value."""
    is_text = isinstance(value, (str, bytes))
    return value if isinstance(value, Iterable) and not is_text else [value, second]


def buckets(value: Any) -> tuple[int | None, int]:
    """Return the window in batches, if there is one, and what sides are a multiple of."""
    if value is None:
        return None, 1
    is_text = isinstance(value, (str, bytes))
    numbers = wholes(
        "buckets", value if isinstance(value, Iterable) and not is_text else [value, 1]
    )
    if len(numbers) != 2 or min(numbers) < 1:
        raise SettingError(f"buckets is {value!r}, expected a window or (window, multiple)")
    window, multiple = numbers
    return window, multiple


def names(setting: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str):
        raise SettingError(f"{setting} is the text {names!r}, expected a list of names")
    if not isinstance(names, Iterable):
        raise SettingError(f"{setting} is {names!r}, expected a list of names")
    return list(names)


def requests(
    setting: str, columns: Sequence[str] | Mapping[str, Any]
) -> list[tuple[str, str | None]]:
    """Return names with the types that are asked for."""
    if isinstance(columns, Mapping):
        types = columns.items()
        return [(name, None if dtype is None else dtype_name(dtype)) for name, dtype in types]
    return [(name, None) for name in names(setting, columns)]


def local(paths: Any) -> Any:
    if not isinstance(paths, (str, os.PathLike, Iterable)):
        raise SettingError(f"data_path is {paths!r}, expected a path or a list of paths")
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    for path in listed:
        if os.fspath(path).startswith(_REMOTE):
            raise SettingError(f"{path}: remote data sets cannot be loaded yet, copy it first")
    return listed


def cache_dir() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "turboloader")


def given(settings: Mapping[str, Any]) -> str:
    """Return the names of those that are said."""
    return ", ".join(
        name
        for name, value in settings.items()
        if value is not None and not (isinstance(value, (tuple, list)) and not value)
    )


def dict_of(
    setting: str, said: dict[str, Any] | None, needed: Sequence[str], others: dict[str, Any]
) -> dict[str, Any] | None:
    """Return what is said of a field with the defaults of the rest."""
    if said is None:
        return None
    if not isinstance(said, Mapping):
        raise SettingError(f"{setting} is {said!r}, expected a dict of {', '.join(needed)}")
    known = (*needed, *others)
    if unknown := [name for name in said if name not in known]:
        raise SettingError(f"{setting} has no {unknown[0]!r}, only {', '.join(known)}")
    if missing := [name for name in needed if name not in said]:
        raise SettingError(f"{setting} needs {missing[0]!r}")
    return {**others, **said}


def recipe_of(
    transform: Any,
    image_size: int | tuple[int, int] | None,
    last: bool | None,
    **options: Any,
) -> Recipe:
    """Return the recipe; ``last`` is whether channels come last where nothing says so."""
    if isinstance(transform, Recipe):
        if named := given({"image_size": image_size, **options}):
            raise SettingError(f"{named}: a recipe says this itself, pass it alone")
        return transform
    if options.get("channels_last") is None:
        options["channels_last"] = last
    if transform is None:
        if image_size is not None:
            return recipe(Resize(sides("image_size", image_size)), **options)
        return recipe(None, **options)
    if image_size is not None:
        raise SettingError("image_size goes without a transform: resize in the transform")
    if type(transform).__module__.partition(".")[0] == "torchvision":
        transform = from_torchvision(transform)
    if not isinstance(transform, (Transform, Sequence)) and not callable(transform):
        name = type(transform).__qualname__
        raise SettingError(f"transform is a {name}, expected transforms of turboloader")
    return recipe(transform, **options)


def recipe_of_samples(transform: Any, image_size: Any, last: bool | None, **options: Any) -> Recipe:
    """Return the recipe for samples that come alone."""
    made = recipe_of(transform, image_size, last, **options)
    if json.loads(made.to_json()).get("batch_ops"):
        raise SettingError("transform mixes batches: samples that come alone are not mixed")
    return made


def place(enable: bool, rank: int | None, world: int | None) -> tuple[int, int]:
    """Return rank and world size."""
    if rank is not None or world is not None:
        if rank is None or world is None:
            raise SettingError("world_rank and world_size go together")
        rank, world = whole("world_rank", rank), whole("world_size", world)
        if rank >= world:
            raise SettingError(f"world_rank is {rank}, world_size {world}")
        return rank, world
    if not enable:
        return 0, 1
    detected = detected_ranks()
    if detected is None:
        raise SettingError(
            "enable_distributed: neither torch.distributed is initialised nor are RANK and "
            "WORLD_SIZE set; pass world_rank and world_size"
        )
    return detected
