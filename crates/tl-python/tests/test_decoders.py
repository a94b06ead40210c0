"""Decoders of the user: files of further formats, decoded by functions on the loader's threads."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, bmp, image

COUNT = 23


def pam(pixels: np.ndarray) -> bytes:
    """An image in Netpbm's format PAM: a header of words, then rows, big-endian."""
    height, width, depth = pixels.shape
    most = np.iinfo(pixels.dtype).max
    kind = {1: "GRAYSCALE", 3: "RGB", 4: "RGB_ALPHA"}[depth]
    head = f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {most}\nTUPLTYPE {kind}\n"
    return head.encode() + b"ENDHDR\n" + pixels.astype(pixels.dtype.newbyteorder(">")).tobytes()


def decode_pam(file):
    head, _, data = bytes(file).partition(b"ENDHDR\n")
    numbers = dict(line.split(None, 1) for line in head.splitlines()[1:])
    shape = [int(numbers[name]) for name in (b"HEIGHT", b"WIDTH", b"DEPTH")]
    dtype = np.uint8 if int(numbers[b"MAXVAL"]) < 256 else np.dtype(">u2")
    return np.frombuffer(data, dtype).reshape(shape)


PAM = tl.Decoder("pam", decode_pam, extensions=[".PAM"])


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "pam"
    for index in range(COUNT):
        path = root / "ab"[index % 2] / f"{index:03d}.pam"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pam(image(index, HEIGHT + index % 3, WIDTH)))
    return root


@pytest.fixture
def same(tmp_path):
    """The same images as bitmaps."""
    root = tmp_path / "bmp"
    for index in range(COUNT):
        path = root / "ab"[index % 2] / f"{index:03d}.bmp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bmp(image(index, HEIGHT + index % 3, WIDTH)))
    return root


def rows(loader):
    return [
        (batch["index"].numpy().tolist(), batch["label"].numpy().tolist(), batch["image"].numpy())
        for batch in loader
    ]


def check_equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one[:2] == other[:2]
        np.testing.assert_array_equal(one[2], other[2])


SETTINGS = {
    "batch_size": 4,
    "shuffle": True,
    "transform": [tl.transforms.RandomResizedCrop(5), tl.transforms.RandomHorizontalFlip()],
}


@pytest.mark.parametrize("workers", [1, 3])
def test_transforms_apply_as_to_the_same_images_in_a_format_that_is_built_in(folder, same, workers):
    expected = rows(tl.DataLoader(same, **SETTINGS))
    with_pam = {**SETTINGS, "decoders": [PAM], "num_workers": workers}
    check_equal(rows(tl.DataLoader(folder, **with_pam)), expected)
    for rank in range(2):
        place = {"batch_size": 2, "ranks": tl.Ranks(rank, 2)}
        of_rank = rows(tl.DataLoader(folder, **{**with_pam, **place}))
        check_equal(of_rank, rows(tl.DataLoader(same, **{**SETTINGS, **place})))


def test_functions_get_a_view_of_the_file_on_other_threads(folder):
    threads, kept = set(), []

    def decode(file):
        assert isinstance(file, memoryview)
        assert file.readonly
        threads.add(threading.get_ident())
        kept.append(file)
        return decode_pam(file)

    decoder = tl.Decoder("pam", decode, magic=b"P7\n")
    loader = tl.DataLoader(folder, batch_size=COUNT, image_size=4, decoders=[decoder])
    next(iter(loader))
    loader.close()
    assert threading.get_ident() not in threads
    # Workers may have begun with the next epoch.
    assert set(map(bytes, kept)) == {path.read_bytes() for path in folder.glob("*/*.pam")}


def test_a_state_is_of_the_version_of_a_decoder(folder):
    settings = {**SETTINGS, "decoders": [PAM]}
    loader = tl.DataLoader(folder, **settings)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    rest = [batch["image"].numpy() for batch in batches]
    resumed = tl.DataLoader(folder, **{**settings, "num_workers": 2})
    resumed.load_state_dict(state)
    found = [batch["image"].numpy() for batch in resumed]
    assert len(found) == len(rest) > 0
    assert all((one == other).all() for one, other in zip(found, rest, strict=True))
    other = tl.Decoder("pam", decode_pam, extensions=["pam"], version=2)
    with pytest.raises(tl.StateError, match="recipe"):
        tl.DataLoader(folder, **{**settings, "decoders": [other]}).load_state_dict(state)


def test_grey_alpha_and_wider_pixels(tmp_path):
    grey, alpha = image(1)[:, :, :1], np.dstack([image(2), image(3)[:, :, 0]])
    wide = image(4).astype(np.uint16) * 257 + 3
    for name, pixels in (("a", grey), ("b", alpha)):
        (tmp_path / f"{name}.pam").write_bytes(pam(pixels))
    batch = next(iter(tl.DataLoader(tmp_path, batch_size=2, decoders=[PAM], image_size=None)))
    np.testing.assert_array_equal(batch["image"][0].numpy(), np.repeat(grey, 3, axis=2))
    np.testing.assert_array_equal(batch["image"][1].numpy(), alpha[:, :, :3])
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide/a.pam").write_bytes(pam(wide))
    crop = tl.transforms.CenterCrop((HEIGHT, WIDTH))
    settings = {"batch_size": 1, "decoders": [PAM], "transform": crop, "channels_last": True}
    batch = next(iter(tl.DataLoader(tmp_path / "wide", pixels="uint16", **settings)))
    np.testing.assert_array_equal(batch["image"].numpy()[0], wide)
    with pytest.raises(tl.DecodeError, match="cannot become RGB of u8"):
        next(iter(tl.DataLoader(tmp_path / "wide", **settings)))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda file: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda file: np.zeros((2, 3, 2), np.uint8), "expected uint8, uint16 or float32 of shape"),
        (lambda file: np.zeros((2, 3)), "it returned float64 of shape"),
        (lambda file: None, "expected uint8"),
        (lambda file: np.zeros((0, 3), np.uint8), "made an image without pixels: 3x0"),
        (lambda file: np.zeros((1 << 15, 1 << 15, 1), np.uint8), "max_pixels is 178956970"),
    ],
)
def test_what_a_function_does_wrong_is_the_error_of_the_sample(folder, function, message):
    decoder = tl.Decoder("pam", function, extensions=["pam"])
    loader = tl.DataLoader(folder, batch_size=2, image_size=4, decoders=[decoder], num_workers=1)
    with pytest.raises(tl.DecodeError, match=message) as raised:
        list(loader)
    assert (raised.value.sample, raised.value.key) == (0, "a/000.pam")
    assert "decoder pam: " in str(raised.value)
    if "ZeroDivision" in message:
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_bad_samples_are_skipped(folder):
    (folder / "a/000.pam").write_bytes(b"P7\nnonsense")
    settings = {"batch_size": 4, "image_size": 4, "decoders": [PAM], "errors": "skip"}
    with pytest.warns(UserWarning, match="decoder pam"):
        loader = tl.DataLoader(folder, **settings)
        assert sum(len(batch) for batch in loader) == COUNT - 1


def first_rows(loader, queue):
    queue.put([batch["image"].numpy() for batch in loader])


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_loaders_with_decoders_go_to_other_processes(folder, start):
    loader = tl.DataLoader(folder, **SETTINGS, decoders=[PAM])
    expected = [batch["image"].numpy() for batch in pickle.loads(pickle.dumps(loader))]
    context = multiprocessing.get_context(start)
    queue = context.Queue()
    copy = pickle.loads(pickle.dumps(loader)) if start == "spawn" else None
    if copy is None:
        # A forked process opens its own.
        def target(queue):
            first_rows(tl.DataLoader(folder, **SETTINGS, decoders=[PAM]), queue)

        process = context.Process(target=target, args=(queue,))
    else:
        process = context.Process(target=first_rows, args=(copy, queue))
    process.start()
    found = queue.get(timeout=120)
    process.join()
    assert len(found) == len(expected) > 0
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))


ENDING = """
import sys
import numpy as np
import turboloader as tl

def decode(file):
    return np.zeros((64, 64, 3), np.uint8)

decoder = tl.Decoder("pam", decode, magic=b"P7")
loader = tl.DataLoader(sys.argv[1], 2, image_size=4, decoders=[decoder], num_workers=3)
epoch = iter(loader)
print(len(next(epoch)["index"]))
"""


def test_processes_end_while_functions_are_called(folder):
    """The end of the interpreter must not wait for threads that wait for it."""
    for _ in range(5):
        command = [sys.executable, "-W", "ignore", "-c", ENDING, str(folder)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert ended.stdout == "2\n"


def test_a_function_that_belongs_to_its_loader_is_collected_with_it(folder):
    class Owner:
        def decode(self, file):
            return decode_pam(file)

    owner = Owner()
    decoder = tl.Decoder("pam", owner.decode, extensions=["pam"])
    owner.loader = tl.DataLoader(folder, batch_size=2, image_size=4, decoders=[decoder])
    next(iter(owner.loader))
    owner.loader.close()
    gone = weakref.ref(owner)
    del owner, decoder
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tl.Decoder("", decode_pam, magic=b"P7"), "name is ''"),
        (lambda: tl.Decoder("a", 3, magic=b"P7"), "function is 3, expected a function"),
        (lambda: tl.Decoder("a", decode_pam), "takes no file: pass extensions or magic"),
        (lambda: tl.Decoder("a", decode_pam, magic="P7"), "magic is 'P7', expected bytes"),
        (lambda: tl.Decoder("a", decode_pam, extensions=["a.b"]), "extensions has 'a.b'"),
        (lambda: tl.Decoder("a", decode_pam, magic=b"P7", version=-1), "version is -1"),
        (lambda: tl.DataLoader("x", decoders=PAM), "expected a list of turboloader.Decoder"),
        (lambda: tl.DataLoader("x", decoders=[PAM, PAM]), "two of the name 'pam'"),
    ],
)
def test_mistakes_are_refused(make, message):
    with pytest.raises(tl.SettingError, match=message):
        make()


def test_decoders_need_images(folder):
    with pytest.raises(tl.SettingError, match="decoders: not supported with decode=False"):
        tl.DataLoader(folder, decode=False, decoders=[PAM])


@pytest.mark.parametrize(
    ("retry", "message"),
    [
        (0, "attempts is 0"),
        (tl.Cache("1kB"), "expected a turboloader.Retry"),
        (101, "attempts is 101"),
    ],
)
def test_wrong_retries_are_refused(folder, retry, message):
    with pytest.raises(tl.SettingError, match=message):
        tl.DataLoader(folder, decoders=[PAM], retry=retry)


def test_a_loader_counts_its_retries(folder):
    loader = tl.DataLoader(
        folder, batch_size=4, image_size=4, decoders=[PAM], retry=tl.Retry(2, deadline=1)
    )
    assert loader._settings.retry == tl.Retry(2, delay=0.05, deadline=1.0)
    list(loader)
    assert loader.report().retries == {"repeated": 0, "given_up": 0, "wait_nanos": 0}
    with pytest.raises(tl.SettingError, match="deadline is -1"):
        tl.Retry(deadline=-1)
