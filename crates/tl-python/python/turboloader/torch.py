"""PyTorch: data sets that its loaders, samplers and trainers take.

A training loop iterates over a `turboloader.DataLoader` directly, and so does Lightning, which also
resumes it. This module is for code that requires a data set of torch:

- `IterableDataset` yields whole batches, for ``DataLoader(dataset, batch_size=None)`` of torch or
  torchdata, and with it for Accelerate.
- `Dataset` has samples by number, as ``ImageFolder`` of torchvision has them, for samplers and for
  trainers that make batches themselves, such as Hugging Face's.

``docs/trainers.md`` says which class goes with which trainer.

Tensors lie in memory that can be pinned as any other: ``DataLoader(dataset, batch_size=None,
pin_memory=True)``, or ``batch["image"].torch().pin_memory()`` of a `turboloader.DataLoader`.

>>> import torch
>>> import turboloader.torch
>>> dataset = turboloader.torch.IterableDataset("train.tar", 64, shuffle=True, image_size=224)
>>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(6))
>>> for images, labels in torch.utils.data.DataLoader(dataset, batch_size=None):
...     loss = torch.nn.functional.cross_entropy(model(images / 255), labels)
"""

# It is checked with and without torch installed.
# mypy: disable-error-code="import-not-found,misc,no-untyped-call,type-arg"

from __future__ import annotations

import functools
import hashlib
import json
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset as TorchIterableDataset
from torch.utils.data import get_worker_info

from . import _native
from ._accesses import Accesses
from ._advice import advised, nearest
from ._checks import check_choice, names, path_list, whole
from ._native import Recipe
from ._paths import expand, is_url, shown
from ._ranks import ShardingCheck
from ._recipes import groups, recipe_of_samples
from ._settings import Parity, are_kinds, check_fields, opened, place
from ._turns import Turns
from ._warnings import warn, warn_of_notes
from .dataset import Dataset as TurboDataset
from .dataset import Labels, open
from .exceptions import LoaderError, SampleError, SampleIndexError, SettingError, StateError
from .fields import Field, Request
from .loader import DataLoader
from .settings import Errors, Ranks, StoreLike, as_store
from .transforms import functions

__all__ = ["Dataset", "IterableDataset"]

# What a state is about, and not where in the epoch it is.
_IDENTITY = (
    "version",
    "dataset",
    "recipe",
    "order",
    "seed",
    "global_batch",
    "mixing_group",
    "replacement_group",
    "tail",
)

_BOTH = ("image", "label")

# The fields that every sample of a map-style data set has.
_SAMPLE = ("image", "label", "index", "key")

# Draws of another sample instead of a bad one. If half of the samples are bad, one of 65,536 bad
# samples is then an error, and if all are bad, the first one is.
_MOST_REPLACEMENTS = 16

Fields = Sequence[str] | Mapping[str, str] | Mapping[str, Field] | None


class IterableDataset(TorchIterableDataset):
    """Batches of a `turboloader.DataLoader`, as a data set of torch.

    It makes batches itself: pass ``batch_size=None`` to the loader of torch around it, and leave
    that one's ``num_workers`` at 0: threads do the work without copying batches between processes.

    In worker processes it works all the same: worker ``w`` of ``n`` makes batches ``w``, ``w + n``
    and so on, and the loader gives the batches that it gives without workers, in the same order.
    Leaving out a batch would change that order, so with ``errors="skip"`` a batch of which every
    sample is bad is an error in workers.

    Each iteration is the next epoch, unless `set_epoch` says otherwise; that reaches workers too,
    also persistent ones. `state_dict` and `load_state_dict` are what ``StatefulDataLoader`` of
    torchdata asks for; outside of workers a state is one of `turboloader.DataLoader`.

    Parameters
    ----------
    data, batch_size
        As those of `turboloader.DataLoader`.
    fields
        What a batch is: a tuple of the fields that are named, a dict where a mapping says what they
        are to be called, such as ``{"pixel_values": "image", "labels": "label"}``, or a dict of all
        fields for None. A dict of kinds, such as ``{"caption": tl.Text("txt")}``, adds these fields
        and gives a dict of all.
    **settings
        What else `turboloader.DataLoader` takes; ``num_workers`` are its threads. With
        ``ranks="auto"`` rank and world size are those of the process that makes the data set;
        workers share its part. Several ranks fill up the last batch: take the field ``"valid"``
        too, or pass ``drop_last=True``.

    Examples
    --------
    >>> import torch
    >>> dataset = IterableDataset("train.tar", batch_size=4, shuffle=True, image_size=224)
    >>> loader = torch.utils.data.DataLoader(dataset, batch_size=None)
    >>> images, labels = next(iter(loader))
    >>> images.shape
    torch.Size([4, 224, 224, 3])
    """

    def __init__(
        self,
        data: Any,
        batch_size: int = 32,
        *,
        fields: Fields = _BOTH,
        **settings: Any,
    ) -> None:
        super().__init__()
        for name in ("output_format", "worker_id"):
            if name in settings:
                raise SettingError(f"{name}: not supported by torch data sets; leave it out")
        check_fields(fields)
        self._ranks = place(settings.get("ranks"))
        self._sharding = ShardingCheck(self._ranks.world_size, settings.get("ranks") is not None)
        self._settings = {
            **settings,
            "store": as_store(settings.get("store")),
            "data": data,
            "batch_size": batch_size,
            "output_format": "torch",
            "fields": fields,
        }
        self._fields: Any = None if are_kinds(fields) else fields
        self._loaders: dict[tuple[int, int, int], DataLoader] = {}
        loader = self._loader(0, 1)
        warn_of_notes(loader._native.notes(usual=False))
        self._len = len(loader)
        self._start = loader.state_dict()
        self._turns = Turns()
        # The iteration that this process is in, or will be in next.
        self._iteration = 0
        # The epoch and the batch that the consumer in this process gets next, while it iterates.
        self._present: tuple[int, int] | None = None
        # The start of the next iteration of this worker, from its own state.
        self._resumed: tuple[int, int] | None = None

    def __len__(self) -> int:
        """Return how many batches an epoch has for this rank, exactly."""
        return self._len

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of the next epoch, or the rest of the epoch of a state.

        An epoch counts when its first batch is asked for.
        """
        self._iteration, self._present = self._turns.make(), None
        return self._batches(self._iteration)

    def _batches(self, iteration: int) -> Iterator[Any]:
        worker, workers = _worker()
        if worker == 0:
            self._sharding.begin()
        epoch, first = self._resumed or self._turns.next(iteration)
        self._resumed = None
        self._turns.begin(iteration, epoch)
        self._present = epoch, first
        batches = self._begun(epoch, first, workers) if first < self._len else iter(())
        for batch in batches:
            # Batches of which every sample was skipped are missing.
            number = batch.number * workers + first % workers
            if number >= self._len:
                break
            self._present = epoch, number + workers
            yield batch.torch() if self._fields is None else _named(self._fields, batch)
        self._present, self._iteration = None, iteration + 1

    def _begun(self, epoch: int, first: int, workers: int) -> Iterator[_native.Batch]:
        # Batch b of this rank is batch b // n of slot b % n: the ranks of a world n times as large.
        loader = self._loader(first % workers, workers)
        state = json.loads(loader._native.state(epoch))
        state["consumed"] = first // workers * state["global_batch"]
        return loader._native.resume(json.dumps(state))

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch the next iteration is, in this process and in workers.

        A state that was loaded stays where it is of this epoch.
        """
        epoch = whole("epoch", epoch)
        following, batch = self._turns.next(0)
        if following != epoch or batch == 0:
            self._turns.choose(epoch, 0)
        self._present = None

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the consumer; in a worker, the position of this worker.

        Raises
        ------
        StateError
            If workers of torch's DataLoader make the batches, and this is not one of them: they are
            ahead of the consumer. ``StatefulDataLoader`` of torchdata has the state.
        """
        if get_worker_info() is None and self._turns.is_last_in_workers():
            raise StateError(
                "the data set does not know which batches the consumer has received, because "
                "workers of torch's DataLoader make them: use StatefulDataLoader of torchdata and "
                "save its state_dict(), or pass num_workers=0; between two epochs, call "
                "set_epoch(next_epoch) before state_dict()"
            )
        worker, workers = _worker()
        epoch, batch = self._present or self._resumed or self._turns.next(self._iteration)
        state = {**self._start, "epoch": epoch, "consumed": batch * self._start["global_batch"]}
        if workers > 1:
            state.update(worker=worker, workers=workers)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from ``state`` with the next iteration, which is what is left of its epoch.

        Raises
        ------
        StateError
            For a state of another data set, transform, order, seed or global batch, or of a worker
            where there are not as many.
        """
        if not isinstance(state, Mapping):
            raise StateError(f"a state is a dict, not {state!r}")
        for name in _IDENTITY:
            both = {repr(state.get(name)), repr(self._start[name])}
            # These two tails differ in the last batch only.
            if len(both) > 1 and both != {"'pad'", "'uneven'"}:
                ours, theirs = self._start[name], state.get(name)
                raise StateError(f"the state's {name} is {theirs}, this data set's is {ours}")
        worker, workers = _worker()
        made = state.get("worker", 0), state.get("workers", 1)
        epoch, consumed = (_number(state, name) for name in ("epoch", "consumed"))
        batch, rest = divmod(consumed, self._start["global_batch"])
        if rest != 0:
            raise StateError(f"consumed is {consumed}, expected a multiple of the global batch")
        # Each of several workers is up to all of them further than the last batch.
        if batch >= self._len + workers:
            raise StateError(f"the state is after {batch} batches, an epoch has {self._len}")
        self._present = None
        if made == (0, 1):
            self._turns.choose(epoch, batch)
            self._resumed = None
        elif made == (worker, workers):
            self._resumed = epoch, batch
        else:
            raise StateError(
                f"the state is that of worker {made[0]} of {made[1]}, this is worker {worker} of "
                f"{workers}"
            )

    def _loader(self, slot: int, slots: int) -> DataLoader:
        key = os.getpid(), slot, slots
        if key not in self._loaders:
            self._loaders[key] = _QuietLoader(**self._place_of(slot, slots))
        return self._loaders[key]

    def _place_of(self, slot: int, slots: int) -> dict[str, Any]:
        settings = dict(self._settings)
        rank, world = self._ranks.rank, self._ranks.world_size
        settings["ranks"] = Ranks(slot * world + rank, slots * world)
        if slots == 1:
            return settings
        if settings.get("buckets") is not None:
            raise SettingError(
                "buckets: batches would depend on the number of workers; leave num_workers of "
                "torch's DataLoader at 0"
            )
        if settings.get("num_workers", 0) == 0:
            settings["num_workers"] = max(1, _cores() // slots)
        # Rows that only fill up, and batches that do not count, come after those of this rank.
        settings["tail"] = "pad" if self._start["tail"] == "pad" else "uneven"
        settings["drop_last"] = False
        return settings

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaders": {}, "_present": None}

    def __repr__(self) -> str:
        paths = self._settings["data"]
        if isinstance(paths, Sequence) and not isinstance(paths, str):
            paths = [shown(os.fspath(path)) for path in paths]
        elif isinstance(paths, (str, os.PathLike)):
            paths = shown(os.fspath(paths))
        return f"IterableDataset({paths!r}, {self._len} batches)"


class _QuietLoader(DataLoader):
    """A loader whose data set warns itself, once for all processes."""

    _warns = False


class Dataset(TorchDataset):
    """Samples by number: an image tensor and a label, as ``ImageFolder`` of torchvision has them.

    Every access to a sample draws its augmentation anew. Access ``n`` to sample ``i`` gives the
    image that a `turboloader.DataLoader` has of ``i`` in epoch ``n``, so a loop that visits each
    sample once an epoch needs no further call, with or without workers.
    Samplers of torch decide on the order.

    `set_epoch` chooses the epoch: the first access to each sample gives the image of that epoch, on
    every rank, and repetitions within the epoch have separate draws. Call it before each epoch,
    next to ``DistributedSampler.set_epoch``, where results must not depend on how an earlier epoch
    ended: workers of torch's DataLoader make samples ahead, and those count even if the loop never
    receives them. Without it, each rank above 0 draws from a different seed.

    With a sampler that draws with replacement, two workers may access one sample at the same moment
    and then get the same draw, because counting takes no lock. Pass ``num_workers=0`` if each
    repetition must differ, which ``threads`` speeds up.

    Parameters
    ----------
    data
        A `turboloader.Dataset` or a view of one, or a folder of classes, a TAR archive, a TBL file,
        or a list or pattern of such.
    transform
        As that of `turboloader.DataLoader`, also a ``Compose`` of torchvision, or a dict for
        several images. None gives images in their own sizes.
    target_transform
        What is done to a label, as in torchvision.
    image_size, dtype, decode_margin, parity, exif, channels, pixels, labels
        As those of `turboloader.DataLoader`. Channels come first, whatever a `Recipe` says.
    seed
        What transforms are random about.
    threads
        How many threads make the samples of ``__getitems__``; 0 for one for each core, and for one
        in a worker of torch's DataLoader.
    fields
        The fields of a sample: a tuple of some of ``"image"``, ``"label"``, ``"index"``, ``"key"``,
        the images of a dict of transforms, and the fields of a data set
        (``turboloader.open(path, fields=kinds)``); or a dict if a mapping gives their names. A dict
        of names and kinds, as that of `turboloader.DataLoader`, adds these to the fields of the
        data set and gives dicts of all: ``{"caption": tl.Bytes("txt")}``. Kinds other than `Bytes`
        and several images are made by a loader of one sample, which takes some milliseconds:
        `turboloader.DataLoader` is the fast way to them.
    errors
        ``"raise"``, or ``"replace"`` to use another sample instead of a bad one, drawn from the
        seed, the epoch and the number; or an `Errors` of these. All fields are then those of the
        other sample. The first bad sample is a warning.
    store
        A `Store`: how stores that URLs name are read, and where compressed archives are unpacked.

    Attributes
    ----------
    classes : list of str
        The names of the classes, indexed by label.
    class_to_idx : dict
        The labels by name.
    notes : list of str
        Remarks on the files and their labels, one line each.

    Examples
    --------
    >>> dataset = Dataset("photos", transform=[T.RandomResizedCrop(224), T.ToTensor()])
    >>> image, label = dataset[0]
    >>> image.shape, dataset.classes[label]
    (torch.Size([3, 224, 224]), 'animals')
    """

    @advised
    def __init__(
        self,
        data: Any,
        transform: Any = None,
        target_transform: Callable[[int], Any] | None = None,
        *,
        image_size: int | tuple[int, int] | None = None,
        dtype: Any = None,
        decode_margin: float | None = None,
        parity: Parity | None = None,
        exif: bool | None = None,
        channels: int | None = None,
        pixels: Any = None,
        labels: Labels | None = None,
        seed: int = 42,
        threads: int = 0,
        fields: Sequence[str] | Mapping[str, str] | Mapping[str, Field] = _BOTH,
        errors: Errors | Literal["raise", "replace"] = "raise",
        store: StoreLike = None,
    ) -> None:
        super().__init__()
        errors = _policy(errors)
        if errors in ("skip", "fill"):
            raise SettingError(
                f"errors is {errors}, but a data set of samples by number has a fixed length "
                'and no batch: pass "raise" or "replace", or use IterableDataset'
            )
        check_choice("errors", errors, ("raise", "replace"))
        kinds: Any = fields if are_kinds(fields) else {}
        self._data = self._opened_for(data, transform, labels, kinds, store)
        self._paths = expand(path_list(data)) if self._data is None else []
        if exif is None:
            exif = self._data is not None and self._data.exif
        options = {"dtype": dtype, "decode_margin": decode_margin, "parity": parity}
        options.update(channels=channels, pixels=pixels)
        (own_names, own), *others = groups(transform)
        self._recipe = recipe_of_samples(own, image_size, False, **options)
        self._functions = functions(transform)
        # Pixels that nothing is done to have their channels last.
        self._is_channels_last = _has_channels_last(self._recipe)
        self._seed, self._exif, self._threads = seed, exif, threads
        self._target_transform = target_transform
        self._replaces = errors == "replace"
        self._has_warned, self._store = False, as_store(store)
        request = Request({} if self._data is None else self._data.fields)
        images = [*own_names, *(name for group, _ in others for name in group)]
        self._fields = _picked(fields, images, kinds, request)
        self._check_fields([own_names[0], *_SAMPLE[1:]], request, images)
        # Extensions of the files that are fields as they are.
        stored = [(name, file) for name, file, kind, _ in request.stored if kind == "bytes"]
        self._files = {name: file for name, file in stored if name in _sources(self._fields)}
        # A loader of one sample makes the others, if they are not those of images alone.
        self._settings: dict[str, Any] | None = None
        known = {*_SAMPLE, *self._files}
        if isinstance(transform, Mapping) or not set(_sources(self._fields)) <= known:
            # Batches have images in their own sizes with channels last.
            has_own_sizes = self._recipe.output_size is None
            self._is_channels_last |= has_own_sizes
            self._settings = {
                "transform": transform,
                "image_size": image_size,
                "exif": exif,
                "channels_last": None if isinstance(own, Recipe) else has_own_sizes,
                "output_format": "torch",
                "keys": True,
                "num_workers": 1,
                "ranks": Ranks(0, 1),
                **options,
            }
        self._open()
        self._samples.require_images()
        if self._data is None:
            warn_of_notes(self._samples.notes(usual=False))
        # Accesses count by sample, which may be at several places of a view.
        count = len(self) if self._data is None else len(self._data._native.whole())
        self._accesses = Accesses(seed, count)

    def _open(self) -> None:
        source = self._paths if self._data is None else self._data._native
        options: dict[str, Any] = {
            "seed": self._seed,
            "exif": self._exif,
            "user_transforms": self._functions,
            "files": list(self._files.values()),
            "stores": self._store,
        }
        self._opened = _native.Samples(source, self._recipe, **options)
        # Connections to stores belong to the process that made them, and workers may be forked.
        urls = self._paths if self._data is None else self._data._native.locations()
        self._process = os.getpid() if any(map(is_url, urls)) else None
        self.classes = self._samples.class_names
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}

    @property
    def _samples(self) -> _native.Samples:
        if self._process not in (None, os.getpid()):
            self._open()
        return self._opened

    @staticmethod
    def _opened_for(
        data: Any, transform: Any, labels: Labels | None, kinds: Mapping[str, Field], store: Any
    ) -> TurboDataset | None:
        """Return an open data set; None for paths that need no more than their images."""
        found = opened(data, store)
        if found is not None and labels is not None:
            raise SettingError("labels: the data set is open already; call its with_labels")
        if found is None and (labels is not None or kinds or isinstance(transform, Mapping)):
            found = open(data, labels=labels, store=store)
        return found.with_fields(kinds) if found is not None and kinds else found

    def _check_fields(self, own: list[str], request: Request, images: list[str]) -> None:
        if taken := [name for name in own if name in request.names]:
            raise SettingError(f"field {taken[0]}: every sample has its own, choose another name")
        further = {*request.names, *request.of_boxes, *images}
        known = [*own, *sorted(further - {*own})]
        for name in _sources(self._fields):
            if name not in known:
                raise SettingError(
                    f"fields names {name}, a sample has {', '.join(known)}{nearest(name, known)}"
                )

    @property
    def notes(self) -> list[str]:
        """Remarks on the files and their labels, one line each."""
        return self._samples.notes()

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._samples)

    def __getitem__(self, index: int) -> Any:
        """Return one sample, with a separate draw."""
        number = self._checked(index)
        return self._sample(number, *self._next(number))

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return several samples, which threads make at the same time."""
        numbers = [self._checked(index) for index in indices]
        draws = [(number, *self._next(number)) for number in numbers]
        in_worker = get_worker_info() is not None
        threads = self._threads or (1 if in_worker else _cores())
        if threads == 1 or len(numbers) < 2:
            return [self._sample(*draw) for draw in draws]
        pool = _pool(os.getpid(), threads)
        return list(pool.map(lambda draw: self._sample(*draw), draws))

    def _next(self, number: int) -> tuple[int, int]:
        sample = number if self._data is None else self._samples.number(number)
        return self._accesses.next(sample)

    def _checked(self, index: int) -> int:
        number, count = operator.index(index), len(self._samples)
        if not -count <= number < count:
            raise SampleIndexError(f"no sample {number}: the data set has {count}")
        return number % count

    def _sample(self, number: int, epoch: int, seed: int) -> Any:
        try:
            return self._made(number, epoch, seed)
        except LoaderError as error:
            # An error without a number does not concern one sample.
            if not self._replaces or error.sample is None:
                raise
            first = error
        self._warn_of(first)
        for attempt in range(_MOST_REPLACEMENTS):
            try:
                return self._made(self._replacement(number, epoch, seed, attempt), epoch, seed)
            except LoaderError as error:
                if error.sample is None:
                    raise
        raise SampleError(
            f"sample {number} is bad, and so are {_MOST_REPLACEMENTS} samples drawn to replace it: "
            f"{first}"
        ) from first

    def _replacement(self, number: int, epoch: int, seed: int, attempt: int) -> int:
        text = f"{seed} epoch {epoch} sample {number} replacement {attempt}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") % len(self)

    def _warn_of(self, error: LoaderError) -> None:
        if not self._has_warned:
            self._has_warned = True
            warn(f"bad samples are replaced, the first: {error}")

    def _made(self, number: int, epoch: int, seed: int) -> Any:
        if self._settings is not None:
            return _named(self._fields, self._of_loader(number, epoch, seed))
        samples = self._samples

        def label() -> Any:
            found = samples.label(number)
            return self._labelled(-1 if found is None else found)

        def image() -> Any:
            made = samples.image(number, epoch, seed=seed).torch()
            return made.movedim(-1, -3).contiguous() if self._is_channels_last else made

        values: dict[str, Callable[[], Any]] = {
            "image": image,
            "label": label,
            "index": lambda: samples.number(number),
            "key": lambda: samples.key(number),
        }
        if self._files:
            files = functools.cache(lambda: samples.files(number))
            for at, name in enumerate(self._files):
                values[name] = functools.partial(lambda at: files()[at], at)
        return _named(self._fields, _Called(values))

    def _labelled(self, label: int) -> Any:
        return label if self._target_transform is None else self._target_transform(label)

    def _of_loader(self, number: int, epoch: int, seed: int) -> dict[str, Any]:
        """Return the fields of a sample as batches have them, channels first."""
        assert self._data is not None and self._settings is not None
        view = self._data._view("subset", [number])
        with _QuietLoader(view, 1, seed=seed, **self._settings) as loader:
            loader.set_epoch(epoch)
            batch = next(iter(loader))
            values = {name: _first(batch[name]) for name in batch.keys()}  # noqa: SIM118
        values["label"] = self._labelled(values["label"])
        if self._is_channels_last:
            own = groups(self._settings["transform"])[0][0][0]
            values[own] = values[own].movedim(-1, -3).contiguous()
        return values

    @functools.cached_property
    def targets(self) -> list[int]:
        """The labels of all samples, -1 for samples without one."""
        return [-1 if label is None else label for label in self._samples.labels()]

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, in this process and in workers of torch's DataLoader."""
        self._accesses.choose(whole("epoch", epoch))

    def state_dict(self) -> dict[str, Any]:
        """Return the latest epoch of an access, for ``StatefulDataLoader`` of torchdata.

        A state that was saved between two epochs belongs to the earlier one: call `set_epoch` after
        loading it.
        """
        return self._accesses.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue in the epoch of ``state``.

        Raises
        ------
        StateError
            For anything but a state of such a data set.
        """
        if not isinstance(state, Mapping) or not isinstance(state.get("is_chosen"), bool):
            raise StateError(f"invalid state {state!r}: expected one of turboloader.torch.Dataset")
        self._accesses.load_state_dict({**state, "epoch": _number(state, "epoch")})

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_opened"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._open()

    def __repr__(self) -> str:
        paths = self._data or [shown(path) for path in self._paths]
        return f"Dataset({paths}, {len(self)} samples: {self._recipe})"


def _has_channels_last(recipe: Recipe) -> bool:
    said = json.loads(recipe.to_json())
    return not said["ops"] or said["output"]["layout"] == "hwc"


def _picked(
    fields: Any, images: list[str], kinds: Mapping[str, Field], request: Request
) -> Sequence[str] | Mapping[str, str]:
    """Return the fields of a sample, by their names or under others."""
    if kinds:
        return {name: name for name in (*images, "label", *request.names, *request.of_boxes)}
    return (*images, "label") if fields == _BOTH else fields


def _sources(fields: Sequence[str] | Mapping[str, str]) -> Sequence[str]:
    """Return the fields that samples need to have."""
    return list(fields.values()) if isinstance(fields, Mapping) else names("fields", fields)


def _first(values: Any) -> Any:
    """Return the value of the only row of a batch."""
    if isinstance(values, list) or values.ndim > 1:
        return values[0]
    return values.item()


class _Called:
    """Values that are made when they are asked for."""

    def __init__(self, values: Mapping[str, Callable[[], Any]]) -> None:
        self.values = values

    def __getitem__(self, name: str) -> Any:
        return self.values[name]()


def _policy(errors: Any) -> Any:
    """Return the policy for bad samples, which nothing counts here."""
    if not isinstance(errors, Errors):
        return errors
    if errors.at_most is not None:
        raise SettingError(
            "Errors: at_most is a part of an epoch, which samples by number do not have: leave it "
            "out"
        )
    return errors.policy


def _number(state: Mapping[str, Any], name: str) -> int:
    try:
        number = operator.index(state[name])
    except (KeyError, TypeError):
        number = -1
    if number < 0:
        raise StateError(f"the state's {name} is {state.get(name)!r}, expected a whole number")
    return number


def _named(fields: Sequence[str] | Mapping[str, str], values: Any) -> Any:
    if isinstance(fields, Mapping):
        return {name: values[field] for name, field in fields.items()}
    return tuple(values[field] for field in fields)


def _worker() -> tuple[int, int]:
    """Return which worker of torch's DataLoader this process is, and of how many."""
    worker = get_worker_info()
    return (0, 1) if worker is None else (worker.id, worker.num_workers)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@functools.lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return the threads of this process; a forked one has none of its parent's."""
    return ThreadPoolExecutor(threads, "turboloader")
