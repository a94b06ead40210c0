"""The threads that read: batches do not depend on them, and `io_uring` is used where it can be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import pytest
import turboloader as tl
from turboloader import _native, compat

CHOICES = [
    0,
    3,
    "workers",
    "planned",
    "uring",
    tl.Readers("uring", depth=4),
    tl.Readers("uring", depth=16, page_cache="bypassed"),
]

needs_io_uring = pytest.mark.skipif(
    not _native.has_io_uring(), reason="io_uring is refused here, or not built in"
)


def stored(data, **settings) -> list[bytes]:
    with tl.DataLoader(data, 8, shuffle=True, decode=False, **settings) as loader:
        return [sample for batch in loader for sample in batch["bytes"]]


@pytest.mark.parametrize("readers", CHOICES, ids=str)
def test_batches_do_not_depend_on_readers(data, readers):
    expected = stored(data)
    assert len(set(expected)) == 100
    assert stored(data, readers=readers) == expected
    # A sample is always admitted, however few bytes may be read ahead.
    memory = tl.Memory(read_ahead_bytes=1)
    assert stored(data, readers=readers, memory=memory) == expected


def rings() -> int:
    """The rings of io_uring that this process has open."""
    folder = "/proc/self/fd"
    targets = []
    for descriptor in os.listdir(folder):
        # That of the listing is closed again.
        if os.path.islink(f"{folder}/{descriptor}"):
            targets.append(os.readlink(f"{folder}/{descriptor}"))
    return sum("io_uring" in target for target in targets)


@needs_io_uring
def test_io_uring_reads_where_it_is_asked_for(data):
    assert rings() == 0
    with tl.DataLoader(data, 2, decode=False, readers="uring") as loader:
        batches = iter(loader)
        next(batches)
        assert rings() == 1
        assert not any("io_uring" in note for note in loader.notes)
    assert rings() == 0
    with tl.DataLoader(data, 2, decode=False) as loader:
        batches = iter(loader)
        next(batches)
        # Workers read by default.
        assert rings() == 0


@needs_io_uring
def test_strace_sees_the_calls(data):
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "true"], capture_output=True).returncode != 0:
        pytest.skip("no strace, or it may not trace here")
    loop = (
        "import sys, turboloader as tl;"
        "list(tl.DataLoader(sys.argv[1], 8, decode=False, readers=tl.Readers('uring', depth=4)))"
    )
    traced = "trace=io_uring_setup,io_uring_enter"
    command = [strace, "-f", "-e", traced, sys.executable, "-c", loop, str(data)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "io_uring_setup(4, " in lines
    assert "io_uring_enter(" in lines


REFUSED = """
import ctypes, hashlib, struct, sys
import turboloader as tl

path, call = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
# A filter as that of a container: EPERM for this call, anything else is permitted. The number of
# the call is at the start of what filters see.
load, equal, give = 0x20, 0x15, 0x06
lines = [
    struct.pack("HBBI", load, 0, 0, 0),
    struct.pack("HBBI", equal, 0, 1, call),
    struct.pack("HBBI", give, 0, 0, 0x00050000 | 1),
    struct.pack("HBBI", give, 0, 0, 0x7FFF0000),
]
code = ctypes.create_string_buffer(b"".join(lines))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program) == 0, ctypes.get_errno()
loader = tl.DataLoader(path, 8, decode=False, readers="uring")
digest = hashlib.sha256()
for batch in loader:
    for sample in batch["bytes"]:
        digest.update(sample)
print(digest.hexdigest())
print("\\n".join(loader.notes))
"""


@needs_io_uring
@pytest.mark.parametrize(
    ("call", "name"),
    [(425, "io_uring_setup"), (426, "io_uring_enter"), (427, "io_uring_register")],
)
def test_threads_read_where_a_sandbox_refuses_it(data, call, name):
    def lines(number: int) -> list[str]:
        command = [sys.executable, "-c", textwrap.dedent(REFUSED), str(data), str(number)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        return run.stdout.splitlines()

    # No call has this number.
    expected, *notes = lines(999_999)
    assert not any("io_uring" in note for note in notes)
    digest, *notes = lines(call)
    assert digest == expected
    (note,) = [note for note in notes if "io_uring" in note]
    assert note.startswith(f"io_uring is refused here ({name}: Operation not permitted")
    assert "seccomp" in note
    assert note.endswith("4 threads read instead")


@pytest.mark.parametrize(
    ("readers", "message"),
    [
        ("uringe", "readers is uringe, expected one of workers, planned, uring"),
        (-1, "readers is -1, expected a whole number"),
        (1025, "readers is 1025, at most 1024"),
        (True, "expected a turboloader.Readers"),
        (lambda: tl.Readers("workers", depth=3), "depth is for kind='uring' only"),
        (lambda: tl.Readers(4, page_cache="used"), "page_cache is for kind='uring' only"),
        (lambda: tl.Readers("uring", depth=0), "Readers: depth is 0, expected .* from 1 to 1024"),
        (lambda: tl.Readers("uring", page_cache="direct"), "page_cache"),
    ],
)
def test_settings_that_cannot_be_are_refused(data, readers, message):
    with pytest.raises(tl.SettingError, match=message):
        tl.DataLoader(data, readers=readers() if callable(readers) else readers)
    memory, store = tl.Memory(read_ahead_bytes=100), tl.Store(read_ahead=100)
    with pytest.raises(tl.SettingError, match="conflicting settings: read_ahead of store, and"):
        tl.DataLoader(data, image_size=4, memory=memory, store=store)
    with pytest.raises(tl.SettingError, match="Memory: read_ahead_bytes is 0"):
        tl.Memory(read_ahead_bytes=0)


def test_the_first_interface_says_whether_it_is_there():
    assert compat.features()["io_uring"] is _native.has_io_uring()
