"""Data sets: what there is, before anything is loaded.

>>> import turboloader as tl
>>> ds = tl.open("photos")
>>> train, val = ds.split(0.9, 0.1, seed=0, stratify="label")
>>> loader = tl.DataLoader(train, batch_size=8, shuffle=True, image_size=224)
"""

from __future__ import annotations

import base64
import errno
import html
import importlib
import io
import json
import operator
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, overload

from . import _native
from ._advice import OF_DATASETS, advised
from ._checks import names, path_list, whole
from ._paths import absolute, expand, is_url, shown
from ._settings import check_kinds
from ._warnings import warn_of_notes
from .exceptions import PathExistsError, SampleIndexError, SettingError, of_path
from .fields import Field, Request
from .settings import Clips, Store, StoreLike, as_store

if TYPE_CHECKING:
    import numpy as np

    from ._native import Dataset as Native


__all__ = ["Dataset", "Sample", "SampleMeta", "Stats", "concat", "mix", "open"]

PathLike = str | os.PathLike[str]

# What `open` takes as labels; arrays of NumPy's are sequences here.
Labels = PathLike | Sequence[int] | Sequence[str] | Mapping[str, int] | Mapping[str, str]

# Samples whose files `Dataset.schema` looks at.
_LOOKED_AT = 16

# Samples that a notebook shows of a data set.
_SHOWN = 8

# As TBL files name them, and the extensions of their files.
_IMAGE_FORMATS = (
    *("jpeg", "png", "webp", "bmp", "tiff", "raw_u8"),
    *("gif", "pnm", "qoi", "jpeg2000", "jxl", "avif"),
)
_IMAGES = (
    *("jpg", "jpeg", "png", "webp", "bmp", "tif", "tiff", "gif", "pnm", "pbm", "pgm", "ppm", "qoi"),
    *("jp2", "j2k", "j2c", "jpc", "jpf", "jpx", "jxl", "avif", "avifs"),
)
_TEXTS = ("txt", "text", "caption", "cls", "csv", "md", "yaml", "yml", "xml")


@advised
def open(
    path: PathLike | Sequence[PathLike],
    *,
    format: str | None = None,
    image: str | None = None,
    label: str | None = None,
    labels: Labels | None = None,
    allow_unlabelled: bool = False,
    fields: Mapping[str, Field] | None = None,
    store: StoreLike = None,
) -> Dataset:
    """Open a data set. Its index is read, and no sample.

    Parameters
    ----------
    path
        A folder, a TAR archive, a TBL, Parquet or Arrow file, a table, a manifest or images; a list
        of these; or a pattern such as ``"train-*.tar"``, ``"train-{000..099}.tar"`` or
        ``"photos/*.jpg"``. Paths or URLs.
    format
        The expected format, such as ``"folder"``, ``"tar"`` or ``"tbl"``; another one is an error.
        By default any: it is detected from the content.
    image
        The column of a Parquet or Arrow file that has the images. By default the only one.
    label
        The column of a table, or of a Parquet or Arrow file, that has the labels, which are then
        read.
    labels
        Labels instead of those of the data set: integers or names of classes, for all samples in
        order; a dict by the names of samples, with or without their extensions; or the path of a
        table with such names and a column ``label``. Classes are numbered in sorted order.
    allow_unlabelled
        Whether samples that a dict or a file does not name have no label, instead of an error.
    fields
        What batches of this data set have from files next to images, as `Dataset.with_fields`.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.

    Examples
    --------
    >>> open("photos")
    Dataset('photos', 12 samples, 6 classes)
    """
    paths = [absolute(one) for one in expand(path_list(path, "path"))]
    relabel = None if labels is None else (_plain(labels), allow_unlabelled)
    is_list = any(path.endswith((".csv", ".tsv", ".jsonl", ".ndjson")) for path in paths)
    if label is not None and is_list:
        raise SettingError(
            "label is the column of a table (IDV, TBF); the columns of a manifest are those of "
            f"turboloader.manifest({shown(paths[0])!r}, label={label!r})"
        )
    store = as_store(store)
    columns = (image, label)
    made = _opened(paths, columns, relabel, store)
    check_kinds(format, made.kinds)
    warn_of_notes(made.notes(usual=False, knows_images=True))
    name = repr(shown(os.fspath(path))) if isinstance(path, (str, os.PathLike)) else ""
    name = name or f"{len(paths)} sources"
    arguments = (paths, columns, name, store, relabel)
    opened = Dataset(made, _reopened, arguments, name=name, label=_of_table(made, label))
    return opened.with_fields(fields) if fields else opened


def _reopened(
    paths: list[str],
    columns: tuple[str | None, str | None],
    name: str,
    store: Store | None,
    relabel: tuple[Any, bool] | None,
) -> Dataset:
    """Open a data set again, whose notes were warnings before."""
    made = _opened(paths, columns, relabel, store)
    arguments = (paths, columns, name, store, relabel)
    return Dataset(made, _reopened, arguments, name=name, label=_of_table(made, columns[1]))


def _of_table(made: Native, label: str | None) -> str | None:
    """Return the column that loaders take labels from; rows that are samples have theirs."""
    return None if {"parquet", "arrow"} & set(made.kinds) else label


def _opened(
    paths: list[str],
    columns: tuple[str | None, str | None],
    relabel: tuple[Any, bool] | None,
    store: Store | None,
) -> Native:
    image, label = columns
    made = _native.Dataset.open(paths, store, label, image)
    if relabel is None:
        return made
    labels, allow_unlabelled = relabel
    return _native.with_labels(made, labels, allow_unlabelled, store)


def _plain(labels: Any) -> Any:
    """Return labels as Python's own values, which an array of NumPy's is not, and paths as text."""
    if isinstance(labels, (str, os.PathLike)):
        return absolute(os.fspath(labels))
    listed = labels.tolist() if hasattr(labels, "tolist") else labels
    if isinstance(listed, Mapping):
        if others := [key for key in listed if not isinstance(key, str)]:
            said = "is not the name of a sample, as in {'a.jpg': 3}"
            raise SettingError(f"labels: {others[0]!r} {said}")
        return dict(zip(listed, _labels(list(listed.values())), strict=True))
    if not isinstance(listed, Sequence) or isinstance(listed, (bytes, bytearray)):
        raise SettingError(
            f"labels has type {type(labels).__name__}, expected a list or an array of integers "
            "or of names of classes, a dict of them by the names of samples, or the path of a table"
        )
    return _labels(list(listed))


def _labels(values: list[Any]) -> list[int] | list[str]:
    """Return labels of one kind: integers, also those of NumPy, or names of classes."""
    if all(isinstance(value, str) for value in values):
        return values
    for place, value in enumerate(values):
        if isinstance(value, (bool, str)) or not hasattr(value, "__index__"):
            kind = "several labels" if isinstance(value, (list, tuple)) else repr(value)
            raise SettingError(
                f"labels: {kind} in place {place}, expected integers alone or names of classes "
                "alone; other values are fields, such as turboloader.Number or MultiLabel"
            )
    return [operator.index(value) for value in values]


def concat(*datasets: Dataset) -> Dataset:
    """Return the samples of all data sets, one after the other; classes are joined by name.

    Examples
    --------
    >>> len(concat(open("photos"), open("train.tar")))
    24
    """
    if any(isinstance(dataset, (tuple, list)) for dataset in datasets):
        raise SettingError("concat takes data sets one by one: concat(a, b), or concat(*data_sets)")
    parts = [_checked(dataset) for dataset in datasets]
    if not parts:
        raise SettingError("concat needs at least one data set")
    made = _native.Dataset.concat([part._native for part in parts])
    return _joined(parts, made)


@advised
def mix(
    weights: Mapping[Dataset, int] | Sequence[tuple[Dataset, int]],
    *,
    length: str | int = "samples",
    stages: Mapping[int, Mapping[Dataset, int] | Sequence[int]] | None = None,
) -> Dataset:
    """Return the samples of all data sets in the proportion of whole numbers.

    Mixing works for images, tables and tokens. Each data set comes in rounds: all of its samples in
    one order, then all in another.

    Parameters
    ----------
    weights
        A weight for each data set: ``{a: 3, b: 1}``, or pairs.
    length
        The samples of an epoch: ``"samples"``, as many as all have together; ``"first-used-up"``,
        so that none repeats; ``"all-used-up"``, so that each comes; or a number.
    stages
        Other weights from a sample of the epoch on, counted over all ranks:
        ``{500_000: {a: 1, b: 1}}``, or a list of weights in the order of the data sets. Step ``n``
        begins at sample ``n * batch_size * world_size``. A stage begins with the first whole round
        of the weights before it, which are as many samples as their sum. A weight of 0 pauses a
        data set. States resume exactly, also with a stage added after them.

    Examples
    --------
    >>> len(mix({open("photos"): 3, open("train.tar"): 1}, length=100))
    100
    >>> photos, archive = open("photos"), open("train.tar")
    >>> mixed = mix({photos: 1, archive: 0}, length=20, stages={10: {photos: 1, archive: 4}})
    >>> len(mixed)
    20
    """
    pairs = list(weights.items()) if isinstance(weights, Mapping) else list(weights)
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise SettingError("mix takes a weight for each data set: mix({a: 3, b: 1})")
    parts = [(_checked(dataset), whole("weight", weight)) for dataset, weight in pairs]
    if not parts:
        raise SettingError("mix needs at least one data set")
    later = _stages(stages or {}, [part for part, _ in parts])
    native = [(part._native, weight) for part, weight in parts]
    made = _native.Dataset.mix(native, str(length), later)
    name = f"mix of {len(parts)}"
    mixed = Dataset(made, _mixed, (parts, length, later), name=name, label=_label(parts))
    mixed.exif = _exif([part for part, _ in parts])
    mixed.clips = _clips([part for part, _ in parts])
    return mixed.with_fields(_fields(part for part, _ in parts))


def _mixed(
    parts: list[tuple[Dataset, int]], length: str | int, stages: list[tuple[int, list[int]]]
) -> Dataset:
    return mix(parts, length=length, stages=dict(stages))


def _stages(stages: Any, parts: list[Dataset]) -> list[tuple[int, list[int]]]:
    """Return start and weights of each stage, in order."""
    if not isinstance(stages, Mapping):
        raise SettingError("stages is a dict of weights by their start: {500_000: {a: 1, b: 1}}")
    later = []
    for start, weights in stages.items():
        if isinstance(weights, Mapping):
            if len(weights) != len(parts) or any(part not in weights for part in parts):
                raise SettingError(f"stage {start!r} needs a weight for each data set, 0 for none")
            weights = [weights[part] for part in parts]
        numbers = [whole("weight", weight) for weight in weights]
        later.append((whole("start of a stage", start), numbers))
    return sorted(later)


def _label(parts: list[tuple[Dataset, int]]) -> str | None:
    return parts[0][0].label_column


def _checked(dataset: Any) -> Dataset:
    if not isinstance(dataset, Dataset):
        raise SettingError(
            f"expected data sets of turboloader.open, not {type(dataset).__qualname__}"
        )
    return dataset


def _joined(parts: Sequence[Dataset], made: Native) -> Dataset:
    name = f"concat of {len(parts)}"
    joined = Dataset(made, concat, tuple(parts), name=name, label=parts[0].label_column)
    joined.exif = _exif(parts)
    joined.clips = _clips(parts)
    return joined.with_fields(_fields(parts))


def _exif(parts: Sequence[Dataset]) -> bool:
    """Return whether images are turned by their EXIF orientation, which all parts agree on."""
    if len({part.exif for part in parts}) > 1:
        raise SettingError(
            "some data sets are of from_hf, which turns images by their EXIF orientation, and "
            "others are not: pass exif=False to from_hf, and exif=True to the loader if all are to "
            "be turned"
        )
    return parts[0].exif


def _clips(parts: Sequence[Dataset]) -> Clips | None:
    """Return the clips that rows name, which all parts agree on."""
    if any(part.clips != parts[0].clips for part in parts):
        raise SettingError(
            "data sets of LeRobot with other cameras, delta_timestamps or colors, or with other "
            "data sets: open them with the same ones"
        )
    return parts[0].clips


def _fields(parts: Iterable[Dataset]) -> dict[str, Field]:
    """Return the fields of all data sets; a name stands for one kind."""
    fields: dict[str, Field] = {}
    for part in parts:
        for name, kind in part.fields.items():
            if fields.setdefault(name, kind) != kind:
                raise SettingError(
                    f"field {name} is {fields[name]!r} in one data set and {kind!r} in another; "
                    "give them the same kind by with_fields"
                )
    return fields


class Dataset:
    """Some samples of a data set, in an order; `open` makes the first one.

    ``ds[i]`` is a `Sample`, decoded; slices, lists of numbers and masks are views. Views are lazy:
    they hold numbers of samples, and share the open files. `DataLoader` and the classes of
    ``turboloader.torch`` take one in place of a path; ``batch["index"]`` stays the number in the
    stored data set.

    Every view keeps the order of its data set. `weights`, `balance`, `repeat` and `mix` draw
    samples anew in each epoch, so they come last: nothing can be selected from draws.

    Attributes
    ----------
    classes : list of str
        The names of the classes, indexed by label.
    label_column : str or None
        The column of a table that has the labels.
    fields : dict
        What batches have from files next to images, by name; see `with_fields`.
    exif : bool
        Whether images are turned by their EXIF orientation unless a loader says otherwise: True for
        data sets of `from_hf`.
    clips : Clips or None
        The clips that the rows name: those of a `LeRobotDataset`.

    Examples
    --------
    >>> ds = open("photos")
    >>> ds[0].image.shape, ds.classes[ds[0].label]
    ((300, 451, 3), 'animals')
    >>> ds.take(3).labels
    array([0, 0, 1])
    >>> [sample.key for sample in ds.select(label="people")]
    ['people/astronaut.jpg', 'people/photographer.jpg']
    """

    def __init__(
        self,
        native: Native,
        rebuild: Callable[..., Dataset],
        arguments: tuple[Any, ...],
        *,
        name: str,
        label: str | None = None,
    ) -> None:
        """Wrap an open data set, which ``rebuild(*arguments)`` opens again in another process."""
        self._opened = native
        self._rebuild, self._arguments, self._name = rebuild, arguments, name
        self.label_column = label
        self.classes: list[str] = native.class_names
        self.fields: dict[str, Field] = {}
        self.exif = False
        self.clips: Clips | None = None
        # Connections to stores belong to the process that made them, and workers may be forked.
        self._process = os.getpid() if any(map(is_url, native.locations())) else None

    @property
    def _native(self) -> Native:
        if self._process not in (None, os.getpid()):
            self._opened, self._process = self._rebuild(*self._arguments)._opened, os.getpid()
        return self._opened

    def _view(self, method: str, *arguments: Any) -> Dataset:
        """Return what a method of the native data set makes, which other processes repeat."""
        made = getattr(self._native, method)(*arguments)
        return self._of(made, _viewed, (self, method, arguments))

    def _of(
        self, made: Native, rebuild: Callable[..., Dataset], arguments: tuple[Any, ...]
    ) -> Dataset:
        dataset = Dataset(made, rebuild, arguments, name=self._name, label=self.label_column)
        dataset.fields, dataset.exif = self.fields, self.exif
        dataset.clips = self.clips
        return dataset

    def with_labels(self, labels: Labels, *, allow_unlabelled: bool = False) -> Dataset:
        """Return the same samples with other labels, as ``labels`` of `open`.

        Labels are given before samples are selected.
        """
        if not self._native.is_whole():
            raise SettingError("with_labels: give labels first, then select samples")
        return self._of(
            _native.with_labels(self._native, _plain(labels), allow_unlabelled),
            _relabelled,
            (self, _plain(labels), allow_unlabelled),
        )

    def with_classes(self, classes: Sequence[str]) -> Dataset:
        """Return the same samples with the labels that their classes have in another data set.

        Labels follow from the sorted names of the classes that a data set has. Where training and
        validation data do not have the same classes, the same class has two labels: pass the
        classes of the data set that the model is trained on.

        Parameters
        ----------
        classes
            The names of classes by their labels, such as ``train.classes``; some may have no sample
            here.

        Raises
        ------
        SettingError
            If a sample has another class. Leave such samples out when the files are listed.

        Examples
        --------
        >>> photos = open("photos")
        >>> photos.with_classes(["aliens", *photos.classes]).labels[:2].tolist()
        [1, 1]
        """
        if not self._native.is_whole():
            raise SettingError("with_classes: give classes first, then select samples")
        listed = names("classes", classes)
        made = _native.with_classes(self._native, listed)
        return self._of(made, _with_classes, (self, listed))

    def with_fields(self, fields: Mapping[str, Field]) -> Dataset:
        """Return the same samples with further fields, which the batches of loaders have.

        Parameters
        ----------
        fields
            The kinds of files next to images, by name, as ``fields`` of `DataLoader`. A kind
            replaces an earlier one of its name.

        Examples
        --------
        >>> from turboloader import Text
        >>> open("train.tar").with_fields({"caption": Text("txt")}).fields
        {'caption': Text(source='txt')}
        """
        Request(fields)
        made = self._of(self._native, self._rebuild, self._arguments)
        made.fields = {**self.fields, **fields}
        return made

    def _chosen(self, made: Native) -> Dataset:
        """Return a view that other processes make from its numbers, without choosing again."""
        return self._of(made, _numbered, (self, made))

    # What there is

    def __len__(self) -> int:
        """Return how many samples an epoch has."""
        return len(self._native)

    @property
    def box_classes(self) -> list[str]:
        """The names of the categories of annotated objects, by their numbers; "" for none."""
        return _native.box_class_names(self._native)

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The labels by name of the class."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def labels(self) -> np.ndarray[Any, Any]:
        """The labels of all samples as ``int64``, -1 for none. No sample is read."""
        labels: np.ndarray[Any, Any] = self._native.labels().numpy()
        return labels

    @property
    def indices(self) -> np.ndarray[Any, Any]:
        """The numbers of the samples in the stored data set, as ``int64``."""
        indices: np.ndarray[Any, Any] = self._native.indices().numpy()
        return indices

    @property
    def keys(self) -> list[str | None]:
        """The names of all samples."""
        return self._native.keys()

    @property
    def notes(self) -> list[str]:
        """Remarks on the files and their labels, one line each."""
        return self._native.notes()

    @property
    def _warned(self) -> list[str]:
        """The notes that were warnings when the data set was opened.

        Samples show all of their images, so several images are not among them.
        """
        return self._native.notes(usual=False, knows_images=True)

    @property
    def schema(self) -> dict[str, str]:
        """The fields of samples and their kinds, as the first samples have them.

        Examples
        --------
        >>> open("photos").schema
        {'image': 'image (jpeg)', 'label': 'one of 6 classes', 'key': 'text', 'index': 'number'}
        """
        if self._is_table:
            batch = self._row(0) if len(self) else {}
            return {name: "number" if name in _LAST else "column" for name in batch}
        found: dict[str, str] = {}
        last: dict[str, str] = {}
        for place in range(min(len(self), _LOOKED_AT)):
            sample = self[place]
            for name in sample:
                kind = sample.kind(name)
                # The label, the name and the number come last.
                (last if name in _LAST else found).setdefault(name, kind)
        if "label" in last and self.classes:
            last["label"] = f"one of {len(self.classes)} classes"
        return {**found, **{name: last[name] for name in _LAST if name in last}}

    def histogram(self) -> dict[str | int, int]:
        """Return how many samples each class has, by name, or by label if classes have no names.

        Examples
        --------
        >>> open("photos").take(3).histogram()
        {'animals': 2, 'food': 1}
        """
        labels: list[int] = self.labels.tolist()
        counts = Counter(labels)
        named = dict(enumerate(self.classes))
        return {named.get(label, label): count for label, count in sorted(counts.items())}

    def stats(self, *, pixels: Any = False, channels: int = 3) -> Stats:
        """Return counts of all samples, read once: formats, sizes, classes and damage.

        All cores read; memory does not grow with the data set. Damaged samples are listed, and are
        no error. A view without samples has no formats, sizes and classes.

        Parameters
        ----------
        pixels
            Whether to decode all images too, for mean and standard deviation of each channel: True
            for 8 bits, or a type as that of `mean_std`. Images that cannot be decoded are then
            damaged too, next to the figures that their headers have.
        channels
            The channels of these pixels, as those of `DataLoader`.

        Examples
        --------
        >>> stats = open("photos").stats()
        >>> stats.samples, stats.formats, stats.widths
        (12, {'jpeg': 10, 'png': 1, 'webp': 1}, (102, 400, 640))
        """
        if self._is_table:
            raise SettingError("stats: only supported for samples, not for tables")
        from .transforms import dtype_name

        decoded = None
        if pixels is not False and pixels is not None:
            name = "uint8" if pixels is True else dtype_name(pixels)
            decoded = (name, whole("channels", channels))
        found = self._native.stats(decoded)
        return Stats(samples=len(self), classes=self.histogram(), **found)

    def mean_std(
        self, *, channels: int | None = None, pixels: Any = None
    ) -> tuple[list[float], list[float]]:
        """Return mean and standard deviation of each channel over all pixels.

        One pass decodes all images in their own sizes, on all cores. The result is that of exact
        sums, or with floats of sums in the order of the samples, whatever the number of threads.
        It is from 0 to 1 for integers, as `transforms.ToFloat` makes them, and has the unit of the
        numbers for floats. A warning says that images have more than these pixels hold.

        Parameters
        ----------
        channels, pixels
            As those of `DataLoader`. Without them, images of 16 bits, floats and alpha count as the
            8-bit RGB that loaders then have of them.

        Examples
        --------
        >>> mean, deviation = open("photos").mean_std(channels=1)
        >>> len(mean), len(deviation)
        (1, 1)
        """
        from .transforms import dtype_name

        name = "uint8" if pixels is None else dtype_name(pixels)
        count = 3 if channels is None else whole("channels", channels)
        mean, deviation, _ = self._native.mean_std(name, count)
        return mean, deviation

    def explain(self) -> str:
        """Return the views that this one was made by, with their samples and what each cost.

        Examples
        --------
        >>> print(open("photos").take(5).explain())
        1 source: 12 samples
        take 5: 5 samples (24 bytes)
        """
        return self._native.explain()

    # Samples

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | np.ndarray[Any, Any]) -> Dataset: ...

    def __getitem__(self, index: Any) -> Any:
        """Return a sample; for a slice, a list of numbers or a mask, a view."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._view("slice", start, max(start, stop))
            return self._view("subset", list(range(start, stop, step)))
        try:
            place = self._place(operator.index(index))
        except TypeError:
            return self.select(index)
        return Sample._of_row(self._row(place)) if self._is_table else Sample(self, place)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            said = f": {OF_DATASETS[name]}" if name in OF_DATASETS else ""
            raise AttributeError(f"a Dataset has no attribute {name!r}{said}")

    def _place(self, place: int) -> int:
        count = len(self)
        if not -count <= place < count:
            raise SampleIndexError(f"no sample {place}: the data set has {count}")
        return place % count

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples one by one. A `DataLoader` is the fast way."""
        for place in range(len(self)):
            yield self[place]

    @property
    def _is_table(self) -> bool:
        return bool({"idv", "tbf", "rows", "tokens"} & set(self._native.kinds))

    def _row(self, place: int) -> dict[str, Any]:
        from .loader import DataLoader

        with DataLoader(self._view("subset", [place]), batch_size=1, num_workers=1) as loader:
            batch = next(iter(loader))
            row = {name: batch[name][0] for name in batch.keys() if name != "valid"}  # noqa: SIM118
            # A row without a label has no such field.
            return row | {name: row[name].numpy().item() for name in _LAST if name in row}

    # Views

    def take(self, count: int) -> Dataset:
        """Return the first ``count`` samples."""
        return self._view("take", whole("count", count))

    def skip(self, count: int) -> Dataset:
        """Return all but the first ``count`` samples."""
        return self._view("skip", whole("count", count))

    def shard(self, index: int, count: int) -> Dataset:
        """Return part ``index`` of ``count`` parts of neighbours, as equal as they can be."""
        return self._view("shard", whole("index", index), whole("count", count))

    def select(self, indices: Any = None, *, label: Any = None) -> Dataset:
        """Return some samples: by their places, by a mask, or by label.

        Parameters
        ----------
        indices
            Places in this data set, which may be negative and repeat; or a mask of booleans, one
            for each sample.
        label
            A label or the name of a class, or a list of them.

        Examples
        --------
        >>> ds = open("photos")
        >>> len(ds.select([0, 5, -1])), len(ds.select(ds.labels == 2)), len(ds.select(label=2))
        (3, 2, 2)
        """
        if (indices is None) == (label is None):
            raise SettingError("select: pass either places or label")
        if indices is not None:
            return self._view("subset", self._places(indices))
        wanted = [label] if isinstance(label, str) or not hasattr(label, "__iter__") else [*label]
        self._check_labels(wanted)
        if all(isinstance(name, str) for name in wanted):
            return self._chosen(self._native.select_classes(wanted))
        if any(isinstance(name, str) for name in wanted):
            raise SettingError("select: label has numbers and names, expected one kind")
        return self._chosen(self._native.select_labels([operator.index(one) for one in wanted]))

    def _check_labels(self, wanted: list[Any]) -> None:
        """Refuse other values than labels, and labels of a data set without any."""
        for one in wanted:
            if not isinstance(one, str) and not hasattr(one, "__index__"):
                raise SettingError(
                    f"select: label is {one!r}, expected an integer, the name of a class, or a list"
                )
        if len(self) and not (self.labels >= 0).any():
            objects = (
                "; its objects have categories: filter by a function of sample.field('json')"
                if self.box_classes
                else ""
            )
            raise SettingError(f"select: no sample has a label{objects}")

    def _places(self, indices: Any) -> list[int]:
        if isinstance(indices, str):
            raise SettingError(
                f"select: {indices!r} is text; a class is label={indices!r}, and a field that of a "
                f"sample, such as dataset[0][{indices!r}]"
            )
        if not isinstance(indices, Iterable):
            raise SettingError(f"select: {indices!r} is not a number, expected places or a mask")
        listed = indices.tolist() if hasattr(indices, "tolist") else list(indices)
        if listed and all(isinstance(one, bool) for one in listed):
            if len(listed) != len(self):
                raise SettingError(f"a mask of {len(listed)} booleans for {len(self)} samples")
            return [place for place, is_wanted in enumerate(listed) if is_wanted]
        for one in listed:
            if isinstance(one, bool) or not hasattr(one, "__index__"):
                raise SettingError(f"select: {one!r} is not a number, expected places or a mask")
        # A call of `len` for each would take most of the time.
        count = len(self)
        places = [operator.index(one) for one in listed]
        for place in places:
            if not -count <= place < count:
                self._place(place)
        return [place % count for place in places]

    def filter(self, condition: str | Callable[[SampleMeta], bool]) -> Dataset:
        """Return the samples that meet a condition on what is known without decoding them.

        Parameters
        ----------
        condition
            Text such as ``'width >= 224 and class in ("cat", "dog")'``, over ``index``, ``key``,
            ``label``, ``class``, ``format``, ``bytes``, ``width``, ``height``, the text of a file
            (``txt``) and values of JSON (``json:/score``); ``docs/pipeline/views.md`` describes it.
            Or a function of a `SampleMeta`, which is called for each sample in turn.

        Examples
        --------
        >>> ds = open("photos")
        >>> len(ds.filter("width >= 384")), len(ds.filter(lambda sample: sample.width >= 384))
        (7, 7)
        """
        if isinstance(condition, str):
            return self._chosen(self._native.filter(condition))
        wanted = [place for place in range(len(self)) if condition(SampleMeta(self, place))]
        return self._view("subset", wanted)

    def split(self, *fractions: float, seed: int = 0, stratify: str | None = None) -> list[Dataset]:
        """Return random parts of these sizes; no sample is in two of them.

        Parameters
        ----------
        fractions
            The size of each part, as a fraction of this data set. What is missing to 1 is left out.
        seed
            The seed of the choice. The parts depend on nothing else but the number of samples, and
            their labels.
        stratify
            ``"label"`` to divide each class as the whole is divided.

        Examples
        --------
        >>> train, val = open("photos").split(0.75, 0.25, seed=1)
        >>> len(train), len(val)
        (9, 3)
        """
        if any(isinstance(fraction, (tuple, list)) for fraction in fractions):
            raise SettingError("split takes fractions one by one: split(0.8, 0.2)")
        parts = self._native.split(
            [float(fraction) for fraction in fractions], whole("seed", seed), _stratified(stratify)
        )
        return [self._chosen(part) for part in parts]

    def fold(
        self, index: int, *, of: int, seed: int = 0, stratify: str | None = None
    ) -> tuple[Dataset, Dataset]:
        """Return the samples to train and to validate with: all folds but one, and that one.

        Parameters
        ----------
        index
            The fold, from 0.
        of
            The number of folds.
        seed, stratify
            As for `split`.

        Examples
        --------
        >>> train, val = open("photos").fold(0, of=4)
        >>> len(train), len(val)
        (9, 3)
        """
        number, count = whole("index", index), whole("of", of)
        parts = self._native.fold(number, count, whole("seed", seed), _stratified(stratify))
        train, validation = map(self._chosen, parts)
        return train, validation

    def weights(
        self, weights: Any, *, replacement: bool = True, count: int | None = None
    ) -> Dataset:
        """Return draws of samples, each in proportion to its weight.

        Parameters
        ----------
        weights
            A number of 0 or more for each sample: a list or an array.
        replacement
            Whether a sample may be drawn more than once in an epoch.
        count
            The draws of an epoch; by default as many as there are samples, and without replacement
            as many as have a weight.
        """
        if isinstance(weights, Mapping):
            raise SettingError(
                "weights is a dict, expected a number for each sample; balance() draws as many "
                "samples of every class"
            )
        listed = weights.tolist() if hasattr(weights, "tolist") else [float(one) for one in weights]
        return self._view("weights", listed, replacement, count)

    def balance(self, by: str = "label", *, length: str | int = "samples") -> Dataset:
        """Return as many samples of every class, whatever its size.

        Parameters
        ----------
        by
            ``"label"``.
        length
            As for `mix`.
        """
        _stratified(by)
        return self._view("balance", str(length))

    def repeat(self, count: int) -> Dataset:
        """Return all samples ``count`` times in an epoch, each time in another random order."""
        return self._view("repeat", whole("count", count))

    def __add__(self, other: Dataset) -> Dataset:
        return concat(self, other) if isinstance(other, Dataset) else NotImplemented

    # Whole data sets

    def convert(
        self,
        destination: PathLike,
        *,
        to: str | None = None,
        lz4: bool = False,
        overwrite: bool = False,
        sync: bool = True,
        progress_callback: Callable[[int, int], Any] | None = None,
    ) -> int:
        """Write these samples, with names, labels and fields, into a TBL, TAR or Parquet file.

        The parameters are those of `turboloader.convert`. Returns how many samples were written.
        """
        from ._files import convert

        return convert(
            self,
            destination,
            to=to,
            lz4=lz4,
            overwrite=overwrite,
            sync=sync,
            progress_callback=progress_callback,
        )

    def preview(
        self, destination: PathLike, *, count: int = 24, size: int = 160, overwrite: bool = False
    ) -> None:
        """Write a contact sheet of samples, spread over the data set, as a PNG file.

        Parameters
        ----------
        destination
            The file.
        count
            The most samples to show.
        size
            The side of each picture in pixels, 32 to 1024.
        overwrite
            Whether to replace a file of that name.
        """
        if os.path.splitext(os.fspath(destination))[1].lower() not in ("", ".png"):
            raise SettingError(
                f"preview writes a PNG file, and {os.fspath(destination)!r} is the name of another"
            )
        data = self._sheet(count, size)
        try:
            with io.open(destination, "wb" if overwrite else "xb") as file:  # noqa: UP020
                file.write(data)
        except FileExistsError:
            said = "exists already: pass overwrite=True"
            raise of_path(PathExistsError, errno.EEXIST, os.fspath(destination), said) from None

    def show(self, count: int = 24, *, size: int = 160) -> Any:
        """Return a contact sheet, which notebooks show; see `preview`.

        Without IPython, it is the PNG file as bytes.
        """
        data = self._sheet(count, size)
        if not find_spec("IPython"):
            return data
        return importlib.import_module("IPython.display").Image(data)

    def _sheet(self, count: int, size: int) -> bytes:
        if not 32 <= whole("size", size) <= 1024:
            raise SettingError(f"size is {size}, expected 32 to 1024 pixels")
        return self._native.sheet(whole("count", count), size, self.exif)

    def verify(self, *, decode: bool = False) -> dict[str, Any]:
        """Read all of the stored data set, and return what is wrong with it.

        The whole files are read, whatever this view selects. See `turboloader.verify`.

        Parameters
        ----------
        decode
            Whether to decode every image.
        """
        from ._files import verify

        if self._root()._rebuild is not _reopened:
            raise SettingError(
                "verify: this data set was not opened by its path alone; verify its parts or files"
            )
        paths, _, _, store, _ = self._root()._arguments
        reports = [verify(path, decode=decode, store=store) for path in paths]
        if len(reports) == 1:
            return reports[0]
        return {
            "is_good": all(one["is_good"] for one in reports),
            "files": dict(zip(paths, reports, strict=True)),
        }

    def _repr_html_(self) -> str:
        """Return what notebooks show: a contact sheet of a few samples."""
        text = html.escape(repr(self))
        if self._is_table or not self._native.is_plain() or len(self) == 0:
            return f"<pre>{text}</pre>"
        data = base64.b64encode(self._sheet(_SHOWN, 128)).decode()
        return f'<pre>{text}</pre><img src="data:image/png;base64,{data}">'

    # Processes

    def __setstate__(self, fields: dict[str, Field]) -> None:
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        if self._rebuild is _numbered:
            base, made = self._arguments
            return _renumbered, (base._root(), made.indices().numpy()), self.fields
        return self._rebuild, self._arguments, self.fields

    def _root(self) -> Dataset:
        """Return all samples of the data set that this is a view of."""
        if self._native.is_whole():
            return self
        base = self._arguments[0]
        if self._rebuild in (_viewed, _numbered):
            root: Dataset = base._root()
            return root
        return self._of(self._native.whole(), _wholly, (self,))

    def __repr__(self) -> str:
        classes = f", {len(self.classes)} classes" if self.classes else ""
        plural = "" if len(self) == 1 else "s"
        return f"Dataset({self._name}, {len(self)} sample{plural}{classes})"


def _relabelled(base: Dataset, labels: Any, allow_unlabelled: bool) -> Dataset:
    return base.with_labels(labels, allow_unlabelled=allow_unlabelled)


def _with_classes(base: Dataset, classes: list[str]) -> Dataset:
    return base.with_classes(classes)


def _viewed(base: Dataset, method: str, arguments: tuple[Any, ...]) -> Dataset:
    return base._view(method, *arguments)


def _numbered(base: Dataset, made: Native) -> Dataset:
    """Make a view again in a fork of the process that made it."""
    return base._root()._view("subset", made.indices().numpy().tolist())


def _renumbered(root: Dataset, indices: Any) -> Dataset:
    return root._view("subset", indices.tolist())


def _wholly(base: Dataset) -> Dataset:
    return base._of(base._native.whole(), _wholly, (base,))


def _stratified(by: str | None) -> bool:
    if by not in (None, "label"):
        raise SettingError(f"{by!r} is not a field to divide by, expected 'label'")
    return by is not None


@dataclass(frozen=True)
class Stats:
    """The counts that `Dataset.stats` made of the samples of a data set.

    Attributes
    ----------
    samples
        The number of samples.
    classes
        How many samples each class has, as `Dataset.histogram`.
    bytes
        The bytes of the samples that ``formats`` counts, without damaged ones.
    formats
        How many samples each format has: ``jpeg``, ``png`` and so on, ``other`` for samples that
        are not images.
    widths, heights
        The least, the median (the lower of two) and the greatest width and height of images as they
        are stored; None without images.
    mean, std
        The mean and the standard deviation of each channel over all pixels, from 0 to 1; None
        without ``pixels=True``.
    damaged
        The first 100 damaged samples, as pairs of their number in the stored data set and the
        error.
    damaged_count
        The number of damaged samples.
    """

    samples: int
    classes: dict[str | int, int]
    bytes: int
    formats: dict[str, int]
    widths: tuple[int, int, int] | None
    heights: tuple[int, int, int] | None
    mean: list[float] | None
    std: list[float] | None
    damaged: list[tuple[int, str]]
    damaged_count: int


# Fields of batches that samples have by themselves.
_OF_EVERY_BATCH = ("image", "bytes", "label", "index", "valid", "size", "key")

# Fields of every sample, which `Dataset.schema` lists last.
_LAST = ("label", "key", "index")


class SampleMeta:
    """A sample as a filter sees it: what is known without decoding it.

    Attributes
    ----------
    index : int
        The number in the stored data set.
    key : str or None
        The name.
    label : int or None
        The label.
    format : str
        The format that the container states, such as ``"jpeg"``.
    bytes : int
        The size in bytes.
    """

    def __init__(self, dataset: Dataset, place: int) -> None:
        entry = dataset._native.entry(place)
        self._dataset, self._place = dataset, place
        self._size = entry["width"], entry["height"]
        self.index: int = entry["index"]
        self.key: str | None = entry["key"]
        self.label: int | None = entry["label"]
        self.format: str = entry["format"].lower()
        self.bytes: int = entry["bytes"]

    @property
    def class_name(self) -> str | None:
        """The name of the class."""
        classes = self._dataset.classes
        has_name = self.label is not None and 0 <= self.label < len(classes)
        return classes[self.label] if has_name else None  # type: ignore[index]

    @property
    def width(self) -> int:
        """The width as stored; the image's header is read if the index does not have it."""
        return self._measured()[0]

    @property
    def height(self) -> int:
        """The height as stored."""
        return self._measured()[1]

    def _measured(self) -> tuple[int, int]:
        if 0 in self._size:
            info = _native.probe(self._dataset._native.read(self._place))
            self._size = info.width, info.height
        return self._size

    def field(self, name: str) -> Any:
        """Return a further file of the sample, as `Sample` has it; None if it is missing."""
        return Sample(self._dataset, self._place).get(name)

    def __repr__(self) -> str:
        return f"SampleMeta(index={self.index}, key={self.key!r}, label={self.label})"


# The kinds of fields in words.
_WORDS = {"Json": "JSON", "MultiLabel": "classes", "Label": "class"}


class Sample(Mapping[str, Any]):
    """A sample: its fields by name, decoded when they are asked for.

    ``image`` is a `Tensor` of (height, width, 3) in red, green and blue, with 8 bits: alpha is left
    out, and 16 bits and floats are reduced as by a `DataLoader` without ``pixels``. ``decode`` of
    the bytes of ``raw("image")`` has other pixels. Of samples that are not images, ``data`` has the
    bytes. ``label`` is None without one.

    Fields that `Dataset.with_fields` gave a kind are as in batches: numbers, texts, and tensors of
    arrays, masks, boxes and images in their own sizes. The other files go by their extensions: JSON
    is parsed, text is ``str``, images are tensors, and ``.npy`` files arrays. Those without a known
    extension are images or arrays by their content, otherwise bytes, which `raw` has of every file.
    Fields are also attributes: ``sample.image``.
    """

    def __init__(self, dataset: Dataset, place: int) -> None:
        native = dataset._native
        entry = native.entry(place)
        self._native, self._place = native, place
        self._dataset, self._kinds = dataset, dataset.fields
        self._has_read_kinds = not self._kinds
        self._files: dict[str, bytes] = dict(native.fields(place))
        self._values: dict[str, Any] = {name: entry[name] for name in _LAST}
        self._format = entry["format"].lower()
        is_image = self._format in _IMAGE_FORMATS
        # What stands in the container decides; the content does where it says nothing.
        self._main = "image" if is_image or _is_image(native.read(place)) else "data"

    @classmethod
    def _of_row(cls, row: dict[str, Any]) -> Sample:
        sample = cls.__new__(cls)
        sample._files, sample._values, sample._main, sample._format = {}, row, "", ""
        sample._kinds, sample._has_read_kinds = {}, True
        return sample

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = self._decoded(name)
        return self._values[name]

    def _decoded(self, name: str) -> Any:
        is_further = name not in (self._main, *self._files)
        if not self._has_read_kinds and (name in self._kinds or is_further):
            self._read_kinds()
            if name in self._values:
                return self._values[name]
        if name == self._main:
            if name == "image":
                return self._native.image(self._place, self._dataset.exif)
            return self._native.read(self._place)
        if name not in self._files:
            raise KeyError(f"{name}: the sample has {', '.join(self)}")
        return _value(name, self._files[name])

    def _named_by_kinds(self) -> list[str]:
        return [*self._kinds, *Request(self._kinds).of_boxes]

    def _read_kinds(self) -> None:
        """Read the fields that have kinds, as a loader reads them."""
        from .loader import DataLoader
        from .settings import Ranks

        view = self._dataset._view("subset", [self._place])
        request = Request(self._kinds)
        settings = {"transform": self._in_own_sizes(request), "decode": request.needs_image}
        with DataLoader(view, 1, **settings, num_workers=1, ranks=Ranks(0, 1)) as loader:
            batch = next(iter(loader))
            for name in batch.keys():  # noqa: SIM118
                if name not in _OF_EVERY_BATCH:
                    values = batch[name]
                    is_number = isinstance(values, _native.Tensor) and values.ndim == 1
                    self._values[name] = values.item(0) if is_number else values[0]
        self._has_read_kinds = True

    def _in_own_sizes(self, request: Request) -> Any:
        """Return transforms to the size that each image has, where a batch needs one size."""
        from .transforms import Resize

        is_wide = request.mask is not None and request.mask["dtype"] != "uint8"
        if not (request.images or is_wide):
            return None
        files = {name.lower(): data for name, data in self._files.items()}
        columns = {name: column for name, (column, _) in request.images.items()}
        stored = {name: files.get(column.lower()) for name, column in columns.items()}
        transforms = {}
        for name, data in {"image": self._native.read(self._place), **stored}.items():
            try:
                info = _native.probe(data or b"")
                size = info.height, info.width
            except ValueError:
                # The loader says which sample is bad or lacks the file.
                size = 1, 1
            transforms[name] = Resize(size, interpolation="nearest")
        return transforms

    def raw(self, name: str) -> bytes:
        """Return the bytes of a file as they are stored."""
        if name == self._main:
            return self._native.read(self._place)
        return self._files[name]

    def kind(self, name: str) -> str:
        """Return what a field is, in words."""
        if name in self._kinds:
            kind = type(self._kinds[name]).__name__
            return _WORDS.get(kind, kind.lower())
        if name in self._named_by_kinds():
            return "numbers"
        if name == "image" == self._main:
            return f"image ({self._format})" if self._format != "unknown" else "image"
        if name in self._files:
            return _kind(name, self._files[name])
        known = {"label": "number", "index": "number", "key": "text"}
        return known.get(name, "bytes" if self._main else "column")

    def __iter__(self) -> Iterator[str]:
        if self._main:
            yield self._main
        yield from self._named_by_kinds()
        # Files of fields with kinds are these fields.
        sources = {field.place(name)[0].lower() for name, field in self._kinds.items()}
        files = [name for name in self._files if name.lower() not in {*sources, *self._kinds}]
        yield from files
        known = (self._main, *self._named_by_kinds(), *self._files, *_LAST)
        yield from (name for name in self._values if name not in known)
        yield from (name for name in _LAST if name in self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self:
            return self[name]
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "image" and self._main == "data":
            raise AttributeError(
                "a sample has no image: its data is not an image file of a known format"
            )
        raise AttributeError(f"a sample has no {name}: it has {', '.join(self)}")

    def __reduce__(self) -> tuple[Any, ...]:
        if not self._main:
            return Sample._of_row, (self._values,)
        return Sample, (self._dataset, self._place)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {self.kind(name)}" for name in self)
        return f"Sample({fields})"


def _is_image(data: bytes) -> bool:
    try:
        _native.probe(data)
    except ValueError:
        return False
    return True


def _kind(name: str, data: bytes) -> str:
    """Return what a field is by its extension, or without a known one by its content."""
    extension = name.rpartition(".")[2].lower()
    if extension in _IMAGES:
        return "image"
    if extension == "json":
        return "JSON"
    if extension in _TEXTS:
        return "text"
    if extension == "npy" or data.startswith(b"\x93NUMPY"):
        return "array" if find_spec("numpy") else "bytes"
    return "image" if _is_image(data) else "bytes"


def _value(name: str, data: bytes) -> Any:
    kind = _kind(name, data)
    if kind == "image":
        return _native.decode(data)
    if kind == "JSON":
        return json.loads(data)
    if kind == "text":
        return data.decode("utf-8", "replace")
    if kind == "array":
        import numpy as np

        return np.load(io.BytesIO(data), allow_pickle=False)
    return data
