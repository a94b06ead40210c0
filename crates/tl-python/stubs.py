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
from turboloader._table import BATCH_TABLE, TABLE

PACKAGE = pathlib.Path(__file__).parent / "python" / "turboloader"

# What annotations in Rust name.
IMPORTS = """\
from collections.abc import Callable, Iterator, Mapping
from typing import Any, overload
import numpy.typing as npt
from ._parts import BatchPart
from .settings import Store
"""

# The methods behind operators that return this or that, for which PyO3 has no annotation.
OVERLOADS = {
    "def __getitem__(self, index: Any, /) -> Any:": [
        "def __getitem__(self, index: int, /) -> Tensor:",
        "def __getitem__(self, index: Any, /) -> Any:",
    ],
    "def __getitem__(self, key: Any, /) -> Any:": [
        "def __getitem__(self, key: int, /) -> dict[str, Any]:",
        "def __getitem__(self, key: slice, /) -> BatchPart:",
        "def __getitem__(self, key: str, /) -> Any:",
    ],
}

# The methods of `Tensor` that only raise errors with advice. Without them type checkers refuse what
# they refuse.
LEFT_OUT = ("__add__", "__getattr__", "__mul__", "__sub__", "__truediv__")

TRANSFORMS_HEAD = """\
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

class Views:
    count: int
    transform: Any
    def __init__(self, count: int, transform: Any) -> None: ...

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

TRANSFORMS_TAIL = """\
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
    channels: int | None = ...,
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
    attributes = "".join(
        f"    {parameter.name}: {of_attribute(parameter)}\n"
        for parameter in signature.parameters.values()
    )
    return f"class {name}({base}):\n{attributes}{listed}\n"


def of_attribute(parameter: inspect.Parameter) -> str:
    """Return the type of the attribute that a parameter becomes."""
    return "list[Transform]" if parameter.name == "transforms" else of_value(parameter)


def of_value(parameter: inspect.Parameter) -> str:
    """Return the type of a parameter, as narrow as its default says."""
    if parameter.name == "transforms":
        return "Iterable[Transform]"
    if isinstance(parameter.default, (bool, int)) and parameter.name != "fill":
        return type(parameter.default).__name__
    return "float" if parameter.name == "p" and parameter.default is not None else "Any"


def of_transforms() -> str:
    """Return `transforms.pyi`."""
    classes = [of_class(name, "Transform") for name in TABLE]
    classes += [of_class(name, "BatchTransform") for name in BATCH_TABLE]
    # Listed, so that `from .transforms import *` has types too.
    names = "".join(f'    "{name}",\n' for name in transforms.__all__)
    return "\n".join([TRANSFORMS_HEAD, *classes, TRANSFORMS_TAIL, f"__all__ = [\n{names}]\n"])


def of_native(generated: str) -> str:
    """Return `_native.pyi`, of what maturin has generated."""
    for signature, signatures in OVERLOADS.items():
        if generated.count(signature) != 1:
            raise SystemExit(f"not generated once, as OVERLOADS has it: {signature}")
        *others, last = [f"@overload\n    {signature}" for signature in signatures]
        overloads = "".join(f"{other} ...\n    " for other in others) + last
        generated = generated.replace(signature, overloads)
    before, name, tensor = generated.partition("class Tensor:")
    for method in LEFT_OUT:
        # Up to the next line of the same depth.
        found = re.compile(rf"    def {method}\(.*\n(?: {{8}}.*\n|\n(?= {{8}}))*")
        tensor, count = found.subn("", tensor)
        if count != 1:
            raise SystemExit(f"generated {count} times: Tensor.{method}")
    generated = before + name + tensor
    head, exports, rest = generated.partition("__all__")
    text = "# Written by stubs.py.\n" + head + IMPORTS + exports + rest
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
