"""The settings of a loader, checked and brought into one form."""

from __future__ import annotations

import copy
import inspect
import json
import operator
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    TypedDict,
    cast,
    get_type_hints,
)

from ._native import Recipe
from ._paths import expand
from ._ranks import ShardingCheck, detected_ranks
from .exceptions import SettingError
from .fields import Field, Request
from .transforms import (
    BatchTransform,
    Resize,
    Transform,
    Views,
    dtype_name,
    functions,
    recipe,
)

if TYPE_CHECKING:
    from .dataset import Dataset

_P = ParamSpec("_P")

OutputFormat = Literal[
    "dict",
    "tensor",
    "numpy",
    "numpy_chw",
    "pytorch",
    "torch",
    "jax",
    "tensorflow",
    "tf",
]
Tail = Literal["drop", "pad", "uneven"]
OnError = Literal["raise", "skip", "replace", "fill"]
Parity = Literal["pil", "tensor"]
Direction = Literal["outgoing", "incoming"]
Credentials = Literal["auto", "instance"]
FileFormat = Literal[
    "folder", "imagefolder", "tar", "webdataset", "tbl", "idv", "tbf", "files", "images", "manifest"
]

# For each output format: what fields are handed out as, and whether channels come last.
_FORMATS: Final[dict[str, tuple[str, bool | None]]] = {
    "dict": ("tensor", None),
    "tensor": ("tensor", None),
    "numpy": ("numpy", True),
    "numpy_chw": ("numpy", False),
    "pytorch": ("torch", None),
    "torch": ("torch", None),
    "jax": ("jax", None),
    "tensorflow": ("tf", True),
    "tf": ("tf", True),
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
    "manifest": "manifest",
}

_MIB, _GIB = 1 << 20, 1 << 30

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:([kKmMgGtT])(i)?)?[bB]?")
# The settings that are numbers of bytes.
_BYTES = ("block_bytes", "memory_budget", "prefetch_bytes")

_BOXES: dict[str, Any] = {"labels": None, "values": [], "format": "xyxy", "output": "xyxy"}
_MASK = {"dtype": "uint8", "padding": 255}

# Of workers, ranks, sides, epochs and so on.
_MOST = (1 << 32) - 1


def one_of(name: str, value: Any, other_name: str, other: Any) -> Any:
    if value is not None and other is not None:
        raise SettingError(f"{name} and {other_name} are the same setting; pass only one")
    return other if value is None else value


def check_choice(setting: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    listed = list(choices)
    if value not in listed:
        raise SettingError(f"{setting} is {value}, expected one of {', '.join(listed)}")


def check_flags(**flags: Any) -> None:
    """Refuse what is neither true nor false, also of NumPy."""
    for setting, value in flags.items():
        if type(value).__name__ not in ("bool", "bool_"):
            raise SettingError(f"{setting} is {value!r}, expected True or False")


def whole(setting: str, value: Any, most: int = _MOST) -> int:
    """Return a whole number from 0 on, also of NumPy or torch."""
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise SettingError(f"{setting} is {value!r}, expected a whole number, 0 or more")
    if number > most:
        raise SettingError(f"{setting} is {number}, at most {most}")
    return number


def byte_count(setting: str, value: Any) -> int | None:
    """Return a number of bytes, which may be text such as ``"2GB"`` or ``"512 MiB"``."""
    if value is None:
        return None
    if not isinstance(value, str):
        return whole(setting, value, most=(1 << 62))
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise SettingError(
            f"{setting} is {value!r}, expected bytes: a number, or text such as '2GB' or '512 MiB'"
        )
    number, prefix, binary = found.groups()
    base = 1024 if binary else 1000
    return int(float(number) * base ** " kmgt".index((prefix or " ").lower()))


def shuffled(value: str) -> str:
    """Refuse text that is the name of no order; the native library reads the sizes of blocks."""
    if value not in ("none", "full") and not value.startswith(("block:", "lanes:")):
        raise SettingError(
            f"shuffle is {value!r}, expected True, False, 'block:SAMPLESxWINDOW' or "
            "'lanes:LANES/SAMPLESxWINDOW'"
        )
    return value


def wholes(setting: str, values: Any) -> list[int]:
    """Return a list of whole numbers."""
    try:
        listed = list(values)
    except TypeError:
        raise SettingError(f"{setting} is {values!r}, expected a list of numbers") from None
    return [whole(setting, value) for value in listed]


def sides(setting: str, value: Any) -> list[int]:
    """Return a height and a width."""
    sides = wholes(setting, _pair(value, value))
    if len(sides) != 2:
        raise SettingError(f"{setting} is {value!r}, expected one number or (height, width)")
    return sides


def _pair(value: Any, second: Any) -> Any:
    """Return values that come together, or one value and ``second``; text is one value."""
    is_text = isinstance(value, (str, bytes))
    return value if isinstance(value, Iterable) and not is_text else [value, second]


def buckets(value: Any) -> tuple[int, int] | None:
    """Return the window in batches and what sides are a multiple of, if images are grouped."""
    if value is None:
        return None
    numbers = wholes("buckets", _pair(value, 1))
    if len(numbers) != 2 or min(numbers) < 1:
        raise SettingError(f"buckets is {value!r}, expected a window or (window, multiple)")
    return numbers[0], numbers[1]


def names(setting: str, names: Sequence[str]) -> list[str]:
    if isinstance(names, str):
        raise SettingError(f"{setting} is the text {names!r}, expected a list of names")
    if not isinstance(names, Iterable):
        raise SettingError(f"{setting} is {names!r}, expected a list of names")
    return list(names)


def check_fields(fields: Any) -> None:
    """Refuse what is neither names of fields, nor a dict from names to fields or their kinds."""
    if fields is None or _are_kinds(fields):
        return
    values = list(fields.values()) if isinstance(fields, Mapping) else names("fields", fields)
    if not (values and all(isinstance(one, str) for one in values)):
        raise SettingError(
            f"fields is {fields!r}, expected names such as ('image', 'label'), or a dict of names "
            "and kinds such as {'caption': tl.Text('txt')}"
        )


def _are_kinds(fields: Any) -> bool:
    """Return whether a dict is not one of names alone; `Request` refuses other values."""
    return isinstance(fields, Mapping) and not all(isinstance(one, str) for one in fields.values())


def requests(
    setting: str, columns: Sequence[str] | Mapping[str, Any]
) -> list[tuple[str, str | None]]:
    """Return names with the types that are asked for."""
    if isinstance(columns, Mapping):
        types = columns.items()
        return [(name, None if dtype is None else dtype_name(dtype)) for name, dtype in types]
    return [(name, None) for name in names(setting, columns)]


# The defaults of the settings of stores, except those that are None.
_OPENED: dict[str, Any] = {"credentials": "auto", "hedge": True}


def opened(data_path: Any, settings: Mapping[str, Any]) -> Dataset | None:
    """Return an open data set, which has the settings of its stores; None for paths."""
    from .dataset import Dataset

    if not isinstance(data_path, Dataset):
        return None
    given = {name: settings.get(name) for name in StoreSettings.__annotations__}
    if named := [name for name, value in given.items() if value not in (None, _OPENED.get(name))]:
        raise SettingError(f"{named[0]}: the data set is open already; pass it to turboloader.open")
    return data_path


def check_kinds(format: str | None, kinds: Sequence[str]) -> None:
    """Refuse files that are not in the expected format."""
    check_choice("format", format or "auto", ("auto", *_KINDS))
    kind = _KINDS.get(format or "")
    # A folder with metadata files is a list of samples.
    is_list = format == "imagefolder" and list(kinds) == ["manifest"]
    if kind is not None and list(kinds) != [kind] and not is_list:
        raise SettingError(f"format is {format}, but the files are {', '.join(kinds)}")


def path_list(paths: Any) -> Any:
    if not isinstance(paths, (str, os.PathLike, Iterable)):
        raise SettingError(f"data_path is {paths!r}, expected a path or URL, or a list of them")
    if isinstance(paths, (str, os.PathLike)):
        return [paths]
    # Arrays, bytes and the like would be lists of numbers.
    named = hasattr(paths, "dtype") or isinstance(paths, (bytes, bytearray, memoryview))
    listed = [paths] if named else list(paths)
    other = next((one for one in listed if not isinstance(one, (str, os.PathLike))), None)
    if other is not None:
        raise SettingError(
            f"data_path has a {type(other).__name__}, expected paths: TblWriter.add_sample stores "
            "bytes of images, TblWriter.add_pixels arrays"
        )
    return listed


def one_or_more(setting: str, value: Any, most: int = _MOST) -> int | None:
    """Return a whole number from 1 on, or None for the default."""
    if value is None:
        return None
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= most:
        raise SettingError(f"{setting} is {value!r}, expected a whole number from 1 to {most}")
    return number


def store_options(options: Any, credentials: Any) -> list[tuple[str, str]]:
    """Return the options of stores as text; no message repeats a value, which may be secret."""
    check_choice("credentials", credentials, ("auto", "instance"))
    if options is None:
        options = {}
    if not isinstance(options, Mapping):
        name = type(options).__name__
        raise SettingError(f"storage_options is a {name}, expected a dict of names and values")
    listed = []
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int)):
            raise SettingError(f"storage_options: expected text for {name!r}")
        listed.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    if credentials != "auto":
        if "credentials" in options:
            raise SettingError("credentials is also in storage_options; pass only one")
        listed.append(("credentials", credentials))
    return listed


class StoreSettings(TypedDict, total=False):
    """The settings of stores; `DataLoader` documents them."""

    storage_options: Mapping[str, Any] | None
    credentials: str
    connections: int | None
    read_ahead: int | None
    deadline: float | None
    hedge: bool
    unpack_to: str | os.PathLike[str] | None


def stores(
    *,
    storage_options: Any = None,
    credentials: Any = "auto",
    connections: Any = None,
    read_ahead: Any = None,
    deadline: Any = None,
    hedge: Any = True,
    unpack_to: Any = None,
) -> dict[str, Any]:
    """Return the settings of stores as the native library reads them."""
    check_flags(hedge=hedge)
    return {
        "storage_options": store_options(storage_options, credentials),
        "connections": one_or_more("connections", connections),
        "read_ahead": one_or_more("read_ahead", read_ahead, most=1 << 62),
        "deadline": deadline,
        "hedge": hedge,
        "unpack_to": None if unpack_to is None else os.fspath(unpack_to),
    }


def refuse_to_pickle(what: str, storage_options: Any) -> None:
    """Refuse to pickle an object with options of stores."""
    if storage_options:
        raise TypeError(
            f"a {what} with storage_options cannot be pickled, because they may be secret: "
            "set environment variables instead"
        )


def cache_dir() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "turboloader")


def given(settings: Mapping[str, Any]) -> str:
    """Return the names of the settings that have values."""
    return ", ".join(
        name
        for name, value in settings.items()
        if value is not None and not (isinstance(value, (tuple, list)) and not value)
    )


def dict_of(
    setting: str, said: dict[str, Any] | None, needed: Sequence[str], others: dict[str, Any]
) -> dict[str, Any] | None:
    """Return the settings of a field, with defaults for those left out."""
    if said is None:
        return None
    if not isinstance(said, Mapping):
        raise SettingError(f"{setting} is {said!r}, expected a dict of {', '.join(needed)}")
    known = (*needed, *others)
    if unknown := [name for name in said if name not in known]:
        raise SettingError(f"{setting}: unknown key {unknown[0]!r}, expected {', '.join(known)}")
    if missing := [name for name in needed if name not in said]:
        raise SettingError(f"{setting} needs {missing[0]!r}")
    return {**others, **said}


def recipe_of(
    transform: Any,
    image_size: int | tuple[int, int] | None,
    last: bool | None,
    **options: Any,
) -> Recipe:
    """Return the recipe; ``last`` is whether channels come last where nothing says so."""
    if options.get("parity") is not None:
        check_choice("parity", options["parity"], ("pil", "tensor"))
    count = transform.count if isinstance(transform, Views) else 1
    if count > 1 and isinstance(transform.transform, Recipe):
        return recipe_of(transform.transform, image_size, last, **options).with_draws(count)
    if isinstance(transform, Recipe):
        if named := given({"image_size": image_size, **options}):
            raise SettingError(f"{named}: already defined by the recipe; pass the recipe alone")
        return transform
    if options.get("channels_last") is None:
        options["channels_last"] = last
    if transform is None:
        if image_size is not None:
            return recipe(Resize(sides("image_size", image_size)), **options)
        return recipe(None, **options)
    if image_size is not None:
        raise SettingError("image_size and transform: pass only one; T.Resize sets the size")
    is_text = isinstance(transform, (str, bytes))
    is_listed = isinstance(transform, (Transform, Views, Sequence)) and not is_text
    if not is_listed and not callable(transform):
        raise SettingError(
            f"transform is {transform!r}, expected transforms such as T.Resize((224, 224)), or a "
            "list of them"
        )
    return recipe(transform, **options)


def recipe_of_samples(transform: Any, image_size: Any, last: bool | None, **options: Any) -> Recipe:
    """Return the recipe for samples that come alone."""
    made = recipe_of(transform, image_size, last, **options)
    if json.loads(made.to_json()).get("batch_ops"):
        raise SettingError("transform mixes batches, but these are single samples: remove mixing")
    return made


def place(enable: bool, rank: int | None, world: int | None) -> tuple[int, int]:
    """Return rank and world size."""
    if rank is not None or world is not None:
        if rank is None or world is None:
            raise SettingError("world_rank and world_size: only one is set; pass both")
        rank, world = whole("world_rank", rank), whole("world_size", world)
        if rank >= world:
            raise SettingError(f"world_rank is {rank}, expected less than world_size ({world})")
        return rank, world
    if not enable:
        return 0, 1
    detected = detected_ranks()
    if detected is None:
        raise SettingError(
            "enable_distributed: neither torch.distributed is initialised nor are RANK and "
            "WORLD_SIZE set; pass world_rank and world_size"
        )
    return detected


@dataclass(frozen=True)
class Settings:
    """The arguments of a `DataLoader`, which documents them.

    The native library reads settings by the same names; `native` converts those that have another
    form there.
    """

    # The query of a URL may be secret.
    data_path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Dataset | None = field(
        default=None, repr=False
    )
    batch_size: int = 32
    num_workers: int = 0
    shuffle: bool | str = False
    transform: Any = None
    image_size: int | tuple[int, int] | None = None
    output_format: OutputFormat = "dict"
    _: KW_ONLY
    seed: int | None = 42
    drop_last: bool = False
    enable_distributed: bool = False
    world_rank: int | None = None
    world_size: int | None = None
    prefetch_batches: int = 0
    dtype: Any = None
    channels_last: bool | None = None
    decode: bool = True
    decode_margin: float | None = None
    batch_transform: BatchTransform | Sequence[BatchTransform] = ()
    tail: Tail | None = None
    on_error: OnError = "raise"
    max_errors: int | None = None
    max_error_rate: float | None = None
    keys: bool = False
    columns: Sequence[str] | Mapping[str, Any] = ()
    features: Sequence[str] = ()
    label: str | None = None
    neighbors: Sequence[int] = ()
    neighbor_columns: Sequence[str] | Mapping[str, Any] = ()
    neighbor_direction: Direction = "outgoing"
    block_bytes: int | str = 0
    boxes: dict[str, Any] | None = None
    mask: dict[str, Any] | None = None
    fields: Sequence[str] | Mapping[str, str] | Mapping[str, Field] | None = None
    exif: bool = False
    enable_cache: bool = False
    cache_l1_mb: int = 512
    cache_l2_gb: int = 0
    cache_dir: str | os.PathLike[str] | None = None
    cache_decoded: bool = False
    memory_budget: int | str | None = None
    prefetch_bytes: int | str | None = None
    readers: int = 0
    # The values may be secret.
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    credentials: str = "auto"
    connections: int | None = None
    read_ahead: int | None = None
    deadline: float | None = None
    hedge: bool = True
    unpack_to: str | os.PathLike[str] | None = None
    labels: Any = field(default=None, repr=False)
    buckets: int | tuple[int, int] | None = None
    parity: Parity | None = None
    channels: int | None = None
    worker_id: int | None = None
    source: Any = field(default=None, repr=False)
    format: FileFormat | None = None
    transforms: Any = None
    prefetch_factor: int | None = None

    def __post_init__(self) -> None:
        check_flags(
            **{one.name: getattr(self, one.name) for one in fields(self) if one.type == "bool"}
        )
        # Lists and dicts may change while somebody else has them.
        for name, value in vars(self).items():
            if isinstance(value, (list, dict)):
                object.__setattr__(self, name, copy.copy(value))

    def resolved(self) -> Settings:
        """Return the same with paths and without aliases; refuse contradictions."""
        data_path = one_of("data_path", self.data_path, "source", self.source)
        transform = one_of("transform", self.transform, "transforms", self.transforms)
        if data_path is None:
            raise SettingError("no data set: pass data_path")
        check_choice("format", self.format or "auto", ("auto", *_KINDS))
        check_choice("output_format", self.output_format, _FORMATS)
        if self.drop_last and self.tail not in (None, "drop"):
            raise SettingError(
                f"conflicting settings: drop_last and tail={self.tail!r}; pass only one"
            )
        if self.prefetch_batches and self.prefetch_factor is not None:
            raise SettingError(
                "prefetch_batches and prefetch_factor are the same setting; pass only one"
            )
        check_fields(self.fields)
        data = opened(data_path, vars(self))
        # A data set that is open has the settings of its stores.
        of_stores: dict[str, Any] = {}
        if self.labels is not None:
            data = self._labelled(data_path)
            of_stores = {name: _OPENED.get(name) for name in StoreSettings.__annotations__}
        paths = expand(path_list(data_path)) if data is None else data
        label = self.label if data is None else self.label or data.label_column
        return replace(
            self,
            data_path=paths,
            label=label,
            source=None,
            labels=None,
            transform=transform,
            transforms=None,
            **of_stores,
        )

    def _labelled(self, data_path: Any) -> Dataset:
        """Open a data set with other labels."""
        from .dataset import Dataset, open

        if isinstance(data_path, Dataset):
            raise SettingError(
                "labels: the data set is open already; call its with_labels before you select "
                "samples"
            )
        stores: Any = {name: getattr(self, name) for name in StoreSettings.__annotations__}
        return open(data_path, labels=self.labels, **stores)

    @property
    def picked(self) -> Sequence[str] | Mapping[str, str] | None:
        """The fields that a loop gets instead of a batch: a tuple, or a dict by new names."""
        return None if _are_kinds(self.fields) else cast("Any", self.fields)

    def _kinds(self) -> Mapping[str, Field]:
        """Return the fields of files next to the image: of the data set, and those given here."""
        given = cast("Any", self.fields) if _are_kinds(self.fields) else {}
        return given if self.data_set is None else {**self.data_set.fields, **given}

    @property
    def paths(self) -> list[str]:
        """The paths of the data set, once they are resolved; none of an open one."""
        if self.data_set is not None:
            return []
        return [os.fspath(path) for path in path_list(self.data_path)]

    @property
    def data_set(self) -> Dataset | None:
        """The data set, if it was open."""
        return opened(self.data_path, {})

    def recipe(self) -> Recipe | None:
        """Return the recipe; None where stored bytes are handed out."""
        if self.decode:
            last = _FORMATS[self.output_format][1]
            _, transform = self._groups()[0]
            return recipe_of(transform, self.image_size, last, **self._of_recipes())
        if named := given(self._of_images()):
            raise SettingError(f"{named}: not supported with decode=False (stored bytes)")
        return None

    def _groups(self) -> list[tuple[tuple[str, ...], Any]]:
        """Return the names of images with the transform that they share; the sample's own first."""
        if not isinstance(self.transform, Mapping):
            return [(("image",), self.transform)]
        groups = []
        for key, transform in self.transform.items():
            names = (key,) if isinstance(key, str) else tuple(key)
            groups.append((names, transform))
        every = [name for names, _ in groups for name in names]
        if not groups or not all(isinstance(name, str) and name for name in every):
            raise SettingError(f"transform is {self.transform!r}, expected names with transforms")
        return groups

    def _images(self, request: Request) -> tuple[str, list[dict[str, Any]]]:
        """Return the name of the sample's own image, and all further ones."""
        (names, _), *others = self._groups()
        first, *joint = names
        if first in request.images:
            raise SettingError(
                f"transform: {first} is first, so it is the sample's own image; "
                "remove it from fields"
            )
        last = _FORMATS[self.output_format][1]
        options = {**self._of_recipes(), "batch_transform": ()}
        images = []
        for names, transform in others:
            if len(names) > 1:
                raise SettingError(
                    f"transform: {', '.join(names)} share random numbers without the sample's own "
                    f"image; put them into one tuple with {first}"
                )
            recipe = recipe_of(transform, None, last, **options)
            column = request.images.get(names[0])
            images.append({"name": names[0], "column": column, "recipe": recipe})
        alone = {image["name"] for image in images}
        if missing := [name for name in joint if name not in request.images]:
            raise SettingError(
                f"transform: {missing[0]} would equal {first}; give it a transform of its own, or "
                f"name its file: fields={{{missing[0]!r}: tl.Image(...)}}"
            )
        for name, column in request.images.items():
            if name not in alone:
                images.append({"name": name, "column": column, "recipe": None})
        return first, images

    def placed(self) -> tuple[Settings, ShardingCheck]:
        """Return the same with the place of this process.

        A copy of the loader in another process keeps the place that was found here.
        """
        is_ranked = self.world_rank is not None or self.world_size is not None
        if self.worker_id is not None and is_ranked:
            raise SettingError("conflicting settings: worker_id and world_rank; pass only one")
        if self.on_error == "raise" and (self.max_errors, self.max_error_rate) != (None, None):
            raise SettingError('max_errors and max_error_rate have no effect with on_error="raise"')
        if self.cache_dir is not None and self.cache_l2_gb == 0:
            raise SettingError("cache_dir needs cache_l2_gb, the size of the cache on disk")
        num_workers = whole("num_workers", self.num_workers)
        rank, world = place(self.enable_distributed, self.world_rank, self.world_size)
        is_chosen = self.enable_distributed or is_ranked or self.worker_id is not None
        sharding = ShardingCheck(world, is_chosen)
        tail = "drop" if self.drop_last else self.tail
        if self.worker_id is not None:
            worker_id = whole("worker_id", self.worker_id)
            if worker_id >= num_workers:
                raise SettingError(f"worker_id is {worker_id}, expected less than {num_workers}")
            # The other workers have the rest of this rank's part: together each sample once.
            rank, world, num_workers = worker_id * world + rank, num_workers * world, 0
            tail = tail or "uneven"
        if self.seed is None and world > 1:
            raise SettingError("seed=None would give each rank another order; pass one number")
        placed = replace(
            self,
            seed=secrets.randbits(32) if self.seed is None else self.seed,
            num_workers=num_workers,
            tail=tail,
            enable_distributed=False,
            world_rank=rank if is_chosen else None,
            world_size=world if is_chosen else None,
            worker_id=None,
        )
        return placed, sharding

    def native(self, recipe: Recipe | None) -> dict[str, Any]:
        """Return what the native library reads: these settings, some of them in another form."""
        memory = whole("cache_l1_mb", self.cache_l1_mb) * _MIB
        prefetch = "prefetch_batches" if self.prefetch_factor is None else "prefetch_factor"
        order = "full" if self.shuffle else "none"
        request = Request(self._kinds())
        first, images = self._images(request)
        if first != "image":
            request.renamed["image"] = first
        for name in ("boxes", "mask"):
            if getattr(self, name) is not None and getattr(request, name) is not None:
                raise SettingError(f"{name} is also in fields; pass only one")
        return {
            **vars(self),
            "images": images,
            "values": request.values,
            "stored": request.stored,
            "renamed": list(request.renamed.items()),
            "recipe": recipe,
            "form": _FORMATS[self.output_format][0],
            "buckets": buckets(self.buckets),
            "batch_size": whole("batch_size", self.batch_size),
            "seed": whole("seed", self.seed, most=(1 << 64) - 1),
            **{name: byte_count(name, getattr(self, name)) for name in _BYTES},
            "prefetch_batches": whole(prefetch, getattr(self, prefetch)),
            "shuffle": shuffled(self.shuffle) if isinstance(self.shuffle, str) else order,
            "columns": requests("columns", self.columns),
            "features": names("features", self.features),
            "neighbors": wholes("neighbors", self.neighbors),
            "neighbor_columns": requests("neighbor_columns", self.neighbor_columns),
            "user_transforms": functions(self.transform),
            "boxes": request.boxes or dict_of("boxes", self.boxes, ("column", "boxes"), _BOXES),
            "mask": request.mask or dict_of("mask", self.mask, ("column",), _MASK),
            **stores(**{name: getattr(self, name) for name in StoreSettings.__annotations__}),
            "cache_memory_bytes": memory if self.enable_cache or self.cache_decoded else 0,
            "cache_disk_bytes": whole("cache_l2_gb", self.cache_l2_gb) * _GIB,
            "cache_dir": cache_dir() if self.cache_dir is None else os.fspath(self.cache_dir),
        }

    def is_table(self, kinds: list[str]) -> bool:
        """Return whether the data set is a table; refuse settings that do not apply to its kind."""
        is_table = "idv" in kinds or "tbf" in kinds
        if is_table:
            others = {"keys": self.keys or None, "decode": None if self.decode else False}
            annotated = {"boxes": self.boxes, "mask": self.mask, "fields": self._kinds() or None}
            of_images = {**self._of_images(), **annotated, **others}
            if named := given(of_images):
                raise SettingError(f"{named}: only supported for images, not for tables")
        elif self.neighbor_direction != "outgoing":
            raise SettingError("neighbor_direction: only supported for tables (IDV, TBF)")
        check_kinds(self.format, kinds)
        return is_table

    def _of_recipes(self) -> dict[str, Any]:
        names = ("dtype", "channels_last", "decode_margin", "parity", "channels", "batch_transform")
        return {name: getattr(self, name) for name in names}

    def _of_images(self) -> dict[str, Any]:
        said = {"transform": self.transform, "image_size": self.image_size}
        return {**said, **self._of_recipes(), "exif": self.exif or None}


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
        receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [receiver, *signature.parameters.values()]
        method.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        # It imports this module.
        from .dataset import Dataset

        hints = get_type_hints(settings, localns={"Dataset": Dataset})
        method.__annotations__ = {name: hints[name] for name in signature.parameters}
        method.__annotations__["return"] = None
        return method

    return decorate
