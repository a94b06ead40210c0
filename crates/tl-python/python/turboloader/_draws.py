"""The random draws of transforms that are called on their own."""

from __future__ import annotations

import itertools
import operator
import os
import sys

# Seeds have eight bytes; negative ones are taken as torch takes them.
_MOST = (1 << 64) - 1


class Draws:
    """A seed, and the numbers of the calls."""

    def __init__(self, seed: int | None = None) -> None:
        self.is_given = seed is not None
        self._seed = seed
        self._numbers = itertools.count()
        self._children = 0

    @property
    def seed(self) -> int:
        """The seed that was given; else that of torch's worker, or one of the system's."""
        if self._seed is None:
            worker = _worker_seed()
            self._seed = int.from_bytes(os.urandom(8), "little") if worker is None else worker
        return self._seed

    def number(self) -> int:
        """Return the number of this call."""
        return next(self._numbers)

    def fork(self) -> None:
        """Count a process that is about to be forked."""
        self._children += 1

    def of_child(self) -> Draws:
        """Return those of the process that was forked last."""
        if not self.is_given:
            return Draws()
        # As long to import as much of this package; most processes do not fork.
        import hashlib

        share = hashlib.sha256(f"{self.seed} {self._children}".encode()).digest()
        return Draws(int.from_bytes(share[:8], "little"))


def _worker_seed() -> int | None:
    """Return the seed of this process where it is a worker of torch's DataLoader."""
    data = sys.modules.get("torch.utils.data")
    worker = None if data is None else data.get_worker_info()
    return None if worker is None else int(worker.seed)


draws = Draws()


def manual_seed(seed: int) -> None:
    """Start the draws of transforms that are called on their own anew, from ``seed``.

    Processes that are forked afterwards draw each its own numbers, the same every time. Without it
    workers of torch's DataLoader draw from the seeds that torch gives them, and other processes
    from the system's.
    """
    global draws
    draws = Draws(operator.index(seed) & _MOST)


def _follow_fork() -> None:
    global draws
    draws = draws.of_child()


os.register_at_fork(before=lambda: draws.fork(), after_in_child=_follow_fork)
