"""The ranks of this training job, and data sets that they divide twice or not at all."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, Final

from .exceptions import SettingError
from .settings import Ranks

# The variables of rank and world size by launcher. Where several are set, the first counts: a
# launcher that another one started is above it.
_LAUNCHERS: Final = {
    "torchrun, DeepSpeed": ("RANK", "WORLD_SIZE"),
    "Horovod": ("HOROVOD_RANK", "HOROVOD_SIZE"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "MPICH, Intel MPI": ("PMI_RANK", "PMI_SIZE"),
    "Slurm": ("SLURM_PROCID", "SLURM_NTASKS"),
}


def launched_ranks() -> Ranks | None:
    """Return rank and world size of this process, if it is one of a job.

    Raises
    ------
    SettingError
        If variables are not numbers, or those of two launchers contradict each other.
    """
    distributed = initialized()
    if distributed is not None:
        return Ranks(int(distributed.get_rank()), int(distributed.get_world_size()))
    found = [
        (names, _ranks_of(*names))
        for names in _LAUNCHERS.values()
        if all(name in os.environ for name in names)
    ]
    if not found:
        return None
    (names, ranks), *others = found
    for other_names, other in others:
        # Slurm also sets its variables for shells and for launchers, which start processes of
        # their own.
        if other_names[0] == "SLURM_PROCID" or other == ranks or _starts(other, ranks):
            continue
        raise SettingError(
            f"ranks='auto': conflicting variables: {_shown(names, ranks)}, but "
            f"{_shown(other_names, other)}; pass turboloader.Ranks(rank, world_size)"
        )
    return ranks


def detected_ranks() -> Ranks | None:
    """Return what `launched_ranks` does, and None where that is refused."""
    try:
        return launched_ranks()
    except SettingError:
        return None


def _ranks_of(rank: str, world: str) -> Ranks:
    numbers = []
    for name in (rank, world):
        text = os.environ[name]
        if not (text.isascii() and text.isdigit()):
            raise SettingError(f"ranks='auto': {name} is {text!r}, expected a whole number")
        numbers.append(int(text))
    try:
        return Ranks(*numbers)
    except SettingError as error:
        raise SettingError(
            f"ranks='auto': {rank} is {numbers[0]}, expected less than {world} ({numbers[1]})"
        ) from error


def _starts(outer: Ranks, ranks: Ranks) -> bool:
    """Return whether each process of one launcher may have started several of another."""
    return outer.world_size < ranks.world_size and ranks.world_size % outer.world_size == 0


def _shown(names: tuple[str, str], ranks: Ranks) -> str:
    rank, world = names
    return f"{rank} is {ranks.rank} and {world} is {ranks.world_size}"


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
        ranks = detected_ranks()
        if ranks is not None and ranks.world_size > 1:
            self._has_warned = True
            warnings.warn(
                f"rank {ranks.rank} of {ranks.world_size} loads the whole data set, and so does "
                "every other rank: pass ranks='auto' to give each rank its part, or "
                "ranks=turboloader.Ranks(0, 1) if this is intended",
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
