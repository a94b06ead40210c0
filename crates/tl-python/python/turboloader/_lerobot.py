"""Data sets of LeRobot: rows of numbers, each with frames of several videos.

>>> import turboloader as tl
>>> deltas = {"observation.images.top": [-0.1, 0.0], "action": [0.0, 0.1, 0.2]}
>>> data = tl.LeRobotDataset("robot", delta_timestamps=deltas)
>>> loader = tl.DataLoader(data, batch_size=4, shuffle=True, transform=[tl.Resize((48, 64))])
>>> batch = next(iter(loader))
>>> batch["observation.images.top"].shape, batch["action"].shape
((4, 2, 48, 64, 3), (4, 3, 3))
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._advice import advised
from ._checks import wholes
from ._paths import absolute, shown
from .dataset import Dataset
from .exceptions import SettingError
from .fields import Array
from .settings import Clips, StoreLike, as_store, number

if TYPE_CHECKING:
    from .settings import ClipColors

__all__ = ["LeRobotDataset"]


class LeRobotDataset(Dataset):
    """A data set of LeRobot, version 3: the frames of its episodes with what was measured then.

    Batches of a `DataLoader` have the features by their names: each camera, such as
    ``batch["observation.images.top"]``, the numbers, such as ``batch["observation.state"]`` and
    ``batch["action"]``, and ``episode_index``, ``frame_index``, ``timestamp``, ``task_index`` and
    ``index``. The transform of the loader makes all cameras one size, and is drawn once for all
    frames of a camera.

    The numbers of the rows are kept in memory; videos are read where they are. Texts are not in
    batches, and features of type ``image`` are refused.

    Parameters
    ----------
    path
        The folder with ``meta``, ``data`` and ``videos``: a path or a URL.
    delta_timestamps
        For features the distances in seconds from a row at which batches have them,
        ``{"observation.images.top": [-0.1, 0.0], "action": [0.0, 0.1, 0.2]}``: whole numbers of
        frames. Rows outside of the episode are those at its ends, and ``<feature>_is_pad`` is True
        for them. A camera with one distance has no dimension for it, as in LeRobot.
    episodes
        The numbers of the episodes to use, in this order. By default all.
    tolerance_s
        The largest difference in seconds between the time of a row and that of its frame.
    colors
        The conversion to RGB, as of `Clips`.
    store
        The reading of stores that URLs name.

    Raises
    ------
    SettingError
        For features that do not exist, and distances between frames.
    """

    @advised
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delta_timestamps: Mapping[str, Sequence[float]] | None = None,
        episodes: Sequence[int] | None = None,
        tolerance_s: float = 1e-4,
        colors: ClipColors = "ffmpeg",
        store: StoreLike = None,
    ) -> None:
        """Open the folder; see the class."""
        if not _native.HAS_ARROW:
            raise SettingError("LeRobotDataset needs the feature `arrow`, which this build lacks")
        root = absolute(os.fspath(path))
        deltas = [(name, _seconds(name, values)) for name, values in _items(delta_timestamps)]
        settings = {
            "deltas": deltas,
            "tolerance": number("tolerance_s", tolerance_s),
            "episodes": None if episodes is None else wholes("episodes", episodes),
            "store": as_store(store),
        }
        made, fields, cameras, frames = _native.lerobot(root, settings)
        clips = _of_rows(cameras, frames, colors)
        super().__init__(made, _reopened, (root, settings, colors), name=repr(shown(root)))
        self.fields = {name: Array(name) for name in fields}
        self.clips = clips


def _items(deltas: Any) -> list[tuple[str, Any]]:
    if deltas is None:
        return []
    if not isinstance(deltas, Mapping) or not all(isinstance(name, str) for name in deltas):
        raise SettingError(
            f"delta_timestamps has type {type(deltas).__name__}, expected a dict from names of "
            "features to seconds, such as {'action': [0.0, 0.1]}"
        )
    return list(deltas.items())


def _seconds(name: str, values: Any) -> list[float]:
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise SettingError(
            f"delta_timestamps: {name} is {values!r}, expected seconds such as [0.0, 0.1]"
        ) from None


def _of_rows(cameras: int, frames: int, colors: ClipColors) -> Clips:
    """Return a clip of each camera, whose frames the rows name."""
    clips = Clips(frames, clips=cameras, colors=colors)
    clips._set(start="rows")
    return clips


def _reopened(root: str, settings: dict[str, Any], colors: ClipColors) -> Dataset:
    """Open a data set again in another process."""
    made, fields, cameras, frames = _native.lerobot(root, settings)
    opened = Dataset(made, _reopened, (root, settings, colors), name=repr(shown(root)))
    opened.fields = {name: Array(name) for name in fields}
    opened.clips = _of_rows(cameras, frames, colors)
    return opened
