"""The settings of a loader, in the form of the native library."""

from __future__ import annotations

import copy
import inspect
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    cast,
    get_type_hints,
)

from ._advice import nearest
from ._checks import (
    check_choice,
    check_flags,
    given,
    names,
    one_or_more,
    path_list,
    type_name,
    whole,
)
from ._functions import check_given, with_annotations
from ._native import Recipe
from ._paths import expand
from ._ranks import ShardingCheck, launched_ranks
from ._recipes import groups, images_of, recipe_of
from .exceptions import SettingError
from .fields import Field, Request
from .settings import (
    Buckets,
    Cache,
    Clips,
    Columns,
    Decoder,
    Device,
    Errors,
    Group,
    Memory,
    OnError,
    Ranks,
    ReaderKind,
    Readers,
    Requests,
    Retry,
    Store,
    as_group,
)
from .transforms import BatchTransform, functions, moving

if TYPE_CHECKING:
    from .dataset import Dataset

_P = ParamSpec("_P")

OutputFormat = Literal["tensor", "numpy", "torch", "jax", "tf"]
Tail = Literal["drop", "pad", "uneven"]
DecodeMode = Literal["exact", "fast", "nvjpeg"]
Parity = Literal["pil", "tensor"]
FileFormat = Literal[
    "folder",
    "imagefolder",
    "tar",
    "webdataset",
    "tbl",
    "parquet",
    "arrow",
    "idv",
    "tbf",
    "files",
    "images",
    "manifest",
]

# Whether channels come last in an output format; None for the recipe's choice.
_CHANNELS_LAST: Final[dict[str, bool | None]] = {
    "tensor": None,
    "numpy": True,
    "torch": None,
    "jax": None,
    "tf": True,
}

# Output formats of the first turboloader.
_EARLIER_FORMATS: Final = {
    "dict": "'tensor'",
    "numpy_chw": "'numpy' with channels_last=False",
    "pytorch": "'torch'",
    "tensorflow": "'tf'",
}

# What files of a format are.
_KINDS = {
    "folder": "folder",
    "imagefolder": "folder",
    "tar": "tar",
    "webdataset": "tar",
    "tbl": "tbl",
    "idv": "idv",
    "tbf": "tbf",
    "files": "files",
    "images": "images",
    "arrow": "arrow",
    "parquet": "parquet",
    "manifest": "manifest",
}

# The settings that are groups.
_GROUPS: Final[dict[str, type[Group]]] = {
    "buckets": Buckets,
    "cache": Cache,
    "clips": Clips,
    "columns": Columns,
    "device": Device,
    "errors": Errors,
    "memory": Memory,
    "pin_memory": Device,
    "readers": Readers,
    "retry": Retry,
    "store": Store,
}


def check_format(format: str | None) -> None:
    """Refuse a format of files that does not exist."""
    check_choice("format", format or "auto", ("auto", *_KINDS))


def check_kinds(format: str | None, kinds: Sequence[str]) -> None:
    """Refuse files that are not in the expected format."""
    check_format(format)
    kind = _KINDS.get(format or "")
    # A folder with metadata files is a list of samples.
    is_list = format == "imagefolder" and list(kinds) == ["manifest"]
    is_table = format == "parquet" and list(kinds) == ["rows"]
    if kind is not None and list(kinds) != [kind] and not is_list and not is_table:
        raise SettingError(f"format is {format}, but the files are {', '.join(kinds)}")


def opened(data: Any, store: Any) -> Dataset | None:
    """Return an open data set, which has the settings of its stores; None for paths."""
    from .dataset import Dataset

    if not isinstance(data, Dataset):
        return None
    if store is not None:
        raise SettingError("store: the data set is open already; pass it to turboloader.open")
    return data


def place(ranks: Any) -> Ranks:
    """Return the place of this process."""
    if ranks is None:
        return Ranks(0, 1)
    if isinstance(ranks, Ranks):
        return ranks
    if not isinstance(ranks, str) or ranks != "auto":
        raise SettingError(
            f"ranks is {ranks!r}, expected 'auto', turboloader.Ranks(rank, world_size) or None"
        )
    launched = launched_ranks()
    if launched is None:
        raise SettingError(
            "ranks='auto': neither torch.distributed is initialised nor are RANK and WORLD_SIZE "
            "set, or those of Horovod, MPI or Slurm; pass turboloader.Ranks(rank, world_size), or "
            "None for one process"
        )
    return launched


def shuffled(value: Any) -> str:
    """Refuse text that is the name of no order; the native library reads the sizes of blocks."""
    if not isinstance(value, str):
        return "full" if value else "none"
    if value not in ("none", "full") and not value.startswith(("block:", "lanes:")):
        raise SettingError(
            f"shuffle is {value!r}, expected True, False, 'block:SAMPLESxWINDOW' or "
            "'lanes:LANES/SAMPLESxWINDOW', where SAMPLES is a number, or 'source' for the blocks "
            "of the files"
        )
    return value


def check_fields(fields: Any) -> None:
    """Refuse what is neither names of fields, nor a dict from names to fields or their kinds."""
    if fields is None or are_kinds(fields):
        return
    values = list(fields.values()) if isinstance(fields, Mapping) else names("fields", fields)
    if not (values and all(isinstance(one, str) for one in values)):
        raise SettingError(
            f"fields is {fields!r}, expected names such as ('image', 'label'), or a dict of names "
            "and kinds such as {'caption': tl.Text('txt')}"
        )


def check_decoders(decoders: Any) -> None:
    """Refuse what is not a sequence of decoders with names of their own."""
    is_list = isinstance(decoders, (list, tuple))
    if not is_list or not all(isinstance(one, Decoder) for one in decoders):
        raise SettingError(f"decoders is {decoders!r}, expected a list of turboloader.Decoder")
    known: set[str] = set()
    for one in decoders:
        if one.name in known:
            raise SettingError(f"decoders has two of the name {one.name!r}")
        known.add(one.name)


def are_kinds(fields: Any) -> bool:
    """Return whether a dict is not one of names alone; `Request` refuses other values."""
    return isinstance(fields, Mapping) and not all(isinstance(one, str) for one in fields.values())


@dataclass(frozen=True)
class Settings:
    """The arguments of a `DataLoader`, which documents them.

    The native library reads settings by the same names, and those of groups as their attributes;
    `native` converts those that have another form there.
    """

    # The query of a URL may be secret.
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Dataset | None = field(
        default=None, repr=False
    )
    batch_size: int = 32
    transform: Any = None
    _: KW_ONLY
    shuffle: bool | str = False
    seed: int | None = 42
    num_workers: int = 0
    fields: Sequence[str] | Mapping[str, str] | Mapping[str, Field] | None = None
    output_format: OutputFormat = "tensor"
    image_size: int | tuple[int, int] | None = None
    channels: int | None = None
    pixels: Any = None
    dtype: Any = None
    channels_last: bool | None = None
    decode: bool = True
    views: bool = False
    decode_margin: float | None = None
    decode_mode: DecodeMode | None = None
    parity: Parity | None = None
    exif: bool | None = None
    batch_transform: BatchTransform | Sequence[BatchTransform] = ()
    keys: bool = False
    labels: Any = field(default=None, repr=False)
    format: FileFormat | None = None
    drop_last: bool = False
    tail: Tail | None = None
    readers: Readers | ReaderKind | int = 0
    buckets: Buckets | int | None = None
    cache: Cache | int | str | None = None
    clips: Clips | int | None = None
    columns: Columns | Requests | None = None
    decoders: Sequence[Decoder] = ()
    errors: Errors | OnError | None = None
    retry: Retry | int | None = None
    memory: Memory | int | str | None = None
    device: Any = None
    pin_memory: Any = False
    ranks: Ranks | Literal["auto"] | None = None
    store: Store | Mapping[str, str | int | bool] | None = None

    def __post_init__(self) -> None:
        check_flags(
            **{one.name: getattr(self, one.name) for one in fields(self) if one.type == "bool"}
        )
        if self.pin_memory is True or self.pin_memory is False:
            object.__setattr__(self, "pin_memory", Device() if self.pin_memory else None)
        check_decoders(self.decoders)
        for name, value in vars(self).items():
            if name in _GROUPS:
                object.__setattr__(self, name, as_group(name, value, _GROUPS[name]))
            elif isinstance(value, (list, dict)):
                # Lists and dicts may change while somebody else has them.
                object.__setattr__(self, name, copy.copy(value))

    def resolved(self) -> Settings:
        """Return the same with paths, or a data set with its labels; refuse contradictions."""
        if self.data is None:
            raise SettingError("no data set: pass data, a path or a Dataset")
        check_format(self.format)
        for earlier, other in _EARLIER_FORMATS.items():
            if self.output_format == earlier:
                raise SettingError(f"output_format is {earlier!r}: pass {other}")
        check_choice("output_format", self.output_format, _CHANNELS_LAST)
        if self.device is not None and self.output_format in ("numpy", "tf"):
            raise SettingError(
                f"device: not supported with output_format={self.output_format!r}, expected "
                "'torch', 'jax' or 'tensor'"
            )
        if self.device is not None and self.pin_memory is not None:
            raise SettingError(
                "conflicting settings: device and pin_memory; pass only device, whose batches are "
                "made in pinned memory"
            )
        if self.views and self.decode:
            raise SettingError("views: only supported with decode=False (stored bytes)")
        if self.drop_last and self.tail not in (None, "drop"):
            raise SettingError(
                f"conflicting settings: drop_last and tail={self.tail!r}; pass only one"
            )
        check_fields(self.fields)
        data = opened(self.data, self.store)
        exif = self.exif
        if exif is None:
            exif = self.decode and data is not None and data.exif
        check_flags(exif=exif)
        clips = cast("Clips | None", self.clips)
        if data is not None and data.clips is not None:
            if not self.decode:
                raise SettingError("decode=False: rows of a LeRobotDataset have no stored bytes")
            if clips not in (None, data.clips):
                raise SettingError(
                    "clips: the rows of a LeRobotDataset name their frames; set its "
                    "delta_timestamps"
                )
            clips = data.clips
        if clips is not None and self.exif:
            raise SettingError(
                "conflicting settings: clips and exif; frames are turned as their container says, "
                "and have no EXIF orientation"
            )
        if self.labels is not None:
            data = self._labelled(data)
            return replace(self, data=data, exif=exif, labels=None, store=None)
        if data is None:
            return replace(self, data=expand(path_list(self.data)), exif=exif)
        columns = cast("Columns | None", self.columns)
        if data.label_column is not None and (columns is None or columns.label is None):
            columns = replace(columns or Columns(), label=data.label_column)
        return replace(self, data=data, columns=columns, exif=exif, clips=clips)

    def _labelled(self, data: Dataset | None) -> Dataset:
        """Open a data set with other labels."""
        from .dataset import open

        if data is not None:
            raise SettingError(
                "labels: the data set is open already; call its with_labels before you select "
                "samples"
            )
        return open(cast("Any", self.data), labels=self.labels, store=self.store)

    @property
    def picked(self) -> Sequence[str] | Mapping[str, str] | None:
        """The fields that a loop gets instead of a batch: a tuple, or a dict by new names."""
        return None if are_kinds(self.fields) else cast("Any", self.fields)

    @property
    def _sources(self) -> Sequence[str]:
        """The names in batches of what `picked` names."""
        picked = self.picked or ()
        return [*picked.values()] if isinstance(picked, Mapping) else picked

    def check_picked(self, names: Sequence[str]) -> None:
        """Refuse names of fields that batches do not have."""
        for name in self._sources:
            if name not in names:
                # Batches have keys where they are named.
                said = nearest(name, [*names, "key"])
                raise SettingError(f"fields names {name!r}, a batch has {', '.join(names)}{said}")

    @property
    def _has_keys(self) -> bool:
        return self.keys or "key" in self._sources

    def _kinds(self) -> Mapping[str, Field]:
        """Return the fields of files next to the image: of the data set, and those given here."""
        given = cast("Any", self.fields) if are_kinds(self.fields) else {}
        return given if self.data_set is None else {**self.data_set.fields, **given}

    @property
    def paths(self) -> list[str]:
        """The paths of the data set, once they are resolved; none of an open one."""
        if self.data_set is not None:
            return []
        return [os.fspath(path) for path in path_list(self.data)]

    @property
    def data_set(self) -> Dataset | None:
        """The data set, if it was open."""
        return opened(self.data, None)

    @property
    def has_tokens(self) -> bool:
        """Whether the data set has tokens, whose ``dtype`` is that of ``tokens`` in batches."""
        return self.data_set is not None and "tokens" in self.data_set._native.kinds

    def recipe(self) -> Recipe | None:
        """Return the recipe; None where stored bytes are handed out."""
        if self.has_tokens:
            return None
        if self.decode:
            last = _CHANNELS_LAST[self.output_format]
            _, transform = groups(self.transform)[0]
            return recipe_of(transform, self.image_size, last, **self._of_recipes())
        if named := given(self._of_images()):
            raise SettingError(f"{named}: not supported with decode=False (stored bytes)")
        return None

    def placed(self) -> tuple[Settings, ShardingCheck]:
        """Return the same with the place of this process.

        A copy of the loader in another process keeps the place that was found here.
        """
        ranks, is_chosen = place(self.ranks), self.ranks is not None
        if self.seed is None and ranks.world_size > 1:
            raise SettingError("seed=None would give each rank another order; pass one number")
        placed = replace(
            self,
            seed=secrets.randbits(32) if self.seed is None else self.seed,
            tail="drop" if self.drop_last else self.tail,
            ranks=ranks if is_chosen else None,
        )
        return placed, ShardingCheck(ranks.world_size, is_chosen)

    def native(self, recipe: Recipe | None) -> dict[str, Any]:
        """Return what the native library reads: these settings, some of them in another form."""
        request = Request(self._kinds())
        last = _CHANNELS_LAST[self.output_format]
        first, images = images_of(self.transform, request, last, **self._of_recipes())
        if first != "image":
            request.renamed["image"] = first
        if self.clips is not None:
            if first != "image":
                raise SettingError(
                    "conflicting settings: clips, and names of images in transform; pass only one "
                    "transform, whose clips are called video"
                )
            request.renamed["image"] = "video"
        _, transform = groups(self.transform)[0]
        moved = {one.name: one.lambd for one in moving(transform)}
        if moved and (followers := [one["name"] for one in images if one["moves"]]):
            raise SettingError(
                f"image {followers[0]} moves with {first}, and would stay where it was if function "
                f"{next(iter(moved))} moved pixels; if it changes colours only, pass "
                "T.Lambda(function, moves=False)"
            )
        paired = [one["name"] for one in request.keypoints if one["flip_pairs"]]
        for (name, *_), other in groups(self.transform)[1:]:
            for called, function in functions(other).items():
                check_given(f"{called} of image {name}", function, [])
        return {
            **vars(self),
            "recipe": recipe,
            "token_dtype": self._token_dtype(),
            "form": self.output_format,
            "batch_size": one_or_more("batch_size", self.batch_size),
            "num_workers": whole("num_workers", self.num_workers),
            "seed": whole("seed", self.seed, most=(1 << 64) - 1),
            "shuffle": shuffled(self.shuffle),
            "keys": self._has_keys,
            "decoders": list(self.decoders),
            "user_transforms": with_annotations(
                functions(self.transform), moved, request.moving, paired
            ),
            "images": images,
            "boxes": request.boxes,
            "masks": request.masks,
            "mask": request.mask,
            "values": request.values,
            "keypoints": request.keypoints,
            "stored": request.stored,
            "renamed": list(request.renamed.items()),
        }

    def _token_dtype(self) -> str | None:
        if not self.has_tokens or self.dtype is None:
            return None
        return type_name(self.dtype)

    def rows(self, kinds: list[str]) -> str | None:
        """Return the kind of rows if they are not images; refuse settings that apply to images."""
        rows = "tokens" if "tokens" in kinds else None
        rows = "columns" if {"idv", "tbf", "rows"} & set(kinds) else rows
        if rows is not None:
            others = {"keys": self.keys or None, "decode": None if self.decode else False}
            others["views"] = self.views or None
            kinds_of_files = {"fields": self._kinds() or None}
            if named := given({**self._of_images(), **others, **kinds_of_files}):
                what = "tables" if rows == "columns" else "tokens"
                raise SettingError(f"{named}: only supported for images, not for {what}")
        check_kinds(self.format, kinds)
        return rows

    def _of_recipes(self) -> dict[str, Any]:
        names = ["dtype", "channels_last", "decode_margin", "decode_mode", "parity", "channels"]
        names += ["pixels", "batch_transform"]
        found = {name: getattr(self, name) for name in names}
        return {**found, "dtype": None} if self.has_tokens else found

    def _of_images(self) -> dict[str, Any]:
        said = {"transform": self.transform, "image_size": self.image_size, "clips": self.clips}
        others = {"exif": self.exif or None, "decoders": self.decoders or None}
        return {**said, **self._of_recipes(), **others}


def of_first_design(arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return keywords with the words of today for four of the documents that came first.

    Those documents are not ours to change, so their code runs as it stands: ``source``,
    ``transforms``, ``prefetch_factor`` and ``worker_id``. Next to the word of today for the same
    thing they are refused.
    """
    others = dict(named)
    for old, new, place_of_new in (("source", "data", 0), ("transforms", "transform", 2)):
        if old in others:
            if new in others or len(arguments) > place_of_new:
                raise SettingError(f"{old} is {new} by another name; pass only {new}")
            others[new] = others.pop(old)
    if "prefetch_factor" in others:
        memory = as_group("memory", others.get("memory"), Memory) or Memory()
        if memory.prefetch:
            raise SettingError(
                "prefetch_factor is prefetch of memory by another name; pass only "
                f"memory=tl.Memory(prefetch={memory.prefetch})"
            )
        others["memory"] = replace(memory, prefetch=others.pop("prefetch_factor"))
    if "worker_id" in others:
        others.update(_of_worker(others.pop("worker_id"), others))
        others.pop("num_workers")
        others.setdefault("tail", "drop" if others.get("drop_last") else "uneven")
    return others


def _of_worker(number: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    """Return the place of one of several loaders, which ``num_workers`` counts."""
    workers, ranks = others.get("num_workers", 0), others.get("ranks")
    if ranks is not None and not isinstance(ranks, str):
        raise SettingError("worker_id is the rank of ranks by another name; pass only ranks")
    worker, count = whole("worker_id", number), whole("num_workers", workers)
    if worker >= count:
        raise SettingError(
            f"worker_id is {worker}, expected less than num_workers ({count}), the number of "
            "loaders that share the data set; or pass ranks=tl.Ranks(rank, world_size)"
        )
    # The other workers have the rest of this rank's part: together each sample once.
    ours = place(ranks)
    return {"ranks": Ranks(worker * ours.world_size + ours.rank, count * ours.world_size)}


# The names of the arguments.
SETTINGS: Final = tuple(one.name for one in fields(Settings))

# Arguments that do not exist are refused in the name of the loader.
Settings.__init__.__qualname__ = "DataLoader.__init__"


def takes(
    settings: Callable[_P, Any],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, _P], None]]:
    """Give a method the parameters of ``settings``, after ``self``."""

    def decorate(method: Callable[..., None]) -> Callable[Concatenate[Any, _P], None]:
        signature = inspect.signature(settings)
        receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = [receiver, *signature.parameters.values()]
        method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        # It imports this module.
        from .dataset import Dataset

        hints = get_type_hints(settings, localns={"Dataset": Dataset})
        method.__annotations__ = {name: hints[name] for name in signature.parameters}
        method.__annotations__["return"] = None
        return method

    return decorate
