"""Writes the package's type stubs, or with ``--check`` compares the existing ones.

`_native.pyi` is what maturin generates of the native module, in the form that ruff gives it;
`transforms.pyi` has the classes that the table makes. ``cargo xtask stubs`` runs this, with the
package installed and the path of the file that maturin has generated.
"""

from __future__ import annotations

import argparse
import inspect
import pathlib
import re
import subprocess
import sys

from turboloader import transforms
from turboloader._table import ANNOTATIONS, BATCH_TABLE, TABLE

PACKAGE = pathlib.Path(__file__).parent / "python" / "turboloader"

# Names that annotations in Rust use, and the type of a batch's fields.
IMPORTS = """\
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Literal, overload
import jax
import numpy.typing as npt
import torch
from typing_extensions import TypeVar
from ._parts import BatchPart
from .settings import Store
"""
TYPES = """\
Values = TypeVar("Values", covariant=True, default=Any)
TensorField = Literal["image", "label", "soft_label", "index", "valid", "size", "mask"]

"""

# Methods that PyO3 cannot annotate: those of operators that return this or that, classes of
# other packages, and iteration by numbers, which type checkers do not know. Each text is generated
# once.
REPLACED = {
    "    def __getitem__(self, index: Any, /) -> Any:": (
        """\
    def __iter__(self) -> Iterator[Tensor]: ...
    @overload
    def __getitem__(self, index: int, /) -> Tensor: ...
    @overload
    def __getitem__(self, index: Any, /) -> Any:"""
    ),
    "    def __getitem__(self, key: Any, /) -> Any:": (
        """\
    @overload
    def __getitem__(self, key: int, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice, /) -> BatchPart[Values]: ...
    @overload
    def __getitem__(self, key: TensorField, /) -> Values: ...
    @overload
    def __getitem__(self, key: str, /) -> Any:"""
    ),
    "class Batch:": "class Batch(Generic[Values]):",
    "    def __contains__(self, name: str, /)": (
        """\
    image: Values
    label: Values
    soft_label: Values
    index: Values
    valid: Values
    size: Values
    mask: Values
    def __contains__(self, name: str, /)"""
    ),
    "def torch(self, /) -> Any:": "def torch(self, /) -> torch.Tensor:",
    "def jax(self, /) -> Any:": "def jax(self, /) -> jax.Array:",
}

# The methods of `Tensor` that only raise errors with advice. Without them type checkers refuse what
# they refuse.
LEFT_OUT = ("__add__", "__getattr__", "__mul__", "__sub__", "__truediv__")

# The types that transforms share. `Interpolation` also has Pillow's numbers and the enums of Pillow
# and torchvision.
TRANSFORMS_HEAD = """\
# Written by stubs.py.
import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, overload

import numpy.typing as npt
import torch

from ._native import Recipe

Interpolation: TypeAlias = (
    Literal[
        "nearest",
        "nearest_exact",
        "nearest-exact",
        "box",
        "bilinear",
        "hamming",
        "bicubic",
        "lanczos",
    ]
    | int
    | enum.Enum
)
PaddingMode: TypeAlias = Literal["constant", "edge", "reflect", "symmetric"]
Policy: TypeAlias = Literal["imagenet", "cifar10", "svhn"] | enum.Enum
# An element of a list of transforms: also a function, or one of torchvision or Albumentations.
Function: TypeAlias = Transform | Callable[..., Any]
Dtype: TypeAlias = npt.DTypeLike | _TorchDtype

class _TorchDtype(Protocol):
    is_floating_point: bool
    is_complex: bool

class _Pixels(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
"""

# Attributes and methods of the classes that are written by hand.
WRITTEN = {
    "Transform": """\
    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def operations(self) -> list[dict[str, Any]]: ...
    def functions(self) -> list[tuple[str, Callable[..., Any]]]: ...
    def __or__(self, other: Function) -> Compose: ...
    @overload
    def __call__(
        self,
        image: _Pixels,
        *,
        seed: int | None = ...,
        epoch: int = ...,
        sample: int | None = ...,
    ) -> npt.NDArray[Any]: ...
    @overload
    def __call__(
        self,
        image: torch.Tensor,
        *,
        seed: int | None = ...,
        epoch: int = ...,
        sample: int | None = ...,
    ) -> torch.Tensor: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
""",
    "Views": """\
    count: int
    transform: Function | Sequence[Function] | Recipe | None
    def __init__(
        self, count: int, transform: Function | Sequence[Function] | Recipe | None
    ) -> None: ...
""",
    "BatchTransform": """\
    def __init__(self, **parameters: Any) -> None: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...
""",
    "Compose": """\
    transforms: list[Transform]
    def __init__(self, transforms: Iterable[Function]) -> None: ...
""",
    "Lambda": """\
    lambd: Callable[..., Any]
    moves: bool
    size: list[int] | Literal["any"] | None
    @property
    def name(self) -> str: ...
    def __init__(
        self,
        lambd: Callable[..., Any],
        *,
        moves: bool = True,
        size: int | tuple[int, int] | Literal["any"] | None = None,
    ) -> None: ...
""",
    "ToImage": """\
    def __init__(self) -> None: ...
""",
    "ToDtype": """\
    dtype: str
    scale: bool
    def __init__(self, dtype: Dtype, scale: bool = ...) -> None: ...
""",
}

TRANSFORMS_TAIL = """\
ToTensor = ToFloat
ImageNetNormalize = Normalize

def manual_seed(seed: int) -> None: ...
def dtype_name(dtype: Dtype) -> str: ...
def functions(transform: Any) -> dict[str, Callable[..., Any]]: ...
def moving(transform: Any) -> list[Lambda]: ...
def recipe(
    transform: Function | Sequence[Function] | Views | None,
    *,
    dtype: Dtype | None = ...,
    channels_last: bool | None = ...,
    decode_margin: float | None = ...,
    decode_mode: Literal["exact", "fast", "nvjpeg"] | None = ...,
    parity: Literal["pil", "tensor"] | None = ...,
    channels: int | None = ...,
    pixels: Dtype | None = ...,
    batch_transform: BatchTransform | Sequence[BatchTransform] = ...,
) -> Recipe: ...
def from_torchvision(transform: Any) -> Transform: ...
"""


def of_class(name: str, base: str) -> str:
    """Return the stub of one class, with its docstring."""
    parameters = inspect.signature(getattr(transforms, name)).parameters
    types = ANNOTATIONS[name]
    attributes = "".join(f"    {one}: {of_attribute(types[one])}\n" for one in parameters)
    listed = [f"{one}: {types[one]}{default_of(parameters[one])}" for one in parameters]
    line = f"    def __init__({', '.join(['self', *listed])}) -> None: ..."
    if len(line) > 100:
        rows = "".join(f"        {one},\n" for one in ["self", *listed])
        line = f"    def __init__(\n{rows}    ) -> None: ..."
    return f"class {name}({base}):\n{documented(name)}{attributes}{line}\n"


def documented(name: str) -> str:
    """Return the docstring of a class, indented."""
    text = inspect.getdoc(getattr(transforms, name)) or ""
    lines = text.splitlines()
    if len(lines) == 1:
        return f'    """{text}"""\n\n'
    body = "".join(f"    {line}\n" if line else "\n" for line in lines[1:])
    return f'    """{lines[0]}\n{body}    """\n\n'


def default_of(parameter: inspect.Parameter) -> str:
    """Return the default of a parameter as stubs have it."""
    return "" if parameter.default is inspect.Parameter.empty else " = ..."


def of_attribute(annotation: str) -> str:
    """Return the type of the attribute that a parameter becomes; any for one of several forms."""
    if annotation == "Iterable[Function]":
        return "list[Transform]"
    return annotation if annotation in ("bool", "float", "int") else "Any"


def of_transforms() -> str:
    """Return `transforms.pyi`."""
    bases = {"Compose": "Transform", "Lambda": "Transform", "ToImage": "Transform"}
    bases["ToDtype"] = "Transform"
    classes = [
        f"class {name}{f'({bases[name]})' if name in bases else ''}:\n{documented(name)}{body}"
        for name, body in WRITTEN.items()
    ]
    classes += [of_class(name, "Transform") for name in TABLE]
    classes += [of_class(name, "BatchTransform") for name in BATCH_TABLE]
    # Listed, so that `from .transforms import *` has types too.
    names = "".join(f'    "{name}",\n' for name in transforms.__all__)
    return "\n".join([TRANSFORMS_HEAD, *classes, TRANSFORMS_TAIL, f"__all__ = [\n{names}]\n"])


def of_native(generated: str) -> str:
    """Return `_native.pyi`, of what maturin has generated."""
    for old, new in REPLACED.items():
        if generated.count(old) != 1:
            raise SystemExit(f"not generated once, as REPLACED has it: {old}")
        generated = generated.replace(old, new)
    before, name, tensor = generated.partition("class Tensor:")
    for method in LEFT_OUT:
        # Up to the next line of the same depth.
        found = re.compile(rf"    def {method}\(.*\n(?: {{8}}.*\n|\n(?= {{8}}))*")
        tensor, count = found.subn("", tensor)
        if count != 1:
            raise SystemExit(f"generated {count} times: Tensor.{method}")
    generated = before + name + tensor
    head, exports, rest = generated.partition("__all__")
    listed, line, rest = rest.partition("\n\n")
    text = "# Written by stubs.py.\n" + head + IMPORTS + exports + listed + line + TYPES + rest
    return ruff(ruff(text, "check", "--fix", "--unsafe-fixes"), "format")


def ruff(text: str, *task: str) -> str:
    """Return what ruff makes of the text of `_native.pyi`."""
    name = ["--stdin-filename", str(PACKAGE / "_native.pyi"), "-"]
    command = [sys.executable, "-m", "ruff", *task, "--quiet", *name]
    run = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        raise SystemExit(run.stdout)
    return run.stdout


def main() -> None:
    """Write the files, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("generated", type=pathlib.Path)
    arguments = parser.parse_args()
    native = of_native(arguments.generated.read_text())
    for name, text in {"_native.pyi": native, "transforms.pyi": of_transforms()}.items():
        path = PACKAGE / name
        if not arguments.check:
            path.write_text(text)
        elif path.read_text() != text:
            raise SystemExit(f"{path} differs from the sources: `cargo xtask stubs` writes it")


if __name__ == "__main__":
    main()
