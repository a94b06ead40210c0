"""The command line: ``python -m turboloader`` is ``tl``."""

from __future__ import annotations

import signal
import sys

from ._native import tl


def main() -> None:
    """Run the command with the arguments of the process, and end with its exit code."""
    # Ctrl-C ends the command at once, as it does the program of the same name.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(tl(["tl", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
