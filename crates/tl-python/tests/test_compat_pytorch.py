"""Labels, loaders and conversions for PyTorch by the names of the first turboloader."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest
import turboloader as tl
from conftest import bmp, image
from turboloader import compat


def test_folders_are_classes():
    labels = compat.FolderLabelExtractor()
    names = ["b/1.jpg", "a/x/2.jpg", "b\\3.jpg", "4.jpg", "5.jpg"]
    assert [labels.extract(name, {}) for name in names] == [0, 1, 0, 2, 2]
    assert labels.get_class_names() == ["b", "a", "unknown"]
    known = compat.FolderLabelExtractor({"a": 2, "b": 5})
    assert (known.extract("c/1.jpg", {}), known.extract("a/1.jpg", {})) == (6, 2)
    assert known.get_class_names() == ["a", "b", "c"]
    known.class_to_idx["d"] = 9
    assert known.get_num_classes() == 3


def test_other_extractors():
    pattern = compat.FilenamePatternExtractor(r"(\d+)_(\d+)", group=2)
    assert (pattern.extract("x/12_34.jpg", {}), pattern.extract("x.jpg", {})) == (34, 0)
    assert compat.MetadataLabelExtractor("y", -1).extract("", {"label": 1}) == -1
    sidecar = compat.JSONSidecarExtractor()
    assert sidecar.extract("a", {"json_data": {"label": 7}}) == sidecar.extract("a", {}) == 7
    assert compat.JSONSidecarExtractor(cache=False).extract("a", {}) == 0
    assert compat.CallableLabelExtractor(lambda name, meta: len(name)).extract("abc", {}) == 3
    with pytest.raises(TypeError):
        compat.LabelExtractor()


@pytest.fixture
def folder(tmp_path):
    """Classes ant and bee, of two images each."""
    for index, name in enumerate(("ant/0.bmp", "ant/1.BMP", "bee/2.bmp", "bee/3.bmp")):
        path = tmp_path / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bmp(image(index)))
    (tmp_path / "images" / "bee" / "notes.txt").write_text("no image")
    return tmp_path / "images"


def test_folders_become_archives(folder, tmp_path, capsys):
    path = tmp_path / "data.tar"
    classes = compat.ImageFolderConverter().convert(folder, path)
    assert classes == {"ant": 0, "bee": 1}
    assert capsys.readouterr().out == f"{path}: 4 images of 2 classes\n"
    written = json.loads((tmp_path / "data_classes.json").read_text())
    assert written == {"class_to_idx": classes, "classes": ["ant", "bee"], "num_images": 4}
    loader = tl.DataLoader(path, batch_size=4, keys=True)
    assert next(iter(loader))["key"] == ["ant/0.bmp", "ant/1.BMP", "bee/2.bmp", "bee/3.bmp"]
    only = compat.ImageFolderConverter([".png"])
    for source, message in (
        (folder, "No image files"),
        (folder / "ant", "No class directories"),
        (folder / "none", "Source directory not found"),
    ):
        with pytest.raises(ValueError, match=message):
            only.convert(source, tmp_path / "other.tar")
    assert sorted(path.name for path in tmp_path.glob("other*")) == []
    assert not pathlib.Path(f"{path}.partial").exists()


@pytest.mark.torch
def test_batches_are_images_and_labels(folder, tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "data.tar"
    compat.convert_imagefolder(folder, path, show_progress=False)
    loader = compat.PyTorchCompatibleLoader(path, 3, num_workers=1, output_size=(6, 10))
    for _ in range(2):
        batches = list(loader)
        assert [labels.tolist() for _, labels in batches] == [[0, 0, 1], [1]]
        images, labels = batches[0]
        assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
        expected = torch.from_numpy(image(0)).permute(2, 0, 1).float() * np.float32(1 / 255)
        assert torch.equal(images[0], expected)
    assert (len(loader), loader.batch_size, loader.dataset) == (2, 3, loader)
    doubled = compat.PyTorchCompatibleLoader(
        path, 4, drop_last=True, target_transform=lambda labels: labels * 2, collate_fn=tuple
    )
    ((images, labels),) = next(doubled)
    assert (tuple(images.shape), labels.tolist()) == ((4, 3, 224, 224), [0, 0, 2, 2])
    with pytest.raises(tl.SettingError, match="DistributedSampler"):
        compat.PyTorchCompatibleLoader(path, sampler=[3, 2, 1, 0])
    preset = compat.create_pytorch_loader(path, 4, False, 1, "imagenet_val")
    assert next(iter(preset))[0].shape == (4, 3, 224, 224)


@pytest.mark.torch
def test_ranks_of_a_sampler_are_taken(folder, tmp_path):
    sampling = pytest.importorskip("torch.utils.data.distributed")
    path = tmp_path / "data.tar"
    compat.convert_imagefolder(folder, path, show_progress=False)
    parts = []
    for rank in (0, 1):
        sampler = sampling.DistributedSampler(range(4), 2, rank, shuffle=False)
        loader = compat.PyTorchCompatibleLoader(path, 1, sampler=sampler, output_size=(6, 10))
        parts.append([labels.tolist() for _, labels in loader])
    assert parts == [[[0], [1]], [[0], [1]]]


@pytest.mark.torch
def test_torchvision_becomes_compat():
    V = pytest.importorskip("torchvision.transforms")  # noqa: N806
    convert = compat.TransformAdapter.from_torchvision
    one = convert(V.Compose([V.Resize((64, 32))]))
    # Height before width there, width before height here.
    assert (type(one).__name__, one.height, one.width) == ("Resize", 64, 32)
    chain = convert(
        V.Compose(
            [
                V.Resize(256),
                V.CenterCrop(224),
                V.RandomHorizontalFlip(0.25),
                V.ColorJitter(0.4, 0.3, hue=0.1),
                V.RandomRotation(30),
                V.ToTensor(),
                V.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )
    )
    assert type(chain).__name__ == "ComposedTransforms"
    names = [step.name() for step in chain.get_transforms()]
    assert names == [
        "Resize",
        "CenterCrop",
        "RandomHorizontalFlip",
        "ColorJitter",
        "RandomRotation",
        "ToTensor",
        "ImageNetNormalize",
    ]
    assert chain.get_transforms()[2].p == 0.25
    assert convert(V.Compose([V.ToPILImage()])) is None
    with pytest.raises(tl.UnsupportedTransformError, match="RandomInvert"):
        convert(V.Compose([V.RandomInvert()]))
    with pytest.raises(tl.UnsupportedTransformError, match="not around 1"):
        convert(V.Compose([V.ColorJitter(brightness=(0.5, 2.0))]))
