"""Writes `transforms.pyi`: the types of the classes that the table makes.

Run it as ``python stubs.py`` after a change of the table, with the package installed; a test
compares the file with what this would write.
"""

from __future__ import annotations

import inspect
import pathlib

from turboloader import transforms
from turboloader._table import BATCH_TABLE, TABLE

PATH = pathlib.Path(__file__).parent / "python" / "turboloader" / "transforms.pyi"

HEAD = """\
# Written by stubs.py.
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ._native import Recipe

class Transform:
    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def operations(self) -> list[dict[str, Any]]: ...
    def functions(self) -> list[tuple[str, Callable[[Any], Any]]]: ...
    def __or__(self, other: Transform) -> Compose: ...
    def __call__(
        self, image: Any, *, seed: int | None = ..., epoch: int = ..., sample: int | None = ...
    ) -> Any: ...
    def __hash__(self) -> int: ...

class BatchTransform:
    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...

class Compose(Transform):
    transforms: list[Transform]
    def __init__(self, transforms: Iterable[Transform | Callable[[Any], Any]]) -> None: ...

class Lambda(Transform):
    lambd: Callable[[Any], Any]
    @property
    def name(self) -> str: ...
    def __init__(self, lambd: Callable[[Any], Any]) -> None: ...

class ToImage(Transform):
    def __init__(self) -> None: ...

class ToDtype(Transform):
    dtype: str
    scale: bool
    def __init__(self, dtype: Any, scale: bool = ...) -> None: ...
"""

TAIL = """\
ToTensor = ToFloat
ImageNetNormalize = Normalize

def manual_seed(seed: int) -> None: ...
def dtype_name(dtype: Any) -> str: ...
def functions(transform: Any) -> dict[str, Callable[[Any], Any]]: ...
def recipe(
    transform: Transform | Callable[[Any], Any] | Sequence[Transform | Callable[[Any], Any]] | None,
    *,
    dtype: Any = ...,
    channels_last: bool | None = ...,
    decode_margin: float | None = ...,
    parity: str | None = ...,
    batch_transform: BatchTransform | Sequence[BatchTransform] = ...,
) -> Recipe: ...
def from_torchvision(transform: Any) -> Transform: ...
"""


def of_class(name: str, base: str) -> str:
    """Return the stub of one class."""
    parameters = ["self"]
    signature = inspect.signature(getattr(transforms, name))
    for parameter in signature.parameters.values():
        default = " = ..." if parameter.default is not inspect.Parameter.empty else ""
        parameters.append(f"{parameter.name}: {of_value(parameter)}{default}")
    listed = f"    def __init__({', '.join(parameters)}) -> None: ..."
    if len(listed) > 100:
        rows = "".join(f"        {parameter},\n" for parameter in parameters)
        listed = f"    def __init__(\n{rows}    ) -> None: ..."
    return f"class {name}({base}):\n{listed}\n"


def of_value(parameter: inspect.Parameter) -> str:
    """Return the type of a parameter, as narrow as its default says."""
    if parameter.name == "transforms":
        return "Iterable[Transform]"
    if isinstance(parameter.default, (bool, int)) and parameter.name != "fill":
        return type(parameter.default).__name__
    return "float" if parameter.name == "p" and parameter.default is not None else "Any"


def text() -> str:
    """Return the whole file."""
    classes = [of_class(name, "Transform") for name in TABLE]
    classes += [of_class(name, "BatchTransform") for name in BATCH_TABLE]
    # Listed, so that `from .transforms import *` has types too.
    names = "".join(f'    "{name}",\n' for name in transforms.__all__)
    return "\n".join([HEAD, *classes, TAIL, f"__all__ = [\n{names}]\n"])


if __name__ == "__main__":
    PATH.write_text(text())
