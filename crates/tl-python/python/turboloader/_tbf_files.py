"""TBF segments as files: written from arrays, and searched by id."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._advice import advised
from .exceptions import SettingError

if TYPE_CHECKING:
    from ._tbf import Id

__all__ = ["FoundNode", "find_tbf", "write_tbf"]

VectorType = Literal["float32", "float16", "bfloat16", "int8"]
SegmentCompression = Literal["none", "lz4", "zstd"]

_OUTCOMES: Final = ("pending", "success", "failure", "partial")
_RELATIONS: Final = ("causal", "temporal", "dependency", "retry", "branch")
_COLUMNS: Final = (
    "id",
    "timestamp",
    "context_hash",
    "confidence",
    "outcome_status",
    "embedding",
    "text",
)
_EDGES: Final = ("source", "target", "relation", "weight")
# Rows that are handed over together, unless vectors are long.
_ROWS: Final = 65_536
_BYTES: Final = 16 << 20


class FoundNode(NamedTuple):
    """The place of a node in many segments.

    Attributes
    ----------
    path : str
        The segment.
    segment : int
        The number of the segment, the oldest being 0.
    row : int
        The row in the segment.
    """

    path: str
    segment: int
    row: int


@advised
def write_tbf(
    path: str | os.PathLike[str],
    columns: Mapping[str, Any],
    *,
    edges: Mapping[str, Any] | None = None,
    dtype: VectorType = "float32",
    compression: SegmentCompression = "none",
    index: bool = True,
    reverse: bool = False,
    key: bytes | None = None,
    segment_id: int = 0,
    overwrite: bool = False,
    sync: bool = True,
) -> int:
    """Write a TBF segment and return its bytes. The file appears when it is complete.

    Parameters
    ----------
    path
        The file.
    columns
        A dict of arrays or lists of one length, or a ``pyarrow.Table``:

        ================== ==========================================================
        ``id``             UUIDs: ``uuid.UUID``, texts, 16 bytes each, or an array of ``uint8``
                           of shape (rows, 16). It is needed.
        ``timestamp``      nanoseconds since 1970, or ``datetime64``; 0 by default
        ``context_hash``   64 bits; 0 by default
        ``confidence``     a float of 32 bits; 1 by default
        ``outcome_status`` 0 to 255 or names; ``"pending"`` by default
        ``embedding``      vectors: an array of floats of shape (rows, components)
        ``text``           texts, None for a missing one
        ================== ==========================================================
    edges
        A dict of arrays or lists, or a table: ``source`` and ``target``, which are rows;
        ``relation``, codes or names, ``"causal"`` by default; ``weight``, 1 by default.
    dtype
        The type of stored vector components. Numbers are rounded to the nearest.
    compression
        ``"lz4"`` or ``"zstd"`` for parts that become smaller.
    index
        Whether to store an index over ids and times.
    reverse
        Whether to store the edges by their targets, too.
    key
        32 bytes, to encrypt the segment. It is in memory until it is complete then.
    segment_id
        A number for the segment.
    overwrite
        Whether to replace the file if it exists.
    sync
        Whether to wait until the data is on the disk.

    Raises
    ------
    SettingError
        For an unknown column, or one of another length, shape or type.
    FormatError
        For two nodes with one id, a number that ``dtype`` cannot hold, or an edge to a row that
        does not exist.
    StorageError
        If the file cannot be written.

    Examples
    --------
    >>> import uuid
    >>> columns = {
    ...     "id": [uuid.UUID(int=1), uuid.UUID(int=2)],
    ...     "embedding": np.eye(2, dtype=np.float32),
    ...     "text": ["first", "second"],
    ... }
    >>> write_tbf("new.tbf", columns, edges={"source": [0], "target": [1]}, overwrite=True) > 0
    True
    """
    given = _given(columns, _COLUMNS, "columns")
    if "id" not in given:
        raise SettingError("columns has no id: expected the UUID of each node")
    ids = _ids(given["id"])
    rows = len(ids)
    vectors = _vectors(given.get("embedding"), rows)
    parts = {
        "ids": ids,
        "timestamps": _times(given.get("timestamp"), rows),
        "context_hashes": _integers("context_hash", given.get("context_hash"), rows, "<u8"),
        "confidences": _floats("confidence", given.get("confidence"), rows),
        "outcomes": _codes("outcome_status", given.get("outcome_status"), rows, _OUTCOMES),
        "vectors": vectors,
    }
    texts = None if given.get("text") is None else _texts(given["text"], rows)
    added = None if edges is None else _edges(_given(edges, _EDGES, "edges"))
    settings = {
        "dtype": dtype,
        "compression": compression,
        "key": None if key is None else list(key),
        "index": index,
        "reverse": reverse,
        "segment_id": segment_id,
        "overwrite": overwrite,
        "sync": sync,
    }
    writer = _native.TbfWriter(os.fspath(path), vectors.shape[1], settings)
    step = max(1, min(_ROWS, _BYTES // max(1, vectors.shape[1] * 4)))
    for start in range(0, rows, step):
        some = slice(start, start + step)
        nodes: dict[str, Any] = {name: part[some].tobytes() for name, part in parts.items()}
        writer.push({**nodes, "texts": None if texts is None else texts[some]})
    if added is not None:
        writer.push_edges({name: part.tobytes() for name, part in added.items()})
    return writer.finish()


@advised
def find_tbf(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    id: Id,
    *,
    key: bytes | None = None,
) -> FoundNode | None:
    """Return the place of the newest node with this id, or None.

    Only segments whose filter may contain the id are searched, the last one first.

    Parameters
    ----------
    paths
        Segments, or folders with nothing else, the oldest first; those of a folder by their names.
    id
        A ``uuid.UUID``, its text, or its 16 bytes.
    key
        The 32 bytes of the key, of encrypted segments.

    Examples
    --------
    >>> find_tbf(["nodes.tbf"], bytes(16))
    FoundNode(path='nodes.tbf', segment=0, row=0)
    """
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    secret = None if key is None else list(key)
    found = _native.find_tbf([os.fspath(path) for path in several], list(_id(id, 0)), secret)
    return None if found is None else FoundNode(os.fspath(found[0]), found[1], found[2])


def _given(columns: Any, known: Sequence[str], what: str) -> dict[str, Any]:
    """Return columns by name, those of a table of pyarrow as NumPy arrays and lists."""
    if hasattr(columns, "column_names"):
        columns = {name: _of_arrow(columns[name]) for name in columns.column_names}
    elif hasattr(columns, "indptr"):
        nodes = np.arange(len(columns.indptr) - 1)
        ends = np.asarray(columns.indptr, np.int64)
        sources = np.repeat(nodes, ends[1:] - ends[:-1])
        columns = {
            "source": sources,
            "target": columns.indices,
            "relation": columns.relations,
            "weight": columns.data,
        }
    for name in columns:
        if name not in known:
            raise SettingError(f"{what} has {name!r}: expected some of {', '.join(known)}")
    return dict(columns)


def _of_arrow(column: Any) -> Any:
    """Return a column of pyarrow as an array where it has numbers, otherwise as a list."""
    if column.null_count:
        return column.to_pylist()
    kind = str(column.type)
    if kind.startswith(("fixed_size_list", "list", "large_list")):
        lists = column.to_pylist()
        lengths = {len(one) for one in lists}
        if len(lengths) > 1:
            raise SettingError(
                f"embedding has vectors of {min(lengths)} and {max(lengths)} numbers"
            )
        return np.asarray(lists, np.float64 if "double" in kind else np.float32)
    if kind in ("string", "large_string", "string_view") or kind.startswith("fixed_size_binary"):
        return column.to_pylist()
    return column.to_numpy()


def _id(one: Any, row: int) -> bytes:
    if isinstance(one, uuid.UUID):
        return one.bytes
    if isinstance(one, bytes) and len(one) == 16:
        return one
    if isinstance(one, str):
        try:
            return uuid.UUID(one).bytes
        except ValueError:
            pass
    raise SettingError(f"id of row {row} is {one!r}, expected a UUID")


def _ids(ids: Any) -> npt.NDArray[Any]:
    if isinstance(ids, np.ndarray) and ids.dtype == np.uint8:
        if ids.ndim != 2 or ids.shape[1] != 16:
            raise SettingError(f"id has shape {ids.shape}, expected (rows, 16)")
        return np.ascontiguousarray(ids)
    joined = b"".join(_id(one, row) for row, one in enumerate(ids))
    return np.frombuffer(joined, np.uint8).reshape(-1, 16)


def _array(name: str, values: Any, rows: int) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.shape != (rows,):
        raise SettingError(f"{name} has shape {array.shape}, expected ({rows},)")
    return array


def _integers(name: str, values: Any, rows: int, dtype: str) -> npt.NDArray[Any]:
    if values is None:
        return np.zeros(rows, dtype)
    if not isinstance(values, np.ndarray) and all(isinstance(one, int) for one in values):
        # NumPy makes floats of integers of which some need all 64 bits.
        values = np.fromiter(values, object, len(values))
    array = _array(name, values, rows)
    if rows and array.dtype.kind not in "iuO":
        raise SettingError(f"{name} has {array.dtype} values, expected whole numbers")
    wrong = [one for one in array if not isinstance(one, int)] if array.dtype == object else []
    if wrong:
        raise SettingError(f"{name} has {wrong[0]!r}, expected whole numbers")
    most = int(np.iinfo(dtype).max)
    if rows and (int(array.min()) < 0 or int(array.max()) > most):
        outside = int(array.min()) if int(array.min()) < 0 else int(array.max())
        raise SettingError(f"{name} has {outside}, expected 0 to {most}")
    return array.astype(dtype)


def _times(values: Any, rows: int) -> npt.NDArray[Any]:
    if values is not None:
        array = _array("timestamp", values, rows)
        if array.dtype.kind == "M":
            if np.isnat(array).any():
                raise SettingError("timestamp has a missing time, expected a time in each row")
            values = array.astype("datetime64[ns]").view(np.int64)
    return _integers("timestamp", values, rows, "<u8")


def _floats(name: str, values: Any, rows: int) -> npt.NDArray[Any]:
    if values is None:
        return np.ones(rows, "<f4")
    array = _array(name, values, rows)
    if rows and array.dtype.kind not in "fiu":
        raise SettingError(f"{name} has {array.dtype} values, expected numbers")
    return _single(name, array)


def _single(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(array, "<f4")
    if bool((np.isinf(single) & np.isfinite(array.astype(np.float64))).any()):
        raise SettingError(f"{name} has a number that a float of 32 bits cannot hold")
    return single


def _codes(name: str, values: Any, rows: int, names: Sequence[str]) -> npt.NDArray[Any]:
    if values is not None:
        array = _array(name, values, rows)
        if array.dtype.kind in "UO":
            for one in array:
                if one not in names:
                    raise SettingError(
                        f"{name} has {str(one)!r}, expected one of {', '.join(names)}"
                    )
            values = np.array([names.index(str(one)) for one in array], np.uint8)
    return _integers(name, values, rows, "|u1")


def _vectors(values: Any, rows: int) -> npt.NDArray[Any]:
    if values is None:
        return np.zeros((rows, 0), "<f4")
    array = np.asarray(values)
    if array.ndim != 2 or len(array) != rows:
        raise SettingError(f"embedding has shape {array.shape}, expected ({rows}, components)")
    if rows and array.dtype.kind not in "fiu":
        raise SettingError(f"embedding has {array.dtype} values, expected numbers")
    return _single("embedding", array)


def _texts(values: Any, rows: int) -> list[str | None]:
    texts = list(values)
    if len(texts) != rows:
        raise SettingError(f"text has {len(texts)} values, expected {rows}")
    for row, text in enumerate(texts):
        if text is not None and not isinstance(text, str):
            raise SettingError(f"text of row {row} is {text!r}, expected a string or None")
    return [None if text is None else str(text) for text in texts]


def _edges(given: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    for name in ("source", "target"):
        if name not in given:
            raise SettingError(f"edges has no {name}: expected the row of a node for each edge")
    rows = len(given["source"])
    return {
        "sources": _integers("source", given["source"], rows, "<u4"),
        "targets": _integers("target", given["target"], rows, "<u4"),
        "relations": _codes("relation", given.get("relation"), rows, _RELATIONS),
        "weights": _floats("weight", given.get("weight"), rows),
    }
