"""Ray: data sets read and written by many processes, and jobs over shards that can be killed.

>>> import ray, turboloader.ray
>>> photographs = turboloader.ray.read_tbl("train-*.tbl")
>>> turboloader.ray.write_tbl(photographs.random_shuffle(seed=1), "shuffled")
>>> turboloader.ray.convert("train-*.tar", "converted")["samples"]
24
>>> turboloader.ray.verify("converted/*.tbl")["good"]
2
>>> turboloader.ray.stats("converted/*.tbl")["statistics"]["formats"]
{'jpeg': 20, 'png': 2, 'webp': 2}

Nothing here starts a cluster: that is ``ray.init``'s, and yours. Paths have to be the same files
for every process, and URLs the same objects.
"""

# It is checked with and without ray installed.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-untyped-call,override,type-arg"

from __future__ import annotations

import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import ray
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasink, Datasource, ReadTask

from . import _native
from ._advice import advised
from ._checks import check_choice, one_or_more, path_list
from ._files import PathLike, TblWriter
from ._paths import absolute, expand, is_url, shown
from ._recipes import recipe_of_samples
from ._shards import parts_of, run_shard
from ._warnings import warn
from .exceptions import (
    FormatError,
    InternalError,
    LoaderError,
    PathNotFoundError,
    SampleError,
    SettingError,
    StorageError,
)
from .settings import Store, StoreLike, as_store
from .transforms import functions

__all__ = [
    "Progress",
    "TblDatasink",
    "TblDatasource",
    "convert",
    "read_tbl",
    "stats",
    "verify",
    "write_tbl",
]

# A block ends with the sample that makes it so large, half of what Ray aims at.
_BLOCK_BYTES = 64 << 20

_NO_LABEL = np.iinfo(np.int64).min


class _Part(NamedTuple):
    """Samples of one file, which are numbered from `first` on in the whole data set."""

    path: str
    start: int
    stop: int
    first: int
    labels: np.ndarray[Any, Any]


@advised
def read_tbl(
    paths: PathLike | Sequence[PathLike],
    *,
    decode: bool = False,
    transform: Any = None,
    image_size: int | tuple[int, int] | None = None,
    seed: int = 42,
    epoch: int = 0,
    exif: bool = False,
    override_num_blocks: int | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    store: StoreLike = None,
) -> Any:
    """Read TBL files, TAR archives and folders as a ``ray.data.Dataset``.

    Its columns are ``key``, ``label`` and ``bytes``, or ``image`` instead of the bytes if
    images are decoded: the arrays that a `turboloader.DataLoader` of this seed and epoch has.

    Parameters
    ----------
    paths
        The data set: a path, a list or a pattern.
    decode
        Whether to decode images, in their own sizes where there is neither transform nor size.
    transform, image_size
        What is done to each image, as for `turboloader.DataLoader`.
    seed, epoch
        What transforms are random about.
    exif
        Whether to turn images upright by their EXIF or XMP orientation, as Pillow's
        ``exif_transpose`` does. TIFF images are always upright.
    override_num_blocks, concurrency, ray_remote_args
        As for the readers of Ray Data: tasks, tasks at a time, and the arguments of
        each. Rows keep the order of the samples if Ray preserves it, with ``preserve_order``.
    store
        A `Store` without options: how stores that URLs name are read. Tasks run in other processes,
        so options of stores, which may be secret, come from the environment of these:
        ``ray.init(runtime_env={"env_vars": ...})``.

    Examples
    --------
    >>> read_tbl("train-{000..001}.tbl").count()
    24
    """
    source = TblDatasource(
        paths,
        decode=decode,
        transform=transform,
        image_size=image_size,
        seed=seed,
        epoch=epoch,
        exif=exif,
        store=store,
    )
    return ray.data.read_datasource(
        source,
        override_num_blocks=override_num_blocks,
        concurrency=concurrency,
        ray_remote_args=ray_remote_args,
    )


class TblDatasource(Datasource):
    """Ranges of samples as read tasks of Ray Data; `read_tbl` says what it takes."""

    def __init__(
        self,
        paths: PathLike | Sequence[PathLike],
        *,
        decode: bool = False,
        transform: Any = None,
        image_size: int | tuple[int, int] | None = None,
        seed: int = 42,
        epoch: int = 0,
        exif: bool = False,
        store: StoreLike = None,
    ) -> None:
        super().__init__()
        settings = _shared(store)
        self._paths = _expanded(path_list(paths), settings)
        is_decoded = decode or transform is not None or image_size is not None
        self._recipe = recipe_of_samples(transform, image_size, None)
        self._epoch = epoch
        self._options: dict[str, Any] = {
            "seed": seed,
            "exif": exif,
            "user_transforms": functions(transform),
            "stores": settings,
        }
        self._is_decoded = is_decoded
        self._samples = _native.Samples(self._paths, self._recipe, **self._options)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_samples"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._samples = _native.Samples(self._paths, self._recipe, **self._options)

    def estimate_inmemory_data_size(self) -> int | None:
        """Return how many bytes the blocks will have, as far as that is known."""
        return self._bytes(0, len(self._samples))

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, **_: Any
    ) -> list[ReadTask]:
        """Return the tasks: ranges of samples that differ in length by at most one."""
        count = len(self._samples)
        tasks = max(1, min(parallelism, count))
        bounds = [count * task // tasks for task in range(tasks + 1)]
        labels = self._samples.labels()
        known = np.array([_NO_LABEL if label is None else label for label in labels], np.int64)
        made = []
        for start, stop in itertools.pairwise(bounds):
            parts = list(self._parts(start, stop, known))
            metadata = BlockMetadata(
                num_rows=stop - start,
                size_bytes=self._bytes(start, stop),
                exec_stats=None,
                input_files=tuple(shown(part.path) for part in parts),
            )
            made.append(
                ReadTask(self._reader(parts), metadata, per_task_row_limit=per_task_row_limit)
            )
        return made

    def _parts(self, start: int, stop: int, labels: np.ndarray[Any, Any]) -> Iterator[_Part]:
        for path, first, end in parts_of(self._paths, self._samples.shards()):
            low, high = max(start, first), min(stop, end)
            if low < high:
                yield _Part(path, low - first, high - first, low, labels[low:high])

    def _bytes(self, start: int, stop: int) -> int | None:
        if not self._is_decoded:
            return self._samples.nbytes(start, stop)
        size = self._recipe.output_size
        # Close enough to plan with: how wide the numbers are is the recipe's.
        return None if size is None else (stop - start) * size[0] * size[1] * 3

    def _reader(self, parts: list[_Part]) -> Callable[[], Iterable[Any]]:
        recipe, options, epoch = self._recipe, self._options, self._epoch
        is_decoded = self._is_decoded

        def read() -> Iterable[Any]:
            for part in parts:
                samples = _native.Samples([part.path], recipe, **options)
                yield from _blocks(samples, part, epoch, is_decoded)

        return read


def _shared(store: StoreLike) -> Store | None:
    """Return the settings of stores, which travel to other processes."""
    made = as_store(store)
    if made is not None and made.options:
        raise SettingError(
            "Store: options: tasks run in other processes, and options may be secret; set "
            'environment variables, such as by ray.init(runtime_env={"env_vars": ...})'
        )
    return made


def _expanded(paths: PathLike | Sequence[PathLike], store: Store | None) -> list[str]:
    """Return the paths and URLs that are meant; tasks may run in other folders than this one."""
    return _native.expand([absolute(path) for path in expand(paths)], store)


def _blocks(samples: _native.Samples, part: _Part, epoch: int, is_decoded: bool) -> Iterator[Any]:
    rows: list[Any] = []
    begin, held = part.start, 0
    for index in range(part.start, part.stop):
        number = part.first + index - part.start
        if is_decoded:
            row: Any = samples.image(index, epoch, number).numpy()
        else:
            row = samples.read(index)
        held += row.nbytes if is_decoded else len(row)
        rows.append(row)
        if held >= _BLOCK_BYTES or index + 1 == part.stop:
            keys = [samples.key(one) for one in range(begin, index + 1)]
            labels = part.labels[begin - part.start : index + 1 - part.start]
            yield _block(keys, labels, rows, is_decoded)
            rows, begin, held = [], index + 1, 0


def _readable(key: str | None) -> str | None:
    """Return a name as UTF-8, which Arrow's texts are, with numbers instead of other bytes."""
    if key is None:
        return None
    return key.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _block(
    keys: list[str | None], labels: np.ndarray[Any, Any], rows: list[Any], is_decoded: bool
) -> Any:
    columns = {
        "key": pa.array([_readable(key) for key in keys], pa.string()),
        "label": pa.array(labels, mask=labels == _NO_LABEL),
    }
    if not is_decoded:
        return pa.table({**columns, "bytes": pa.array(rows, pa.large_binary())})
    images: np.ndarray[Any, Any]
    if len({row.shape for row in rows}) == 1:
        images = np.stack(rows)
    else:
        images = np.empty(len(rows), object)
        images[:] = rows
    # Ray's own type of column for arrays.
    table = BlockAccessor.batch_to_block({"image": images})
    return pa.table({**columns, "image": BlockAccessor.for_block(table).to_arrow()["image"]})


@advised
def write_tbl(
    dataset: Any,
    folder: PathLike,
    *,
    column: str = "bytes",
    class_names: Sequence[str] | None = None,
    overwrite: bool = False,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    store: StoreLike = None,
) -> None:
    """Write a ``ray.data.Dataset`` as TBL files, one for each task that writes.

    Each file or object is complete or missing, even after a kill. A write that fails removes the
    files that it made; one that was killed has left some of them, and begins anew with
    ``overwrite=True``. Objects of a store are not removed: begin anew in another folder.

    Parameters
    ----------
    dataset
        With a column of stored bytes, and where there are such, ``key`` and ``label``.
    folder
        Where the files go, ``part-00000.tbl`` and so on: a path that is the same folder for every
        process, or a URL. It is made, or has to be empty; in a store, to have no TBL files.
    column
        The name of the column with the bytes.
    class_names
        The names of the classes, indexed by label.
    overwrite
        Whether to remove the TBL files that the folder has, a local one.
    concurrency, ray_remote_args
        As for the writers of Ray Data.
    store
        A `Store` without options, as for `read_tbl`. Tasks keep the samples of an object in a
        temporary file (``TMPDIR``) until they know how many there are.
    """
    sink = TblDatasink(
        folder, column=column, class_names=class_names, overwrite=overwrite, store=store
    )
    dataset.write_datasink(sink, concurrency=concurrency, ray_remote_args=ray_remote_args)
    if not is_url(os.fspath(folder)):
        # A data set without rows begins no write.
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)


class TblDatasink(Datasink):
    """TBL files as a sink of Ray Data; `write_tbl` says what it takes."""

    def __init__(
        self,
        folder: PathLike,
        *,
        column: str = "bytes",
        class_names: Sequence[str] | None = None,
        overwrite: bool = False,
        store: StoreLike = None,
    ) -> None:
        self._store = _shared(store)
        self._folder = absolute(os.fspath(folder))
        self._is_remote = is_url(self._folder)
        if self._is_remote and overwrite:
            raise SettingError(
                f"{self._folder}: objects are not removed: leave out overwrite, or pass a path"
            )
        self._column = column
        self._class_names = None if class_names is None else list(class_names)
        self._overwrite = overwrite
        self._has_begun = False

    def on_write_start(self, *_: Any, **__: Any) -> None:
        """Make the folder, and see that it is empty."""
        # What an earlier write made stays where this one is refused.
        self._has_begun = False
        if self._is_remote:
            is_empty = not self._objects()
        else:
            folder = pathlib.Path(self._folder)
            folder.mkdir(parents=True, exist_ok=True)
            if self._overwrite:
                # Where files cannot be without a name until they are whole, such as on NFS, a task
                # that was killed has left one.
                for pattern in ("*.tbl", ".*.tbl.*.partial"):
                    for path in folder.glob(pattern):
                        path.unlink()
            is_empty = not any(folder.iterdir())
        if not is_empty:
            remedy = "another folder" if self._is_remote else "overwrite=True"
            raise SettingError(f"{self._folder} is not empty: pass {remedy}")
        self._has_begun = True

    def _objects(self) -> list[str]:
        try:
            return _native.expand([f"{self._folder.rstrip('/')}/*.tbl"], self._store)
        except PathNotFoundError:
            return []

    def write(self, blocks: Iterable[Any], ctx: Any) -> str:
        """Write the blocks of one task into one file, and return its path or URL."""
        path = f"{self._folder.rstrip('/')}/part-{ctx.task_idx:05d}.tbl"
        # A task that is tried again replaces what it has written.
        writer = TblWriter(path, overwrite=True, class_names=self._class_names, store=self._store)
        with writer:
            for block in blocks:
                self._add(writer, BlockAccessor.for_block(block).to_arrow())
        return path

    def _add(self, writer: TblWriter, table: Any) -> None:
        if table.num_rows == 0:
            return
        if self._column not in table.column_names:
            have = ", ".join(table.column_names)
            raise SettingError(f"no column {self._column}: the blocks have {have}")
        absent = [None] * table.num_rows
        keys, labels = (
            table[name].to_pylist() if name in table.column_names else absent
            for name in ("key", "label")
        )
        for data, key, label in zip(table[self._column], keys, labels, strict=True):
            stored = data.as_py()
            row = writer.num_samples
            _check(self._column, row, stored, (bytes,), "stored bytes")
            _check("key", row, key, (str, type(None)), "a name")
            _check("label", row, label, (int, type(None)), "a whole number")
            writer.add_sample(stored, key=key, label=label)

    def on_write_complete(self, *_: Any, **__: Any) -> None:
        """End the uploads of tasks that were killed."""
        if self._is_remote:
            try:
                _native.end_uploads(f"{self._folder.rstrip('/')}/part-", self._store)
            except LoaderError as error:
                warn(f"incomplete files of killed tasks are not removed: {error}")

    def on_write_failed(self, error: Exception) -> None:
        """Remove the files that the other tasks have written; objects stay."""
        if self._has_begun and self._is_remote:
            self.on_write_complete()
        elif self._has_begun:
            for path in pathlib.Path(self._folder).glob("part-*.tbl"):
                path.unlink(missing_ok=True)


def _check(column: str, row: int, value: Any, kinds: tuple[type, ...], expected: str) -> None:
    if not isinstance(value, kinds):
        kind = type(value).__name__
        raise SampleError(f"column {column} has type {kind} in row {row}, expected {expected}")


class Progress(NamedTuple):
    """The state of a job after another shard."""

    done: int
    shards: int
    skipped: int
    """Shards that an earlier run has done."""
    not_good: int
    """Shards that are damaged or have failed."""
    samples: int
    record: dict[str, Any]
    """The record of the shard, a line of the report."""


@advised
def convert(
    sources: PathLike | Sequence[PathLike],
    folder: PathLike,
    *,
    to: str = "tbl",
    compression: str | None = None,
    jpeg_index: bool = False,
    records: PathLike | None = None,
    report: PathLike | None = None,
    overwrite: bool = False,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    progress_callback: Callable[[Progress], Any] | None = None,
    store: StoreLike = None,
) -> dict[str, Any]:
    """Convert each data set into a file of its own, by a task of Ray: ``tl convert --each``.

    A file has its name, and an object exists, once it is complete; then its record is written. Run
    a job again that was killed, or whose machines were: it converts what has no record, what was
    changed since, and what is converted with other settings now. The files and the report are
    those of a job that was not killed, to the byte.

    A shard that is damaged, or that the system refuses, does not end the job: an exception at the
    end names the first one, and the report all.

    Parameters
    ----------
    sources
        TAR archives, also compressed, TBL and Parquet files, folders: paths or URLs; patterns are
        expanded. No two may have the same name. A folder has no version, and is converted anew.
    folder
        The folder of the files, a path or a URL. A local one is created if missing.
    to
        ``"tbl"``, ``"tbl1"``, ``"tar"`` or ``"parquet"``.
    compression
        As for `turboloader.convert`, in TBL files.
    jpeg_index
        Whether to store the places of rows of JPEG samples, in TBL files.
    records
        The folder of the records, a path or a URL; by default ``_records`` in ``folder``.
    report
        Where to write the report, a path or a URL: a line of JSON for each shard, in order, and one
        with the totals.
    overwrite
        Whether to replace files in ``folder`` that have no record of the same shard.
    concurrency
        The most tasks that Ray is given at the same time, by default two for each of its CPUs.
    ray_remote_args
        The arguments of each Ray task, such as ``{"num_cpus": 2}``.
    progress_callback
        Called with the `Progress` after each shard.
    store
        A `Store` without options, as for `read_tbl`.

    Returns
    -------
    dict
        The totals: ``shards``, ``good``, ``samples``, ``output_bytes`` and others.

    Raises
    ------
    FormatError
        If shards are damaged; the others have been converted.
    StorageError
        If shards could not be read or written; the next run tries them again.

    Examples
    --------
    >>> convert("train-*.tar", "copies", to="parquet", report="report.jsonl")["good"]
    2
    """
    check_choice("to", to, ("tbl", "tbl1", "tar", "parquet"))
    if to != "tbl" and (compression is not None or jpeg_index):
        raise SettingError('compression and jpeg_index are for to="tbl"')
    task = {
        "name": "convert",
        "to": to,
        "compression": "none" if compression is None else compression,
        "jpeg_index": bool(jpeg_index),
    }
    totals = _run(
        task,
        sources,
        store,
        concurrency,
        ray_remote_args,
        progress_callback,
        output=folder,
        records=records,
        report=report,
        overwrite=overwrite,
    )
    if totals["damaged"]:
        raise FormatError(_of_shards(totals))
    return totals


@advised
def verify(
    sources: PathLike | Sequence[PathLike],
    *,
    decode: bool = False,
    records: PathLike | None = None,
    report: PathLike | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    progress_callback: Callable[[Progress], Any] | None = None,
    store: StoreLike = None,
) -> dict[str, Any]:
    """Check each data set by itself, by a task of Ray: ``tl verify --each``.

    Parameters
    ----------
    sources
        As for `convert`; names may be the same in several folders.
    decode
        Whether to decode all images.
    records
        The folder of the records, a path or a URL, by which a job that was killed continues.
        Without it a job does all of its work again.
    report, concurrency, ray_remote_args, progress_callback, store
        As for `convert`.

    Returns
    -------
    dict
        The totals: ``shards``, ``good``, ``damaged``, ``samples``, ``bad_samples`` and others;
        ``not_good`` lists the first 100 shards that are not good. The report has the findings.

    Raises
    ------
    StorageError
        If shards could not be read.
    """
    task = {"name": "verify", "decode": bool(decode)}
    return _run(
        task,
        sources,
        store,
        concurrency,
        ray_remote_args,
        progress_callback,
        records=records,
        report=report,
    )


@advised
def stats(
    sources: PathLike | Sequence[PathLike],
    *,
    records: PathLike | None = None,
    report: PathLike | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    progress_callback: Callable[[Progress], Any] | None = None,
    store: StoreLike = None,
) -> dict[str, Any]:
    """Count the samples of data sets, and decode their images, by a task of Ray each: ``tl stats``.

    Sums are whole numbers, so the result does not depend on the order of the tasks.

    Parameters
    ----------
    sources, records, report, concurrency, ray_remote_args, progress_callback, store
        As for `verify`.

    Returns
    -------
    dict
        As for `verify`, and of the good samples ``mean`` and ``std`` of red, green and blue from 0
        to 1, and ``statistics``: ``formats``, ``classes`` by name, ``unlabelled``, ``image_sizes``
        such as ``640x480``, ``sample_bytes`` by powers of two, and the sums.

    Raises
    ------
    StorageError
        If shards could not be read.
    """
    return _run(
        {"name": "stats"},
        sources,
        store,
        concurrency,
        ray_remote_args,
        progress_callback,
        records=records,
        report=report,
    )


# The most shards after the first one without a record that tasks begin.
_WINDOW = 256


def _run(
    settings: dict[str, Any],
    sources: PathLike | Sequence[PathLike],
    store: StoreLike,
    concurrency: int | None,
    ray_remote_args: dict[str, Any] | None,
    progress_callback: Callable[[Progress], Any] | None,
    overwrite: bool = False,
    **places: PathLike | None,
) -> dict[str, Any]:
    if concurrency is not None:
        concurrency = one_or_more("concurrency", concurrency)
    shared = _shared(store)
    task = json.dumps(settings)
    known = {name: os.fspath(place) for name, place in places.items() if place is not None}
    # Raw paths: `tl` makes them absolute in the same way, and keeps `..` and slashes at the end.
    listed = _native.expand(expand(sources), shared)
    job = _native.Job(task, listed, **known, overwrite=bool(overwrite), stores=shared)
    remote = ray.remote(**{"num_cpus": 1, **(ray_remote_args or {})})(run_shard)
    if concurrency is None:
        concurrency = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
    window = max(_WINDOW, 2 * concurrency)
    begun = 0
    running: dict[Any, int] = {}
    state = Progress(0, len(job), 0, 0, 0, {})
    try:
        while True:
            # No more tasks than Ray has work for: thousands that wait would be a burden. None far
            # after a slow shard, because records stay in memory until the report has its record.
            end = min(len(job), job.written() + window)
            while begun < end and len(running) < concurrency:
                running[remote.remote(task, job.places(begun), shared)] = begun
                begun += 1
            if not running:
                break
            (reference,), _ = ray.wait(list(running))
            number = running.pop(reference)
            line, is_skipped = _result(job, number, reference)
            job.add(number, line)
            record = json.loads(line)
            state = Progress(
                state.done + 1,
                state.shards,
                state.skipped + is_skipped,
                state.not_good + (record["status"] != "good"),
                state.samples + record["samples"],
                record,
            )
            if progress_callback is not None:
                progress_callback(state)
    finally:
        # After an exception tasks must not write files of a job that is over. They are not
        # cancelled, because that has ended the whole process in Ray 2.60. Ctrl-C ends the wait.
        if running:
            ray.wait(list(running), num_returns=len(running))
    totals: dict[str, Any] = json.loads(job.finish())
    try:
        job.clean_up()
    except LoaderError as error:
        warn(f"incomplete files of killed tasks are not removed: {error}")
    if totals["failed"]:
        raise StorageError(_of_shards(totals))
    return totals


def _result(job: _native.Job, number: int, reference: Any) -> tuple[str, bool]:
    """Return the record of a shard, and whether an earlier run has made it."""
    try:
        line, is_skipped = ray.get(reference)
    except (SettingError, InternalError):
        # Each other task would fail in the same way.
        raise
    except ray.exceptions.RayTaskError as error:
        # Its text has a traceback, a process and an address, which differ from run to run.
        cause = type(error.cause).__name__
        return job.failure(number, f"the task of Ray raised {cause}"), False
    except ray.exceptions.RayError as error:
        # Its worker was lost, again and again. The others continue.
        return job.failure(number, f"the task of Ray ended by {type(error).__name__}"), False
    return line, is_skipped


def _of_shards(totals: dict[str, Any]) -> str:
    counts = f"{totals['damaged']} of {totals['shards']} shards are damaged"
    first = totals["not_good"][0]["reason"]
    return f"{counts}, {totals['failed']} failed, the first: {first}"
