"""Batches on a device: of an emulated driver, whose memory is that of the host, or of torch's.

With ``TURBOLOADER_TEST_DEVICE=cuda:0`` the tests use that device, and torch reads its memory.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import re
import subprocess
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import turboloader as tl

EMULATOR = pathlib.Path(__file__).parents[2] / "tl-cuda" / "kernels" / "emulator.c"
REAL = os.environ.get("TURBOLOADER_TEST_DEVICE")


def driver(folder: pathlib.Path, *macros: str) -> pathlib.Path:
    """Compile a driver that is emulated."""
    library = folder / f"libcuda-{'-'.join(macros)}.so"
    options = ["-shared", "-fPIC", "-O2", "-fno-strict-aliasing", "-fvisibility=hidden", "-pthread"]
    defined = [f"-D{macro}" for macro in macros]
    subprocess.run(["cc", *options, *defined, "-o", library, EMULATOR], check=True)
    return library


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path | None:
    return None if REAL else driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def device(library: pathlib.Path | None) -> tl.Device:
    return tl.Device(REAL or "cuda:0", required=True, library=library)


Read = Callable[[Any], np.ndarray]


@pytest.fixture
def read(library: pathlib.Path | None) -> Read:
    """Return the function that reads a tensor on the device, after waiting for it."""
    if library is None:
        import torch

        def by_torch(tensor: Any) -> np.ndarray:
            found = torch.from_dlpack(tensor).cpu()
            bits = found.view(torch.uint16) if found.dtype == torch.bfloat16 else found
            return bits.numpy()

        return by_torch
    emulated = ctypes.CDLL(os.fspath(library))

    def by_address(tensor: Any) -> np.ndarray:
        tensor.__dlpack__(stream=1, max_version=(1, 0))
        assert emulated.cuStreamSynchronize(ctypes.c_void_p(1)) == 0
        dtype = {"bfloat16": "uint16"}.get(tensor.dtype, tensor.dtype)
        buffer = (ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())
        return np.frombuffer(buffer, dtype).reshape(tensor.shape).copy()

    return by_address


def options(**settings: Any) -> dict[str, Any]:
    train = [tl.transforms.RandomResizedCrop(40), tl.transforms.RandomHorizontalFlip()]
    return {"batch_size": 5, "shuffle": True, "num_workers": 2, "transform": train, **settings}


def bits(tensor: tl.Tensor) -> np.ndarray:
    """The numbers of a tensor on the host, those of bfloat16 as integers."""
    if tensor.dtype != "bfloat16":
        return tensor.numpy()
    buffer = (ctypes.c_char * tensor.nbytes).from_address(tensor.data_ptr())
    return np.frombuffer(buffer, np.uint16).reshape(tensor.shape)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8"])
def test_batches_have_the_bits_of_the_host(photos, device, read, dtype, channels_last):
    settings = options(dtype=dtype, channels_last=channels_last)
    host = tl.DataLoader(photos, **settings)
    there = tl.DataLoader(photos, device=device, **settings)
    for _ in range(2):
        for batch, expected in zip(there, host, strict=True):
            assert batch.keys() == expected.keys()
            image = batch["image"]
            assert image.__dlpack_device__() == (2, device.ordinal)
            assert (image.shape, image.dtype) == (expected.image.shape, dtype)
            assert np.array_equal(read(image), bits(expected["image"]))
            assert np.array_equal(read(image[1]), bits(expected["image"][1]))
            for name in ("label", "index", "valid", "size"):
                if name in expected:
                    assert np.array_equal(read(batch[name]), expected[name].numpy())


def test_a_loader_explains_what_the_device_does(photos, device, read):
    decodes = "decodes JPEG images there"
    for dtype, work in (("float16", f"{decodes} and converts pixels"), ("uint8", decodes)):
        loader = tl.DataLoader(photos, device=device, **options(dtype=dtype))
        assert re.search(rf"^device   cuda:0 \(.+\), {work}$", loader.explain(), re.MULTILINE)
        for batch in loader:
            read(batch["image"])
        copies = r"^copies to the device: \d+ batches, \d+ MB, .* GB/s, .* ms of the device$"
        assert re.search(copies, str(loader.report()), re.MULTILINE)
        counted = loader.report().copies
        # The thread that looks at the times of copies comes to them later.
        deadline = time.monotonic() + 30
        while not counted["device_nanos"] and time.monotonic() < deadline:
            time.sleep(0.01)
            counted = loader.report().copies
        assert counted.pop("nvjpeg") == 0
        assert min(counted.values()) > 0
        assert counted["batches"] >= loader.report().batches
    host = tl.DataLoader(photos, **options())
    assert "device" not in host.explain()
    assert host.report().copies == {}


def test_samples_have_their_numbers_from_the_host(photos, device, read):
    batch = next(iter(tl.DataLoader(photos, device=device, **options())))
    expected = next(iter(tl.DataLoader(photos, **options())))
    for sample, other in zip(batch, expected, strict=True):
        assert sample["label"] == other["label"]
        assert np.array_equal(read(sample["image"]), other["image"])


def test_tensors_on_a_device_say_so(photos, device):
    tensor = next(iter(tl.DataLoader(photos, device=device, **options(dtype="float16"))))["image"]
    assert repr(tensor).endswith(f"dtype=float16, device={device.name})")
    with pytest.raises(TypeError, match="the tensor is on cuda:0: torch"):
        tensor.numpy()
    assert not hasattr(tensor, "__array_interface__")
    with pytest.raises(BufferError, match=r"dl_device is \(1, 0\), the memory is on \(2, 0\)"):
        tensor.__dlpack__(dl_device=(1, 0))
    with pytest.raises(BufferError, match="stream is 0, expected -1 for no order"):
        tensor.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="memory of a device is not copied here"):
        tensor.__dlpack__(copy=True)
    for stream in (None, -1, 1, 2):
        assert tensor.__dlpack__(stream=stream, max_version=(1, 0)) is not None
    interface = tensor.__cuda_array_interface__
    assert interface["data"] == (tensor.data_ptr(), False)
    assert interface["typestr"] == "<f2"
    assert (interface["version"], interface["stream"]) == (3, 1)
    host = next(iter(tl.DataLoader(photos, **options())))["image"]
    assert not hasattr(host, "__cuda_array_interface__")


def test_streams_that_read_a_batch_can_be_told(photos, device):
    batch = next(iter(tl.DataLoader(photos, device=device, **options())))
    batch.record_stream(1)
    with pytest.raises(BufferError, match="stream is 'mine', expected -1"):
        batch.record_stream("mine")
    with pytest.raises(BufferError, match="stream is -1, expected a stream that reads"):
        batch.record_stream(-1)
    batch["image"].record_stream(1)
    batch[1:3].record_stream(1)
    # On the host there is nothing to wait for.
    next(iter(tl.DataLoader(photos, **options()))).record_stream(1)


def test_memory_outlives_batch_and_loader(photos, device, read):
    loader = tl.DataLoader(photos, device=device, **options())
    image = next(iter(loader))["image"]
    loader.close()
    del loader
    expected = next(iter(tl.DataLoader(photos, **options())))["image"]
    assert np.array_equal(read(image), expected.numpy())


@pytest.mark.skipif(REAL is not None, reason="the device is there")
@pytest.mark.parametrize(
    ("macro", "reason"),
    [
        ("DEVICES=0", "no CUDA device 0: this process sees 0"),
        ("VERSION=10020", "the NVIDIA driver supports CUDA 10.2, and 11.0 is the oldest"),
        ("MEMORY=50000", "out of device memory: "),
    ],
)
def test_without_a_device_batches_are_on_the_host(photos, tmp_path, macro, reason):
    device = tl.Device("cuda:0", library=driver(tmp_path, macro))
    with pytest.warns(UserWarning, match=f"batches on a device: on the host instead; {reason}"):
        loader = tl.DataLoader(photos, device=device, **options())
    batch = next(iter(loader))
    assert batch["image"].__dlpack_device__() == (1, 0)
    expected = next(iter(tl.DataLoader(photos, **options())))
    assert np.array_equal(batch["image"].numpy(), expected["image"].numpy())
    required = tl.Device("cuda:0", library=device.library, required=True)
    with pytest.raises(tl.LoaderError, match=f"device: {reason}"):
        tl.DataLoader(photos, device=required, **options())


def test_the_setting_is_checked(photos, tmp_path):
    for wrong in ("cpu", "cuda:", "cuda:x", "cuda:1:2", 0):
        with pytest.raises(tl.SettingError, match=r"expected 'cuda' or 'cuda:N'"):
            tl.DataLoader(photos, device=wrong)
    for form in ("numpy", "tf"):
        with pytest.raises(tl.SettingError, match="device: not supported with output_format"):
            tl.DataLoader(photos, device="cuda", output_format=form)
    assert tl.Device("cuda:3").ordinal == 3
    absent = tl.Device(library=tmp_path / "libcuda.so.1", required=True)
    with pytest.raises(tl.LoaderError, match="device: no NVIDIA driver: "):
        tl.DataLoader(photos, device=absent)


def test_the_number_of_a_device_is_that_of_torch_or_of_the_rank(photos, library, monkeypatch):
    cuda = types.SimpleNamespace(is_initialized=lambda: False, current_device=lambda: 5)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    assert tl.Device().ordinal is None
    cuda.is_initialized = lambda: True
    assert (tl.Device().ordinal, tl.Device("cuda:3").ordinal) == (5, 3)
    cuda.is_initialized = lambda: False
    monkeypatch.setenv("LOCAL_RANK", "first")
    expected = 'LOCAL_RANK is "first", expected the number of a device'
    with pytest.raises(tl.LoaderError, match=expected):
        tl.DataLoader(photos, device=tl.Device(library=library, required=True), **options())


@pytest.mark.skipif(REAL is not None, reason="real memory can be pinned")
def test_memory_that_cannot_be_pinned_is_a_warning_or_an_error(photos, tmp_path):
    library = driver(tmp_path, 'FAILING="cuMemHostAlloc"', "CODE=2")
    device = tl.Device("cuda:0", library=library)
    for setting in ({"device": device}, {"pin_memory": device}):
        loader = tl.DataLoader(photos, **setting, **options())
        with pytest.warns(UserWarning, match="^pinned memory: ordinary memory instead, ") as warned:
            batches = [*loader, *loader]
        assert len(warned) == 1
        assert warned[0].filename == __file__
        assert len(batches) == 2 * len(loader)
        assert not any(batch["image"].is_pinned() for batch in batches)
    required = tl.Device("cuda:0", library=library, required=True)
    with pytest.raises(tl.LoaderError, match="cannot be pinned"):
        list(tl.DataLoader(photos, device=required, **options()))


def test_pinned_batches_are_those_of_the_host(photos, device):
    settings = options(dtype="float32")
    host = tl.DataLoader(photos, **settings)
    loader = tl.DataLoader(photos, pin_memory=device, **settings)
    for batch, expected in zip(loader, host, strict=True):
        names = expected.keys()
        for name in names:
            assert batch[name].is_pinned()
            assert not expected[name].is_pinned()
            assert batch[name].__dlpack_device__() == (1, 0)
            assert np.array_equal(batch[name].numpy(), expected[name].numpy())
        batch.record_stream(1)
        batch[1:3].record_stream(1)
    copied = next(iter(loader))["image"].rows([2, 0])
    assert not copied.is_pinned()


def test_streams_that_copy_from_pinned_memory_are_known(photos, device, monkeypatch):
    loader = tl.DataLoader(photos, pin_memory=device, **options())
    asked = []

    def current_stream(ordinal):
        asked.append(ordinal)
        return types.SimpleNamespace(cuda_stream=0)

    cuda = types.SimpleNamespace(is_initialized=lambda: False, current_stream=current_stream)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    image = next(iter(loader))["image"]
    assert image.__dlpack__() is not None
    assert asked == []
    cuda.is_initialized = lambda: True
    assert image.__dlpack__() is not None
    assert asked == [device.ordinal]


def test_pinned_memory_outlives_batch_and_loader(photos, device):
    loader = tl.DataLoader(photos, pin_memory=device, **options())
    images = [batch["image"] for batch in loader]
    expected = [image.numpy().copy() for image in images]
    loader.close()
    del loader
    assert all(map(np.array_equal, [image.numpy() for image in images], expected))


@pytest.mark.skipif(REAL is None, reason="needs a device")
def test_torch_copies_pinned_batches_without_waiting(photos, device):
    import torch

    settings = options(output_format="torch")
    host = tl.DataLoader(photos, **settings)
    loader = tl.DataLoader(photos, pin_memory=device, **settings)
    side = torch.cuda.Stream(device.name)
    moved = []
    for _ in range(2):
        for batch in loader:
            assert batch["image"].is_pinned()
            with torch.cuda.stream(side):
                # The copies of all batches wait for this.
                torch.cuda._sleep(20_000_000)
                moved.append(batch["image"].to(device.name, non_blocking=True))
            moved.append(batch.to(device.name)["image"])
    torch.cuda.synchronize()
    expected = [batch["image"] for _ in range(2) for batch in host for _ in range(2)]
    assert all(torch.equal(one.cpu(), other) for one, other in zip(moved, expected, strict=True))


def test_pinning_is_a_flag_or_a_device(photos, tmp_path):
    absent = tl.Device(library=tmp_path / "libcuda.so.1")
    with pytest.warns(UserWarning, match="^pinned memory: ordinary memory instead, .*; no NVIDIA"):
        loader = tl.DataLoader(photos, pin_memory=absent, **options())
    assert not next(iter(loader))["image"].is_pinned()
    assert next(iter(tl.DataLoader(photos, pin_memory=False, **options())))["image"].shape[0] == 5
    with pytest.raises(tl.SettingError, match="expected 'cuda' or 'cuda:N'"):
        tl.DataLoader(photos, pin_memory="cpu")
    with pytest.raises(tl.SettingError, match="conflicting settings: device and pin_memory"):
        tl.DataLoader(photos, pin_memory=True, device="cuda")
