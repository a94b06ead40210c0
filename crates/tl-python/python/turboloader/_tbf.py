"""TBF segments: the nodes of a graph, with vectors, columns and edges, where they lie."""

from __future__ import annotations

import datetime
import importlib
import os
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native
from ._advice import advised
from ._native import Tensor
from ._paths import shown
from .exceptions import SampleIndexError, SettingError
from .settings import StoreLike, as_store

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Edges", "Nearest", "TbfSegment"]

Id = uuid.UUID | str | bytes
# Timestamps are unsigned and have eight bytes.
_LAST_TIME = (1 << 64) - 1

Time = int | str | datetime.datetime | np.datetime64


class Edges(NamedTuple):
    """Edges as compressed sparse rows: those of node ``i`` are ``indptr[i]:indptr[i + 1]``.

    Attributes
    ----------
    indptr, indices : numpy.ndarray
        Row pointers, and the node at the other end of each edge; of one type.
    data : numpy.ndarray
        The weights.
    relations : numpy.ndarray
        What each edge means: 0 causal, 1 temporal, 2 dependency, 3 retry, 4 branch.
    """

    indptr: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    data: npt.NDArray[np.float32]
    relations: npt.NDArray[np.uint8]

    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array`` of the weights that shares these arrays."""
        sparse = importlib.import_module("scipy.sparse")
        nodes = len(self.indptr) - 1
        parts = (self.data, self.indices, self.indptr)
        return sparse.csr_array(parts, shape=(nodes, nodes))


class Nearest(NamedTuple):
    """Rows and their scores, the nearest first."""

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]


class TbfSegment:
    """An open segment.

    What lies in the file as it is, is not copied: arrays of columns and vectors are read-only, keep
    the file mapped, and read as zeros from where the file is cut short. Regions that are compressed
    or encrypted are unpacked when the segment is opened.

    Parameters
    ----------
    path
        The file.
    key
        The 32 bytes of the key, of an encrypted segment.
    store
        A `Store`: how stores that URLs name are read. A segment in a store is read into memory.

    Examples
    --------
    >>> segment = TbfSegment("nodes.tbf")
    >>> segment.embeddings.numpy().shape
    (20, 5)
    >>> rows, scores = segment.similar(17, k=4)
    >>> segment.edges().indptr[:4].tolist()
    [0, 2, 4, 6]
    """

    @advised
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes | None = None,
        store: StoreLike = None,
    ) -> None:
        self._path, secret = shown(os.fspath(path)), None if key is None else list(key)
        self._native = _native.TbfSegment(os.fspath(path), secret, as_store(store))

    def __len__(self) -> int:
        """Return how many nodes there are."""
        return self._native.node_count

    @property
    def edge_count(self) -> int:
        """How many edges are stored."""
        return self._native.edge_count

    @property
    def dim(self) -> int:
        """Components of each vector."""
        return self._native.dim

    @property
    def dtype(self) -> str:
        """The type of vector components: ``float32``, ``float16``, ``bfloat16`` or ``int8``."""
        return self._native.dtype

    @property
    def regions(self) -> list[str]:
        """The parts that the segment has."""
        return self._native.regions

    @property
    def embeddings(self) -> Tensor:
        """The components of all vectors as they are stored, one vector a row.

        Those of ``int8`` are codes: ``scale * (code - zero_point)`` with `quantization`. NumPy has
        no ``bfloat16``, torch and JAX have.
        """
        return self._native.embeddings()

    @property
    def quantization(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Scale and zero point of every vector of ``int8``."""
        scales, zero_points = self._native.quantization()
        return scales.numpy(), zero_points.numpy()

    def vectors(self) -> npt.NDArray[np.float32]:
        """Return all vectors as ``float32``, whatever they are stored as: a copy."""
        return self._native.decoded().numpy()

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return a column where it lies in the file.

        Parameters
        ----------
        name
            ``"id"``, 16 bytes a row; ``"timestamp"``, nanoseconds since 1970; ``"context_hash"``;
            ``"confidence"``; or ``"outcome_status"``.
        """
        return self._native.column(name).numpy()

    __getitem__ = column

    @property
    def times(self) -> npt.NDArray[np.datetime64]:
        """The timestamps as ``datetime64[ns]``, where they lie in the file."""
        return self.column("timestamp").view("datetime64[ns]")

    def id(self, row: int) -> uuid.UUID:
        """Return the id of a node."""
        return uuid.UUID(bytes=self.column("id")[row].tobytes())

    def text(self, row: int) -> str:
        """Return the text of a node."""
        return self._native.text(row)

    def edges(self, *, incoming: bool = False) -> Edges:
        """Return the edges by the node that they leave, or that they reach.

        They are copied: a file has target, relation and weight of each edge side by side.

        Parameters
        ----------
        incoming
            Whether to take them from the reverse index, where the segment has one.
        """
        return Edges(*(part.numpy() for part in self._native.edges(incoming)))

    def find(self, id: Id) -> int | None:
        """Return the row of the node with this id or None, by filter and index if there are any.

        Parameters
        ----------
        id
            A ``uuid.UUID``, its text, or its 16 bytes.
        """
        if isinstance(id, bytes):
            id = uuid.UUID(bytes=id)
        elif not isinstance(id, uuid.UUID):
            id = uuid.UUID(id)
        return self._native.find(list(id.bytes))

    def find_time(self, start: Time = 0, end: Time | None = None) -> npt.NDArray[np.int64]:
        """Return the rows of the nodes from ``start`` on and before ``end``, by their timestamps.

        Parameters
        ----------
        start, end
            Nanoseconds since 1970, datetimes, or what ``numpy.datetime64`` takes; in UTC. Nodes
            have timestamps of the years 1970 to 2554; any other time is before or after them all.
        """
        first = _nanoseconds(start)
        last = None if end is None else _nanoseconds(end)
        if first > _LAST_TIME:
            return np.empty(0, np.int64)
        if last is not None:
            last = None if last > _LAST_TIME else max(last, 0)
        return self._native.find_time(max(first, 0), last).numpy()

    def similar(
        self,
        query: int | Sequence[float] | npt.NDArray[Any],
        k: int = 10,
        *,
        metric: str = "cosine",
    ) -> Nearest:
        """Return the nodes whose vectors are nearest.

        Parameters
        ----------
        query
            A row, which is then no answer, or a vector.
        k
            How many.
        metric
            ``"cosine"``, ``"dot"`` or ``"l2"``, the squared distance.
        """
        if isinstance(query, (int, np.integer)):
            if not 0 <= query < len(self):
                raise SampleIndexError(f"no row {query}: the segment has {len(self)} rows")
            asked: Any = int(query)
        else:
            asked = np.asarray(query, np.float32).tolist()
        rows, scores = self._native.similar(asked, k, metric)
        return Nearest(rows.numpy(), scores.numpy())

    def __repr__(self) -> str:
        vectors = f"{self.dim} x {self.dtype}"
        return f"TbfSegment({self._path!r}, nodes={len(self)}, vectors={vectors})"


def _nanoseconds(time: Time) -> int:
    if isinstance(time, (int, np.integer)):
        return int(time)
    if isinstance(time, datetime.datetime) and time.tzinfo is not None:
        time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    point = np.datetime64(time)
    if np.isnat(point):
        raise SettingError(f"invalid time {time!r}")
    # NumPy's nanoseconds end in 2262, its seconds do not.
    second = point.astype("datetime64[s]")
    rest = (point - second).astype("timedelta64[ns]")
    return int(second.astype(np.int64)) * 1_000_000_000 + int(rest.astype(np.int64))
