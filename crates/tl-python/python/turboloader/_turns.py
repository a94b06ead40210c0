"""The epoch of an iteration, for all processes that iterate over one data set of torch."""

# mypy: disable-error-code="import-not-found,misc,no-untyped-call,type-arg"

from __future__ import annotations

import multiprocessing
import operator
from typing import Any

import torch
from torch.utils.data import get_worker_info

# Workers of one torch DataLoader: far more than there are on one machine.
_MOST_WORKERS = 1024

# A row of what was begun is one number, so that nobody sees half of it: which run, the turn of its
# iteration 0, and the last turn, of this many bits each.
_BITS = 21
_MIDDLE = 1 << (_BITS - 1)
_NONE = -1

# The run of a process that is not a worker: each iteration is a separate run.
_ALONE = 0


class Turns:
    """Epochs taken in turn: each iteration is the next one, for any caller and any workers.

    All workers of one iteration have to take the same turn, though each begins when it comes to it,
    some maybe never, and nobody tells them of each other. What they share is their *run*: they are
    created in sequence, and so have one number as children less their own as workers. The
    first of a run to begin an iteration takes the turn after all others, and the others of the run
    follow it.
    """

    def __init__(self) -> None:
        # The epoch and the batch of the first turn, and how often they were chosen.
        self._chosen = torch.zeros(3, dtype=torch.int64).share_memory_()
        # What each worker has begun since then.
        self._begun = torch.full((_MOST_WORKERS,), _NONE, dtype=torch.int64).share_memory_()
        # The run that this process is in, and how many iterations it has made in it.
        self._run: tuple[int, int] | None = None
        self._made = 0

    def choose(self, epoch: int, batch: int) -> None:
        """Say what the next iteration begins with."""
        self._begun.fill_(_NONE)
        self._chosen[:] = torch.tensor((epoch, batch, int(self._chosen[2]) + 1))

    def make(self) -> int:
        """Return the number of a new iteration in its run; in each worker the same one."""
        run = _run(), int(self._chosen[2])
        if run != self._run or run[0] == _ALONE:
            self._run, self._made = run, 0
        self._made += 1
        return self._made - 1

    def next(self, number: int) -> tuple[int, int]:
        """Return the epoch and the batch that this process begins iteration `number` with."""
        epoch, batch, _ = self._chosen.tolist()
        worker = get_worker_info()
        # A process that is not a worker has a run for each iteration.
        own, number = (0, 0) if worker is None else (worker.id, number)
        turn = self._turn(number)
        return epoch + turn, (batch if turn == 0 else 0) + own

    def begin(self, number: int, epoch: int) -> None:
        """Note that this process has begun iteration `number` with an epoch."""
        worker = get_worker_info()
        turn = epoch - int(self._chosen[0])
        row = 0 if worker is None else worker.id
        self._begun[row] = _packed(_run(), turn - number, turn)

    def is_last_in_workers(self) -> bool:
        """Return whether workers have begun the last iteration."""
        begun = [_unpacked(packed) for packed in self._begun.tolist() if packed != _NONE]
        run, _, _ = max(begun, key=operator.itemgetter(2), default=(_ALONE, 0, 0))
        return run != _ALONE

    def _turn(self, number: int) -> int:
        """Return the turn of iteration `number` of this process's run."""
        run, last = _run(), -1
        for packed in self._begun.tolist():
            if packed == _NONE:
                continue
            other, first, turn = _unpacked(packed)
            if other == run != _ALONE and turn - first >= number:
                return first + number
            last = max(last, turn)
        return last + 1


def _run() -> int:
    worker = get_worker_info()
    if worker is None:
        return _ALONE
    identity: Any = getattr(multiprocessing.current_process(), "_identity", ())
    # Workers that multiprocessing has not made have in common what they were seeded with.
    number = identity[-1] if identity else worker.seed
    return int(1 + (number - worker.id) % ((1 << _BITS) - 1))


def _packed(run: int, first: int, last: int) -> int:
    return (run << 2 * _BITS) | ((first + _MIDDLE) << _BITS) | (last + _MIDDLE)


def _unpacked(packed: int) -> tuple[int, int, int]:
    mask = (1 << _BITS) - 1
    return packed >> 2 * _BITS, ((packed >> _BITS) & mask) - _MIDDLE, (packed & mask) - _MIDDLE
