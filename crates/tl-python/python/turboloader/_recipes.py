"""Recipes from what loaders are given as transforms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ._checks import check_choice, given, sides
from ._native import Recipe
from .exceptions import SettingError
from .fields import Image, Request
from .transforms import Resize, Transform, Views, dtype_name, recipe


def recipe_of(
    transform: Any,
    image_size: int | tuple[int, int] | None,
    last: bool | None,
    **options: Any,
) -> Recipe:
    """Return the recipe; ``last`` is whether channels come last where nothing says so."""
    if options.get("parity") is not None:
        check_choice("parity", options["parity"], ("pil", "tensor"))
    count = transform.count if isinstance(transform, Views) else 1
    if count > 1 and isinstance(transform.transform, Recipe):
        return recipe_of(transform.transform, image_size, last, **options).with_draws(count)
    if isinstance(transform, Recipe):
        if named := given({"image_size": image_size, **options}):
            raise SettingError(f"{named}: already defined by the recipe; pass the recipe alone")
        return transform
    if options.get("channels_last") is None:
        options["channels_last"] = last
    if transform is None:
        if image_size is not None:
            return recipe(Resize(sides("image_size", image_size)), **options)
        return recipe(None, **options)
    if image_size is not None:
        raise SettingError("image_size and transform: pass only one; T.Resize sets the size")
    is_text = isinstance(transform, (str, bytes))
    is_listed = isinstance(transform, (Transform, Views, Sequence)) and not is_text
    if not is_listed and not callable(transform):
        raise SettingError(
            f"transform is {transform!r}, expected transforms such as T.Resize((224, 224)), or a "
            "list of them"
        )
    return recipe(transform, **options)


def recipe_of_samples(transform: Any, image_size: Any, last: bool | None, **options: Any) -> Recipe:
    """Return the recipe for samples that come alone."""
    made = recipe_of(transform, image_size, last, **options)
    if json.loads(made.to_json()).get("batch_ops"):
        raise SettingError("transform mixes batches, but these are single samples: remove mixing")
    return made


def groups(transform: Any) -> list[tuple[tuple[str, ...], Any]]:
    """Return the names of images with the transform that they share; the sample's own first."""
    if not isinstance(transform, Mapping):
        return [(("image",), transform)]
    found = []
    for key, one in transform.items():
        names = key if isinstance(key, tuple) else (key,)
        found.append((names, one))
    every = [name for names, _ in found for name in names]
    if not found or not all(isinstance(name, str) and name for name in every):
        raise SettingError(f"transform is {transform!r}, expected names with transforms")
    return found


def images_of(
    transform: Any, request: Request, last: bool | None, **options: Any
) -> tuple[str, list[dict[str, Any]]]:
    """Return the name of the sample's own image, and all further ones."""
    (names, _), *others = groups(transform)
    first, *joint = names
    if first in request.images:
        raise SettingError(
            f"transform: {first} is first, so it is the sample's own image; remove it from fields"
        )
    options["batch_transform"] = ()
    images: list[dict[str, Any]] = []
    for names, one in others:
        if len(names) > 1:
            raise SettingError(
                f"transform: {', '.join(names)} share random numbers without the sample's own "
                f"image; put them into one tuple with {first}"
            )
        file, field = request.images.get(names[0], (None, None))
        made = recipe_of(one, None, last, **(options | _of_image(field)))
        images.append({"name": names[0], "file": file, "recipe": made, "moves": None})
    alone = {image["name"] for image in images}
    if missing := [name for name in joint if name not in request.images]:
        raise SettingError(
            f"transform: {missing[0]} would equal {first}; give it a transform of its own, or "
            f"name its file: fields={{{missing[0]!r}: tl.Image(...)}}"
        )
    for name, (file, field) in request.images.items():
        if name not in alone:
            moves = None
            if said := _of_image(field):
                moves = (dtype_name(said.get("pixels", "uint8")), said.get("channels", 3))
            images.append({"name": name, "file": file, "recipe": None, "moves": moves})
    return first, images


def _of_image(field: Image | None) -> dict[str, Any]:
    """Return what a field says of its pixels, whose type is then theirs in batches too."""
    if field is None:
        return {}
    said = {"channels": field.channels, "pixels": field.pixels}
    said = {name: value for name, value in said.items() if value is not None}
    return said | {"dtype": None} if "pixels" in said else said
