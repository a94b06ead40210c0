"""Clips of videos, as the first turboloader had them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

from .. import transforms as T  # noqa: N812
from .._checks import one_or_more, sides, whole
from .._paths import expand, is_url
from ..dataset import open
from ..exceptions import SettingError
from ..loader import DataLoader as _Loader
from ..settings import Clips, Ranks
from ._errors import original_errors

# The endings that its folders were searched for.
_ENDINGS = (".mp4", ".mkv", ".avi", ".mov", ".webm", ".m4v")


class VideoDatasetLoader:
    """Clips of the videos of a folder on a device: ``(clips, labels, meta)``.

    Batches are tensors of torch: ``clips`` of shape ``(batch, frames, 3, height, width)``,
    ``float32`` and normalised, and ``labels``, ``int64``. ``meta["paths"]`` has the videos. Without
    a device that can be used the tensors are on the host, and a warning has the reason.

    Every video has as many clips in an epoch as another, or one more; the first turboloader drew
    long videos more often. Videos that are shorter than a clip end with their last frame repeated.
    Batches are complete: by default videos that fill no batch have no clip in an epoch, with
    ``shuffle`` other ones in each.

    Parameters
    ----------
    root
        A folder with a folder of videos for each class, or pairs of the path of one video and a
        label.
    clip_len
        The frames of a clip.
    batch_size
        The clips of a batch, of which all are complete.
    image_size
        The side of frames, or height and width.
    frame_step
        The distance between frames, in frames of the video.
    workers
        The number of threads.
    train_aug
        Whether each clip gets a random crop, of a part of the area in ``scale`` and a ratio of
        width to height in ``ratio``, and a random flip. Otherwise frames are resized whole.
    mean, std
        Of red, green and blue, for normalisation.
    shuffle
        Whether videos are in random order. Clips begin at random frames in any case, which depend
        on ``seed`` and on the epoch.
    seed
        Of the random numbers.
    steps_per_epoch
        The batches of an epoch, on each rank. By default as many as there are batches with one clip
        of each video, and at least one. The first turboloader had more by default: as many clips as
        cover every frame once on average.
    world_rank, world_size
        This process, and how many there are.
    device
        The device, in the words of ``turboloader.DataLoader``. None is the host.
    """

    def __init__(
        self,
        root: str | os.PathLike[str] | Iterable[tuple[str | os.PathLike[str], int]],
        clip_len: int = 8,
        batch_size: int = 8,
        image_size: int | tuple[int, int] = 112,
        *,
        frame_step: int = 1,
        workers: int = 4,
        train_aug: bool = False,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        mean: tuple[float, float, float] = (0.485, 0.456, 0.406),
        std: tuple[float, float, float] = (0.229, 0.224, 0.225),
        shuffle: bool = True,
        seed: int = 42,
        steps_per_epoch: int | None = None,
        world_rank: int = 0,
        world_size: int = 1,
        device: Any = "cuda",
    ) -> None:
        if isinstance(root, (str, os.PathLike)):
            self.items, self.classes = _found(os.fspath(root))
        else:
            self.items = [(os.fspath(path), whole("label", label)) for path, label in root]
            labels = {label for _, label in self.items}
            self.classes = [*sorted(labels)]
            if not self.items:
                raise SettingError("root has no videos")
        clip_len = one_or_more("clip_len", clip_len)
        batch_size = one_or_more("batch_size", batch_size)
        of_all = batch_size * one_or_more("world_size", world_size)
        if steps_per_epoch is None:
            steps_per_epoch = max(1, len(self.items) // of_all)
        self.steps_per_epoch = one_or_more("steps_per_epoch", steps_per_epoch)
        times = math.ceil(self.steps_per_epoch * of_all / len(self.items))
        size = sides("image_size", image_size)
        transform: list[T.Transform] = [T.Resize(size, antialias=False)]
        if train_aug:
            crop = T.RandomResizedCrop(size, scale=scale, ratio=ratio, antialias=False)
            transform = [crop, T.RandomHorizontalFlip()]
        settings = {
            "transform": [*transform, T.ToTensor(), T.Normalize(mean, std)],
            "shuffle": shuffle,
            "seed": seed,
            "drop_last": True,
            "num_workers": workers,
            "dtype": "float32",
            "device": device,
            "ranks": Ranks(world_rank, world_size),
        }
        with original_errors(opening="videos"):
            for path, _ in self.items:
                _check_file(path)
            videos = open([path for path, _ in self.items])
            # Samples are told apart by their number, which is that of their item.
            if len(videos) != len(self.items):
                raise SettingError(
                    f"root has {len(self.items)} paths with {len(videos)} samples, expected one "
                    "video in each file"
                )
            self._loader = _Loader(
                videos.repeat(times),
                batch_size,
                clips=Clips(clip_len, stride=frame_step),
                **settings,
            )
        self._epoch = 0

    def __len__(self) -> int:
        return self.steps_per_epoch

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self._epoch = whole("epoch", epoch)

    def __iter__(self) -> Iterator[tuple[Any, Any, dict[str, Any]]]:
        import torch

        self._loader.set_epoch(self._epoch)
        with original_errors():
            for _, batch in zip(range(self.steps_per_epoch), self._loader, strict=False):
                clips = batch["video"].torch()
                rows = [self.items[sample["index"]] for sample in batch]
                labels = torch.tensor([label for _, label in rows], device=clips.device)
                yield clips, labels, {"paths": [path for path, _ in rows]}


def _check_file(path: str) -> None:
    """Refuse a path that stands for several files. One that does not exist is opened in vain."""
    local = os.path.expanduser(path)
    if is_url(path) or os.path.isfile(local):
        return
    if os.path.exists(local) or expand(local) != [local]:
        raise SettingError(f"{path}: expected the file of one video, not a folder or a pattern")


def _found(root: str) -> tuple[list[tuple[str, int]], list[str | int]]:
    """Return the videos with their labels, and the names of the classes."""
    classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
    found = [
        (os.path.join(root, name, file), label)
        for label, name in enumerate(classes)
        for file in sorted(os.listdir(os.path.join(root, name)))
        if file.lower().endswith(_ENDINGS) and os.path.isfile(os.path.join(root, name, file))
    ]
    if not found:
        raise SettingError(f"{root} has no folder with videos ({', '.join(_ENDINGS)})")
    return found, [*classes]
