"""The line about a running loader on a terminal, and nothing elsewhere."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time

import pytest
import turboloader as tl

# An epoch of a second and a half, with a line every 0.2 seconds.
SCRIPT = """
import sys, time
import turboloader as tl
loader = tl.DataLoader(sys.argv[1], batch_size=10, shuffle=True, num_workers=1)
with tl.watch(loader, every=0.2):
    for batch in loader:
        time.sleep(0.15)
    if sys.argv[2:]:
        loader.close()
"""

# A process that watches until its terminal is closed, and ends its epoch.
WITHOUT_TERMINAL = """
import sys, time
import turboloader as tl
loader = tl.DataLoader(sys.argv[1], batch_size=10, num_workers=1)
samples = 0
with tl.watch(loader, every=0.1):
    for batch in loader:
        samples += len(batch["label"])
        if samples == 50:
            sys.stdin.readline()
print(samples)
"""

LINE = re.compile(
    r"[0-9]+ samples/s, waiting [0-9]+ %(, limited by [a-z ]+)?, [0-9]+ batch(es)? in use"
)


def opened(columns):
    """The two sides of a terminal with so many columns."""
    terminal, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return terminal, slave


def all_of(terminal):
    """What was written to a terminal whose other side is closed, or will be."""
    written = b""
    # Linux ends such a terminal with an error.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 4096):
            written += part
    os.close(terminal)
    return written.decode()


def on_terminal(*arguments, columns=80):
    """What the script writes to a terminal, whose width is another one than the environment has."""
    terminal, slave = opened(columns)
    settings = os.environ | {"COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=slave,
        env=settings,
    ) as process:
        os.close(slave)
        written = all_of(terminal)
    assert process.returncode == 0, written
    return written


def test_a_line_is_drawn_again_and_the_last_one_stays(data):
    written = on_terminal(data)
    assert written.endswith("\r\n")
    first, *lines = written.removesuffix("\r\n").split("\r\x1b[K")
    assert first == "" and len(lines) >= 4, written
    assert all(LINE.fullmatch(line) or line == "no batch received" for line in lines[:-1]), lines
    last = LINE.fullmatch(lines[-1])
    assert last is not None, lines
    # 100 samples in the nine pauses between ten batches, or longer.
    assert 0 < int(lines[-1].split(" ")[0]) <= 74, lines


# A terminal of no columns does not know how many it has.
@pytest.mark.parametrize(("columns", "longest"), [(30, 29), (0, 79)])
def test_a_line_has_room_in_the_terminal(data, columns, longest):
    first, *lines, _ = on_terminal(data, columns=columns).split("\r\x1b[K")
    assert first == "" and lines, lines
    assert all(len(line) <= longest for line in lines), lines
    cut = [line for line in lines if "samples/s" in line]
    assert cut and all(len(line) == 29 for line in cut) == (columns == 30), lines


def test_a_closed_loader_ends_the_line(data):
    written = on_terminal(data, "close")
    assert written.endswith(" in use\r\n") and written.count("\r\n") == 1, written
    assert LINE.fullmatch(written.removesuffix("\r\n").split("\r\x1b[K")[-1]), written


def test_a_closed_loader_without_a_line_ends_none(data, monkeypatch):
    terminal, slave = opened(80)
    with open(slave, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        loader = tl.DataLoader(data, batch_size=10)
        with tl.watch(loader, every=60):
            loader.close()
    assert all_of(terminal) == ""


def test_training_continues_without_the_terminal(data):
    terminal, slave = opened(80)
    with subprocess.Popen(
        [sys.executable, "-c", WITHOUT_TERMINAL, data],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=slave,
    ) as process:
        os.close(slave)
        assert os.read(terminal, 4096).startswith(b"\r\x1b[K")
        os.close(terminal)
        # At least one line is written to a terminal that is closed.
        time.sleep(0.3)
        samples, _ = process.communicate(b"\n")
    # Python's own status of a process whose standard error cannot be written at its end.
    assert process.returncode in (0, 120)
    assert samples == b"100\n"


def test_a_closed_file_ends_no_training(data, monkeypatch):
    terminal, slave = opened(80)
    stream = os.fdopen(slave, "w")
    monkeypatch.setattr(sys, "stderr", stream)
    loader = tl.DataLoader(data, batch_size=10)
    with tl.watch(loader, every=0.05):
        assert os.read(terminal, 4096).startswith(b"\r\x1b[K")
        stream.close()
        batches = len(list(loader))
    assert batches == 10
    # Also one that was closed before.
    with tl.watch(loader):
        assert len(list(loader)) == 10
    assert all_of(terminal).count("\n") == 0


def test_nothing_is_written_to_a_pipe(data):
    command = [sys.executable, "-c", SCRIPT, data]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_reports_have_differences(data):
    loader = tl.DataLoader(data, batch_size=10)
    list(loader)
    before = loader.report()
    batches = iter(loader)
    next(batches)
    assert (loader.report().samples, loader.report().since(before).samples) == (110, 10)
    assert LINE.fullmatch(loader.report().line)


@pytest.mark.parametrize("every", [0, -1, True, "1", float("nan"), 4000])
def test_wrong_times_are_refused(data, every):
    loader = tl.DataLoader(data, batch_size=10)
    refused = pytest.raises(tl.SettingError, match=r"every is .*, expected seconds")
    with refused, tl.watch(loader, every=every):
        pass
