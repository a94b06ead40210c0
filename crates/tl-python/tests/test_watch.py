"""The line about a running loader on a terminal, and nothing elsewhere."""

import os
import pty
import re
import subprocess
import sys

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

LINE = re.compile(
    r"[0-9]+ samples/s, waiting [0-9]+ % of the time, limited by [a-z ]+, "
    r"[0-9]+ of [0-9]+ batches in use, [0-9]+ MB"
)


def on_terminal(*arguments):
    """What the script writes to a terminal."""
    terminal, slave = pty.openpty()
    # Wide enough for a whole line.
    settings = os.environ | {"COLUMNS": "200"}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments], stdout=slave, stderr=slave, env=settings
    ) as process:
        os.close(slave)
        written = b""
        # Linux ends a terminal whose other side is closed with an error.
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:
                break
            if not part:
                break
            written += part
    os.close(terminal)
    assert process.returncode == 0, written
    return written.decode()


def test_a_line_is_drawn_again_and_the_last_one_stays(data):
    written = on_terminal(data)
    assert written.endswith("\r\n")
    first, *lines = written.removesuffix("\r\n").split("\r\x1b[K")
    assert first == "" and len(lines) >= 4, written
    assert all(LINE.fullmatch(line) or line == "no batch received" for line in lines[:-1]), lines
    last = LINE.fullmatch(lines[-1])
    assert last is not None, lines
    # 110 samples in the ten pauses between eleven batches, or longer.
    assert 0 < int(lines[-1].split(" ")[0]) <= 74, lines


def test_a_closed_loader_ends_the_line(data):
    written = on_terminal(data, "close")
    assert "samples/s" in written and "Traceback" not in written, written


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
