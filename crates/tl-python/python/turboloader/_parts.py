"""Parts and copies of batches, batches on a device, and batches that are unpacked."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, overload

from ._native import Tensor
from .exceptions import LoaderError

if TYPE_CHECKING:
    from ._native import TensorField, Values
else:
    Values = TypeVar("Values", covariant=True)

Got = TypeVar("Got", covariant=True)

_UNPACK: Final = dis.opmap["UNPACK_SEQUENCE"]

Fields = dict[str, Any]


class BatchPart(Generic[Values]):
    """Some samples of a `Batch`, or the copy of one that another process sent.

    It has the fields and the methods of a `Batch`: ``part["image"]``, ``part[0]``, ``part[2:4]``,
    ``part.torch()`` and so on. A slice of adjacent samples shares the memory of the batch.
    """

    def __init__(self, number: int, fields: Fields, form: str) -> None:
        self._number, self._fields, self._form = number, fields, form

    @property
    def number(self) -> int:
        """The number of the batch in its epoch, from 0."""
        return self._number

    def __len__(self) -> int:
        return len(self._fields["index"])

    def keys(self) -> list[str]:
        """Return the names of the fields."""
        return list(self._fields)

    def values(self) -> list[Any]:
        """Return the fields."""
        return [self[name] for name in self._fields]

    def items(self) -> list[tuple[str, Any]]:
        """Return the fields with their names."""
        return [(name, self[name]) for name in self._fields]

    def get(self, name: str, default: Any = None) -> Any:
        """Return field ``name``, or ``default`` if the batch lacks it."""
        return self[name] if name in self._fields else default

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> BatchPart[Values]: ...
    @overload
    def __getitem__(self, key: TensorField) -> Values: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            if key not in self._fields:
                raise KeyError(f"{key}: a batch has {', '.join(self._fields)}")
            return _formed(self._fields[key], self._form)
        rows = range(len(self))
        if isinstance(key, slice):
            return part(self._number, self._fields, self._form, key)
        try:
            return self._sample(rows[key])
        except IndexError:
            raise IndexError(f"sample {key} of {len(self)}") from None

    def _sample(self, row: int) -> dict[str, Any]:
        form = "numpy" if self._form == "tensor" else self._form
        sample = {}
        for name, values in self._fields.items():
            if isinstance(values, Tensor) and values.ndim == 1:
                sample[name] = values.item(row)
            else:
                sample[name] = _formed(values[row], form)
        return sample

    def __iter__(self) -> Iterator[dict[str, Any]]:
        refuse_unpacking(self.keys())
        return map(self._sample, range(len(self)))

    def __getattr__(self, name: str) -> Any:
        # Not by way of `self._fields`, which is not there while an object is copied.
        fields: Fields = self.__dict__.get("_fields", {})
        if name in fields:
            return self[name]
        raise AttributeError(f"a batch has no attribute {name!r}: its fields are {[*fields]}")

    def record_stream(self, stream: Any) -> None:
        """Tell a batch on a device that a stream reads it, as for a `Batch`."""
        for value in self._fields.values():
            if isinstance(value, Tensor):
                value.record_stream(stream)

    def numpy(self) -> dict[str, Any]:
        """Return the fields as a dict of NumPy arrays that share the memory."""
        return self._as("numpy")

    def torch(self) -> dict[str, Any]:
        """Return the fields as a dict of ``torch.Tensor`` that share the memory."""
        return self._as("torch")

    def jax(self) -> dict[str, Any]:
        """Return the fields as a dict of ``jax.Array`` that share the memory."""
        return self._as("jax")

    def tf(self) -> dict[str, Any]:
        """Return the fields as a dict of ``tf.Tensor`` that share the memory."""
        return self._as("tf")

    def tensors(self) -> dict[str, Any]:
        """Return the fields as a dict of `Tensor`."""
        return dict(self._fields)

    def to(self, device: Any, non_blocking: bool = True) -> dict[str, Any]:
        """Return the fields as tensors of torch on a device, as `Batch.to` does."""
        return to_device(self.torch(), device, non_blocking, self.record_stream)

    def _as(self, form: str) -> dict[str, Any]:
        return {name: _formed(values, form) for name, values in self._fields.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._number, self._fields, self._form)

    def __repr__(self) -> str:
        return f"BatchPart(number={self._number}, samples={len(self)}, fields={self.keys()})"


def part(number: int, fields: Fields, form: str, rows: slice) -> BatchPart:
    """Return some samples of a batch."""

    def taken(values: Any) -> Any:
        count = len(values)
        return values.rows(range(count)[rows]) if isinstance(values, Tensor) else values[rows]

    return BatchPart(number, {name: taken(values) for name, values in fields.items()}, form)


def _formed(values: Any, form: str) -> Any:
    """Return tensors as another library has them; lists of them too."""
    if isinstance(values, list):
        return [_formed(value, form) for value in values]
    if isinstance(values, Tensor) and form != "tensor":
        return getattr(values, form)()
    return values


def to_device(
    fields: Mapping[str, Any], device: Any, non_blocking: bool, record_stream: Callable[[Any], None]
) -> dict[str, Any]:
    """Copy tensors of torch to a device, by way of pinned memory where it has some.

    ``record_stream`` tells pinned memory of a loader that the copies of a stream read it.
    """
    import torch

    target = torch.device(device)
    is_pinned = target.type == "cuda"

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(one) for one in value]
        if not isinstance(value, torch.Tensor):
            return value
        # A tensor of a device is copied from there, and pinned memory from where it is.
        source = value.pin_memory() if is_pinned and not value.is_cuda else value
        return source.to(target, non_blocking=non_blocking)

    if is_pinned and non_blocking and not any(_is_on_device(value) for value in fields.values()):
        try:
            record_stream(torch.cuda.current_stream(target))
        except LoaderError:
            # A stream of another device than the memory was pinned with.
            non_blocking = False
    return {name: moved(value) for name, value in fields.items()}


def _is_on_device(value: Any) -> bool:
    return bool(getattr(value, "is_cuda", False))


def refuse_unpacking(names: Sequence[str]) -> None:
    """Refuse ``images, labels = batch``, which would be two samples of a batch of two.

    Called by the method behind ``iter``, whose caller is the frame two above.
    """
    frame: FrameType | None = sys._getframe(1)
    if frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None or frame.f_lasti < 0:
        return
    if frame.f_code.co_code[frame.f_lasti] == _UNPACK:
        raise TypeError(
            'a batch cannot be unpacked: pass fields=("image", "label") to DataLoader for '
            f'batches that are pairs, or take fields by name, such as batch["image"] ('
            f"it has {', '.join(names)}); list(batch) is a list of its samples"
        )


class Batches(Protocol[Got]):
    """The batches of an iteration, or what was asked for of each."""

    def __iter__(self) -> Iterator[Got]: ...

    def __next__(self) -> Got: ...

    def next(self, timeout: float | None = None) -> Got:
        """Return the next batch, which is waited for at most ``timeout`` seconds.

        0 takes only a batch that is ready, None waits for as long as it takes. One thread may take
        batches at a time: a call waits for that of another thread first.

        Raises
        ------
        StopIteration
            After the last batch.
        BatchTimeoutError
            If the time is over. It is a ``TimeoutError``. The batch is then that of the next call.
        """
        ...


class Picked:
    """The batches of an epoch, as the fields that were asked for."""

    def __init__(self, epoch: Any, pick: Callable[[Any], Any]) -> None:
        self._epoch, self._pick = epoch, pick

    def __iter__(self) -> Picked:
        return self

    def __next__(self) -> Any:
        return self._pick(next(self._epoch))

    def next(self, timeout: float | None = None) -> Any:
        """Return the next batch as the epoch's ``next`` does, as the fields."""
        return self._pick(self._epoch.next(timeout))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._epoch, name)


def picker(fields: Sequence[str] | Mapping[str, str]) -> Callable[[Any], Any]:
    """Return the function of a batch that returns these fields: a tuple, or a dict of new names."""
    if isinstance(fields, Mapping):
        renamed = dict(fields)
        return lambda batch: {name: batch[field] for name, field in renamed.items()}
    listed = tuple(fields)
    return lambda batch: tuple(batch[field] for field in listed)
