"""The command lines: ``python -m turboloader`` is ``tl``, and ``tar_to_tbl`` has a script."""

from __future__ import annotations

import signal
import sys

from . import _native


def main() -> None:
    """Run ``tl`` with the arguments of the process, and end with its exit code."""
    # Ctrl-C ends the command at once, as it does the program of the same name.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.tl(["tl", *sys.argv[1:]]))


def tar_to_tbl() -> None:
    """Run ``tar_to_tbl``: as `main`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.tar_to_tbl(["tar_to_tbl", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
