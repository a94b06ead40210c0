"""IDV files: ML.NET's tables of typed columns, as arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._advice import advised
from ._paths import shown
from .exceptions import SettingError
from .settings import StoreLike, as_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = ["IdvColumn", "IdvFile", "SparseRows"]

_TIME_UNITS = ("us", "ns")

_UNIX_EPOCH_TICKS = 621_355_968_000_000_000
_TICKS_PER_MINUTE = 600_000_000
_MISSING_TICKS = np.iinfo(np.int64).min


@dataclass(frozen=True)
class IdvColumn:
    """The description of a column in an IDV file.

    Attributes
    ----------
    name : str
        The name; several columns can have the same, of which the last one counts.
    item : str or None
        What single values are: ``"Single"``, ``"Text"``, ``"Key"`` and so on. None where nothing is
        known of them.
    codec : str or None
        How values are stored, in words.
    compression : str or None
        ``"none"``, ``"DEFLATE"`` or ``"zlib"``.
    rows_per_block : int
        Rows of a block.
    dimensions : tuple of int or None
        Those of vectors; None for single values. Empty or with a 0 where lengths differ.
    key_count : int or None
        How many categories a key has.
    unreadable : str or None
        Why the values cannot be read; None where they can.
    """

    name: str
    rows_per_block: int
    item: str | None = None
    codec: str | None = None
    compression: str | None = None
    dimensions: tuple[int, ...] | None = None
    key_count: int | None = None
    unreadable: str | None = None


class SparseRows(NamedTuple):
    """Vectors as compressed sparse rows, which ``scipy.sparse.csr_array`` takes as they are.

    Examples
    --------
    >>> import scipy.sparse
    >>> rows = IdvFile("table.idv").sparse("sparse")
    >>> matrix = scipy.sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
    >>> matrix.nnz
    100
    """

    data: npt.NDArray[Any]
    indices: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    shape: tuple[int, int]


class IdvFile:
    """An open IDV file.

    It works as a table with every library that has Arrow's C interface: ``pyarrow.table(file)`` and
    ``polars.DataFrame(file)`` take it, without columns that cannot be read. Sparse vectors are
    filled up for them.

    Parameters
    ----------
    path
        The file.
    time_unit
        The unit of times for Arrow: ``"us"``, which has every year of .NET, or ``"ns"``, which has
        every tick of 100 ns but only the years 1678 to 2261. What has no place is an error.
    store
        A `Store`: how stores that URLs name are read. A file in a store is read block by block.

    Examples
    --------
    >>> file = IdvFile("table.idv")
    >>> file.names[-4:]
    ['Label', 'text', 'dense', 'sparse']
    >>> file["dense"].shape
    (100, 2, 3)
    """

    @advised
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        time_unit: str = "us",
        store: StoreLike = None,
    ) -> None:
        if time_unit not in _TIME_UNITS:
            raise SettingError(f"time_unit is {time_unit}, expected us or ns")
        self._path, self._time_unit = shown(os.fspath(path)), time_unit
        self._native = _native.IdvFile(os.fspath(path), as_store(store))
        self._schema = [_column(described) for described in self._native.columns()]

    def __len__(self) -> int:
        """Return how many rows every column has."""
        return self._native.row_count

    @property
    def schema(self) -> list[IdvColumn]:
        """The columns, including those that cannot be read."""
        return list(self._schema)

    @property
    def names(self) -> list[str]:
        """The names of the columns that can be read, each once."""
        readable = [column.name for column in self._schema if column.unreadable is None]
        return [name for name in dict.fromkeys(readable) if self._readable(name)]

    def _readable(self, name: str) -> bool:
        return self._schema[self._place(name)].unreadable is None

    def _place(self, column: str | int) -> int:
        if isinstance(column, (int, np.integer)):
            if not 0 <= column < len(self._schema):
                raise SettingError(f"{self._path}: no column {column}, it has {len(self._schema)}")
            return int(column)
        place = self._native.find(column)
        if place is None:
            names = ", ".join(repr(one.name) for one in self._schema)
            raise SettingError(f"{self._path}: no column {column!r}; its columns are {names}")
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, column: str | int) -> npt.NDArray[Any]:
        return self.column(column)

    def column(
        self, column: str | int, start: int = 0, stop: int | None = None
    ) -> npt.NDArray[Any]:
        """Return the values of a column, or of some of its rows.

        Numbers that lie uncompressed and in one piece in the file are not copied: the array is then
        read-only, keeps the file mapped, and reads as zeros from where the file is cut short.

        ================  =============================================================
        values            array
        ================  =============================================================
        numbers           of their type
        keys              as stored: from 1 on, 0 for a missing one (see `key_values`)
        booleans          ``bool``; ``uint8`` with 2 for a missing one in older files
        spans             ``timedelta64[100ns]``
        points of time    ``datetime64[100ns]``, in UTC where the file has an offset
        row ids           two ``uint64`` a row, the lower half first
        text              objects, None for a missing one
        vectors           a dimension more, what sparse ones leave out being 0; an array of
                          arrays where lengths differ
        ================  =============================================================

        Parameters
        ----------
        column
            The name, or the number.
        start, stop
            The rows; all by default.

        Raises
        ------
        SettingError
            For a column that is not there, or of which nothing is known.
        FormatError
            For damaged values.
        """
        place = self._place(column)
        described = self._schema[place]
        if start == 0 and stop is None:
            lent = self._native.lend(place)
            if lent is not None:
                array = lent.numpy()
                return _meant(array if array.ndim == 1 else _shaped(array, described), described)
        stop = len(self) if stop is None else stop
        parts = self._native.read(place, start, stop)
        if isinstance(parts, dict):
            return _vectors(parts, described, stop - start)
        return _meant(_raw(parts), described)

    def sparse(self, column: str | int) -> SparseRows:
        """Return a column of vectors as compressed sparse rows, without what they leave out.

        Raises
        ------
        SettingError
            For a column that does not hold vectors of numbers.
        """
        place = self._place(column)
        parts = self._native.read(place, 0, len(self))
        if not isinstance(parts, dict) or not isinstance(parts["items"], _native.Tensor):
            raise SettingError(f"{self._path}: column {column!r} does not hold vectors of numbers")
        items = _raw(parts["items"])
        if "length" in parts:
            length = parts["length"]
            slots = np.tile(np.arange(length, dtype=np.int64), len(self))
            ends = np.arange(len(self) + 1, dtype=np.int64) * length
        else:
            slots, ends = parts["slots"].numpy(), parts["ends"].numpy()
            length = int(parts["lengths"].numpy().max(initial=0))
        return SparseRows(items, slots, ends, (len(self), length))

    def metadata(self, column: str | int) -> dict[str, Any]:
        """Return a column's metadata by kind; what cannot be read is left out (see `verify`)."""
        found = self._native.metadata(self._place(column))
        return {kind: _metadata(entry) for kind, entry in found.items() if "value" in entry}

    def slot_names(self, column: str | int) -> list[str | None] | None:
        """Return the names of a vector's slots, or None where it has none."""
        names = self.metadata(column).get("SlotNames")
        return None if names is None else list(names.reshape(-1))

    def key_values(self, column: str | int) -> npt.NDArray[Any] | None:
        """Return what a key's numbers stand for, that of 1 first, or None where nothing says so."""
        values: npt.NDArray[Any] | None = self.metadata(column).get("KeyValues")
        return values

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        """Return columns as a ``pandas.DataFrame``: all that can be read, unless some are named.

        Keys become categories, or ``Int64`` from 0 on where nothing names them; booleans that can
        be missing ``boolean``; times microseconds, rounded down; and vectors an array in each row.
        """
        import pandas as pd

        names = self.names if columns is None else list(columns)
        series = {name: self._series(pd, name) for name in names}
        return pd.DataFrame(series, index=range(len(self)))

    def _series(self, pd: Any, name: str) -> Any:
        described = self._schema[self._place(name)]
        values = self.column(name)
        if described.dimensions is not None:
            rows = np.empty(len(values), object)
            rows[:] = list(values)
            return rows
        if described.item == "Key":
            categories = self.key_values(name)
            # Below the count, so nothing wraps; the missing one becomes -1.
            numbers = values.astype(np.int64) - 1
            if categories is None or len(set(categories)) < len(categories):
                return pd.arrays.IntegerArray(numbers, values == 0)
            return pd.Categorical.from_codes(numbers, categories)
        if described.item == "DvBool":
            return pd.arrays.BooleanArray(values == 1, values == 2)
        if values.dtype.kind in "mM":
            return values.astype(f"{values.dtype.kind}8[us]")
        return list(values) if values.ndim > 1 else values

    def __arrow_c_schema__(self) -> Any:
        """Return the schema as a capsule of Arrow's C data interface."""
        return self._native.arrow_schema(self._time_unit)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as a capsule of Arrow's C stream interface, in the file's own types."""
        return self._native.arrow_stream(self._time_unit)

    def __repr__(self) -> str:
        return f"IdvFile({self._path!r}, rows={len(self)}, columns={len(self._schema)})"


def _column(described: dict[str, Any]) -> IdvColumn:
    dimensions = described.pop("dimensions", None)
    return IdvColumn(
        dimensions=None if dimensions is None else tuple(dimensions),
        **described,
    )


def _metadata(entry: dict[str, Any]) -> Any:
    described = IdvColumn("", 1, item=entry["item"], dimensions=() if entry["is_vector"] else None)
    parts = entry["value"]
    if isinstance(parts, dict):
        return _vectors(parts, described, 1)[0]
    return _meant(_raw(parts), described)[0]


def _raw(parts: Any) -> Any:
    """Return numbers as an array, texts as objects, and a pair of tensors as a pair of arrays."""
    if isinstance(parts, tuple):
        return tuple(part.numpy() for part in parts)
    if isinstance(parts, list):
        texts = np.empty(len(parts), object)
        texts[:] = parts
        return texts
    return parts.numpy()


def _meant(raw: Any, described: IdvColumn) -> npt.NDArray[Any]:
    """Return what stored values mean."""
    item = described.item
    if item == "Boolean":
        return raw.view(np.bool_)  # type: ignore[no-any-return]
    if item == "TimeSpan":
        # The least number is a missing one in both.
        return raw.view("timedelta64[100ns]")  # type: ignore[no-any-return]
    if item == "DateTimeOffset":
        ticks, minutes = raw
        utc = ticks - minutes.astype(np.int64) * _TICKS_PER_MINUTE
        return _point(np.where(ticks == _MISSING_TICKS, ticks, utc))
    if item == "DateTime":
        return _point(raw)
    return raw  # type: ignore[no-any-return]


def _point(ticks: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    missing = ticks == _MISSING_TICKS
    since_1970 = np.where(missing, ticks, np.where(missing, 0, ticks) - _UNIX_EPOCH_TICKS)
    return since_1970.view("datetime64[100ns]")


def _shaped(array: Any, described: IdvColumn) -> Any:
    sides = described.dimensions or ()
    if len(sides) > 1 and int(np.prod(sides)) == array.shape[1]:
        return array.reshape(len(array), *sides)
    return array


def _vectors(parts: dict[str, Any], described: IdvColumn, rows: int) -> npt.NDArray[Any]:
    items = _raw(parts["items"])
    pair = isinstance(items, tuple)
    arrays = items if pair else (items,)
    if "length" in parts:
        shape = (rows, parts["length"], *arrays[0].shape[1:])
        dense = tuple(array.reshape(shape) for array in arrays)
    else:
        lengths = parts["lengths"].numpy()
        ends, slots = parts["ends"].numpy(), parts["slots"].numpy()
        if len(set(lengths.tolist())) > 1:
            return _ragged(arrays, (lengths, ends, slots), described, pair)
        length = int(lengths[0]) if rows else 0
        dense = tuple(_dense(array, (length, ends, slots)) for array in arrays)
    return _meant(
        tuple(map(_shape_of(described), dense)) if pair else _shaped(dense[0], described), described
    )


def _shape_of(described: IdvColumn) -> Any:
    return lambda array: _shaped(array, described)


def _dense(array: npt.NDArray[Any], rows: tuple[int, Any, Any]) -> npt.NDArray[Any]:
    length, ends, slots = rows
    count = len(ends) - 1
    dense: npt.NDArray[Any] = np.zeros((count, length, *array.shape[1:]), array.dtype)
    if array.dtype == object:
        dense[:] = ""
    dense[np.repeat(np.arange(count), np.diff(ends)), slots] = array
    return dense


def _ragged(
    arrays: tuple[Any, ...], rows: tuple[Any, Any, Any], described: IdvColumn, pair: bool
) -> npt.NDArray[Any]:
    lengths, ends, slots = rows
    out = np.empty(len(lengths), object)
    for row, length in enumerate(lengths.tolist()):
        part = slice(ends[row], ends[row + 1])
        one = (length, np.array([0, ends[row + 1] - ends[row]]), slots[part])
        dense = tuple(_dense(array[part], one)[0] for array in arrays)
        out[row] = _meant(dense if pair else dense[0], described)
    return out
