"""Counts of accesses to samples, which give each access to a sample a separate draw."""

# mypy: disable-error-code="import-not-found,misc,no-untyped-call,type-arg"

from __future__ import annotations

import hashlib
import os
from typing import Any

import torch
from torch.utils.data import get_worker_info

from ._ranks import detected_ranks, initialized

# Counts have 16 bits, because shared memory is scarce in containers.
_MASK = (1 << 16) - 1


class Accesses:
    """The epoch and the seed of the next access to each sample, in this process and in workers.

    Torch does not tell a map-style data set when an epoch begins. Unless the caller chooses an
    epoch, access ``n`` to a sample therefore counts as epoch ``n``: a loop that visits every sample
    once an epoch gets the draws of that epoch. Within a chosen epoch each repetition has a seed of
    its own, and so has each rank above 0 without one.

    All counts are in shared memory. Workers of torch's DataLoader inherit it, also those of later
    epochs. Counting takes no lock: two workers that access the same sample at the same moment may
    get the same draw. Only samplers with replacement, or with a sample twice in an epoch, give one
    sample to two workers at a time.
    """

    def __init__(self, seed: int, samples: int) -> None:
        self._seed = seed
        # The first epoch, whether the caller chose it, and the greatest count.
        self._epoch = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._counts = torch.zeros(samples, dtype=torch.int16).share_memory_()
        # The rank of the process that pickled this object for a worker.
        self._pickled_rank: int | None = None

    def choose(self, epoch: int) -> None:
        """Choose the epoch of the accesses that follow."""
        self._epoch[:] = torch.tensor((epoch, 1, 0))
        self._counts.zero_()

    def next(self, sample: int) -> tuple[int, int]:
        """Count an access to ``sample``, and return its epoch and its seed."""
        counts = self._counts.numpy()
        count = int(counts[sample]) & _MASK
        # As NumPy wraps, without its warning.
        counts[sample] = ((count + 1 + (1 << 15)) & _MASK) - (1 << 15)
        first, is_chosen, greatest = self._epoch.tolist()
        if count >= greatest:
            self._epoch[2] = count + 1
        if is_chosen:
            epoch, repetition, rank = first, count, 0
        else:
            epoch, repetition, rank = first + count, 0, self._rank()
        return epoch, self._seed if repetition == rank == 0 else self._derived(repetition, rank)

    def state_dict(self) -> dict[str, Any]:
        """Return the latest epoch of an access, in this process or a worker."""
        first, is_chosen, greatest = self._epoch.tolist()
        epoch = first if is_chosen else first + max(greatest - 1, 0)
        return {"epoch": epoch, "is_chosen": bool(is_chosen)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue in the epoch of ``state``."""
        self._epoch[0], self._epoch[1] = int(state["epoch"]), int(state["is_chosen"])
        # Workers load the same state while others of them may be counting already.
        if get_worker_info() is None:
            self._epoch[2] = 0
            self._counts.zero_()

    def _derived(self, repetition: int, rank: int) -> int:
        text = f"{self._seed} repetition {repetition} rank {rank}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")

    def _rank(self) -> int:
        """Return the rank of this training process; each rank counts its own accesses."""
        rank = initialized_rank()
        if rank is None:
            rank = self._pickled_rank
        if rank is None:
            named = os.environ.get("RANK", "")
            ranks = detected_ranks()
            of_launcher = 0 if ranks is None else ranks.rank
            rank = int(named) if named.isdecimal() else of_launcher
        return rank

    def __getstate__(self) -> dict[str, Any]:
        # A worker that is spawned has not initialised torch.distributed.
        return {**self.__dict__, "_pickled_rank": initialized_rank()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # Other picklers than that of torch.multiprocessing copy the memory.
        for tensor in (self._epoch, self._counts):
            tensor.share_memory_()


def initialized_rank() -> int | None:
    """Return the rank in ``torch.distributed``, where that is initialised."""
    distributed = initialized()
    return None if distributed is None else int(distributed.get_rank())
