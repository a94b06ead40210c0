"""``decode_mode="nvjpeg"``: a library that stands for nvJPEG, on an emulated device."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest
import turboloader as tl
from test_device import EMULATOR, REAL, driver, options

T = tl.transforms
pytestmark = pytest.mark.skipif(bool(REAL), reason="the library writes memory of the host")


def nvjpeg(library: pathlib.Path, *macros: str) -> pathlib.Path:
    """Compile a library that stands for nvJPEG."""
    library.parent.mkdir(parents=True, exist_ok=True)
    defined = [f"-D{macro}" for macro in macros]
    source = EMULATOR.parent / "nvjpeg.c"
    flags = ["-shared", "-fPIC", "-O2", "-fvisibility=hidden"]
    subprocess.run(["cc", *flags, *defined, "-o", library, source], check=True)
    return library


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> tl.Device:
    folder = tmp_path_factory.mktemp("nvjpeg")
    library = nvjpeg(folder / "libnvjpeg.so.12")
    return tl.Device("cuda:0", library=driver(folder), nvjpeg=library)


def test_the_mode_is_part_of_the_recipe():
    crop = [T.RandomResizedCrop(8)]
    recipe = T.recipe(crop, decode_mode="nvjpeg")
    assert json.loads(recipe.to_json())["decode"] == "nvjpeg"
    assert str(recipe).startswith("Decode(nvjpeg) -> ")
    exact = T.recipe(crop, decode_mode="exact")
    assert exact == T.recipe(crop)
    assert exact != recipe
    assert T.recipe(crop, decode_mode="fast") == T.recipe(crop, decode_margin=2)
    assert T.recipe(crop, decode_mode="fast", decode_margin=3) == T.recipe(crop, decode_margin=3)
    for mode in ("exact", "nvjpeg"):
        with pytest.raises(tl.SettingError, match="conflicting settings: decode_mode"):
            T.recipe(crop, decode_mode=mode, decode_margin=2)
    with pytest.raises(tl.SettingError, match="expected exact, fast or nvjpeg"):
        T.recipe(crop, decode_mode="auto")


def test_explanation_and_report_name_the_library(photos, device):
    settings = options(decode_mode="nvjpeg", device=device)
    with tl.DataLoader(photos, **settings) as loader:
        assert len(list(loader)) == len(loader)
        assert "nvjpeg: baseline files by NVIDIA's library" in loader.explain()
        assert "baseline files by nvJPEG" in loader.explain()
        copies = loader.report().copies
        assert 0 < copies["nvjpeg"] <= copies["decoded"]
        assert f"{copies['nvjpeg']} images by nvJPEG" in str(loader.report())
        state = loader.state_dict()
    with (
        tl.DataLoader(photos, **options(device=device)) as exact,
        pytest.raises(tl.StateError, match="recipe"),
    ):
        exact.load_state_dict(state)


def test_a_library_or_device_that_is_missing_is_an_error(photos, device, tmp_path):
    def refused(one: tl.Device | None, **settings: object) -> str:
        with pytest.raises(tl.LoaderError) as caught:
            tl.DataLoader(photos, **options(decode_mode="nvjpeg", device=one, **settings))
        return str(caught.value)

    assert "needs batches on a device" in refused(None)
    absent = tl.Device("cuda:0", library=device.library, nvjpeg=tmp_path / "libnvjpeg.so.12")
    assert "pip install 'turboloader-rs[nvjpeg]'" in refused(absent)
    absent = tl.Device("cuda:0", library=tmp_path / "libcuda.so.1", nvjpeg=device.nvjpeg)
    assert "no NVIDIA driver" in refused(absent)
    jitter = [T.RandomResizedCrop(8), T.ColorJitter(brightness=0.5)]
    assert "`ColorJitter` runs on the CPU" in refused(device, transform=jitter)
    old = nvjpeg(tmp_path / "old.so", "MAJOR=10")
    old_device = tl.Device("cuda:0", library=device.library, nvjpeg=old)
    assert "expected 11.0 or newer" in refused(old_device)


def test_the_library_of_a_wheel_is_found_among_the_packages(photos, device, tmp_path, monkeypatch):
    assert device.packages is None or os.path.isdir(device.packages)
    nvjpeg(tmp_path / "nvidia" / "nvjpeg" / "lib" / "libnvjpeg.so.12", "MAJOR=12")
    monkeypatch.setattr(sys, "path", [os.fspath(tmp_path), *sys.path])
    found = tl.Device("cuda:0", library=device.library)
    assert found.packages == os.fspath(tmp_path)
    with tl.DataLoader(photos, **options(decode_mode="nvjpeg", device=found)) as loader:
        assert "version 12.4.7" in loader.explain() or "nvJPEG" in loader.explain()


def test_single_samples_are_not_decoded_with_it(photos):
    recipe = T.recipe([T.CenterCrop(8)], decode_mode="nvjpeg")
    dataset = pytest.importorskip("turboloader.torch").Dataset(photos, recipe)
    with pytest.raises(tl.LoaderError, match="only loaders with a device"):
        dataset[0]
