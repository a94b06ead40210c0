"""The ranks of this training job, and data sets that they divide twice or not at all."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from .exceptions import SettingError


def detected_ranks() -> tuple[int, int] | None:
    """Return rank and world size of this process, where it is one of a job."""
    distributed = initialized()
    if distributed is not None:
        return int(distributed.get_rank()), int(distributed.get_world_size())
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None


def initialized() -> Any:
    """Return ``torch.distributed`` if it is initialised."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


class ShardingCheck:
    """The check that ranks divide a data set exactly once, made when an iteration begins."""

    def __init__(self, world: int, is_chosen: bool) -> None:
        # Whether the caller said which part this process gets: also the whole one.
        self._world, self._is_chosen = world, is_chosen
        self._has_warned = False

    def begin(self) -> None:
        """Refuse a data set that is divided twice, and warn once of one that is not divided.

        Raises
        ------
        SettingError
            If Accelerate divides batches that are those of one rank already.
        """
        is_divided = _accelerate_divides()
        if is_divided and self._world > 1:
            raise SettingError(
                "the data set would be divided among ranks twice: Accelerate divides the batches "
                "of a prepared loader itself. Leave out ranks, or do not pass this loader to "
                "accelerator.prepare"
            )
        if is_divided is not False or self._is_chosen or self._has_warned:
            return
        rank, world = detected_ranks() or (0, 1)
        if world > 1:
            self._has_warned = True
            warnings.warn(
                f"rank {rank} of {world} loads the whole data set, and so does every other rank: "
                "pass ranks='auto' to give each rank its part, or ranks=turboloader.Ranks(0, 1) if "
                "this is intended",
                stacklevel=3,
            )


def _accelerate_divides() -> bool | None:
    """Return whether Accelerate divides what is iterated now; None where that cannot be known."""
    accelerate = sys.modules.get("accelerate.data_loader")
    state = sys.modules.get("accelerate.state")
    if accelerate is None or state is None or not state.is_initialized():
        return False
    if state.PartialState().num_processes == 1:
        return False
    # Its dispatcher iterates in the process of rank 0, whose workers see nothing of it.
    if sys.modules["torch"].utils.data.get_worker_info() is not None:
        return None
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == accelerate.__name__:
            return True
        frame = frame.f_back
    return False
