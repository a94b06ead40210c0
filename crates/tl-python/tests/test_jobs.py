"""The jobs of docs/jobs.md run, are as short as it says, and give the batches that they name."""

from __future__ import annotations

import json
import os
import pathlib
import re

import numpy as np
import pytest
from conftest import bmp, image
from test_documents import ROOT, blocks
from test_sources import gray_png

PAGE = ROOT / "docs" / "jobs.md"
MOST_LINES = 10
ROW = re.compile(r"^\| \[(.+?)\]\(#.+?\) \| (\d+) \| (\d+) \|$", re.MULTILINE)


def lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def jobs() -> list[tuple[str, str, str]]:
    """The name of each job, our code and that of torchvision."""
    text = PAGE.read_text()
    starts = [match.start() for match in re.finditer("^## ", text, re.MULTILINE)]
    line_of = [text.count("\n", 0, start) for start in starts]
    names = [text[start + 3 :].split("\n", 1)[0] for start in starts]
    found = []
    for name, first, last in zip(names, line_of, [*line_of[1:], 10**9], strict=True):
        own, theirs = (block for block in blocks(PAGE) if first < block[0] < last)
        assert (own[1], theirs[1]) == ([], ["theirs"])
        found.append((name, own[2], theirs[2]))
    return found


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with small data sets that have the names of the large ones."""

    def photo(name: str, number: int) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(bmp(image(number)))

    for number in range(4):
        photo(f"ILSVRC2012/train/n0{number % 2}/{number}.JPEG", number)
        photo(f"ILSVRC2012/val/ILSVRC2012_val_{number + 1:08}.JPEG", number)
        photo(f"train2017/{number}.jpg", number)
        photo(f"VOC2012/JPEGImages/{number}.jpg", number)
        mask = tmp_path / f"VOC2012/SegmentationClass/{number}.png"
        mask.parent.mkdir(exist_ok=True)
        mask.write_bytes(gray_png(np.full((6, 10), number, np.uint8)))
    for number in range(10):
        photo(f"photos/{'cats' if number % 2 else 'dogs'}/{number}.jpg", number)
    for number in range(2):
        photo(f"nyu/rgb/{number}.jpg", number)
        depth = tmp_path / f"nyu/depth/{number}.png"
        depth.parent.mkdir(exist_ok=True)
        millimetres = np.full((6, 10), 1000 + number, np.uint16)
        millimetres[::3, ::3] = 0  # Holes.
        depth.write_bytes(gray_png(millimetres))
    kit = tmp_path / "ILSVRC2012/imagenet_2012_validation_synset_labels.txt"
    kit.write_text("n01\nn00\nn01\nn00\n")
    cifar = tmp_path / "cifar-10-batches-bin"
    cifar.mkdir()
    (cifar / "batches.meta.txt").write_text("".join(f"class{number}\n" for number in range(10)))
    for number in (1, 2):
        (cifar / f"data_batch_{number}.bin").write_bytes(bytes([number, *[7] * 3072]) * 3)
    outline = [[1, 1, 6, 1, 6, 5, 1, 5]]
    objects = [{"image_id": 0, "category_id": 18, "bbox": [1, 1, 5, 4], "segmentation": outline}]
    coco = {
        "images": [{"id": number, "file_name": f"{number}.jpg"} for number in range(4)],
        "annotations": objects,
        "categories": [{"id": 1, "name": "person"}, {"id": 18, "name": "dog"}],
    }
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations/instances_train2017.json").write_text(json.dumps(coco))
    split = tmp_path / "VOC2012/ImageSets/Segmentation/train.txt"
    split.parent.mkdir(parents=True)
    split.write_text("2\n0\n")
    rows = [f"photos/dogs/{number}.jpg" for number in (0, 2)]
    (tmp_path / "captions.csv").write_text(f"path,caption\n{rows[0]},a dog\n{rows[1]},two dogs\n")
    (tmp_path / "tags.csv").write_text(f"path,tags\n{rows[0]},dog|indoors\n{rows[1]},cat\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_all() -> dict[str, list[tuple[object, ...]]]:
    """The arguments of `train_step` in each job."""
    seen: list[tuple[object, ...]] = []
    names: dict[str, object] = {
        "train_step": lambda *values: seen.append(values),
        "tokenizer": lambda captions: [caption.split() for caption in captions],
    }
    line, _, first = blocks(PAGE)[0]
    exec(compile("\n" * line + first, str(PAGE), "exec"), names)
    found = {}
    for name, own, _ in jobs():
        exec(compile(own, f"{PAGE}: {name}", "exec"), names)
        found[name] = list(seen)
        seen.clear()
    return found


def test_jobs_give_the_batches_that_they_name(folder: pathlib.Path) -> None:
    for _ in range(2):
        os.chdir(folder)
        found = run_all()
        shapes = {
            name: [getattr(value, "shape", None) for value in steps[0]]
            for name, steps in found.items()
        }
        assert shapes["ImageNet"] == [(4, 3, 224, 224), (4,)]
        assert sorted(found["ImageNet"][0][1].tolist()) == [0, 0, 1, 1]
        assert shapes["CIFAR-10"] == [(6, 3, 32, 32), (6,)]
        assert sorted(found["CIFAR-10"][0][1].tolist()) == [1, 1, 1, 2, 2, 2]
        pixels, boxes, labels, masks = found["COCO detection"][0]
        assert pixels.shape == (4, 3, 640, 640)
        assert sorted(len(of_image) for of_image in boxes) == [0, 0, 0, 1]
        assert [np.asarray(of_image).tolist() for of_image in labels if len(of_image)] == [[1]]
        assert [of_image.shape for of_image in masks if len(of_image)] == [(1, 640, 640)]
        assert shapes["VOC segmentation"] == [(2, 3, 480, 480), (2, 480, 480)]
        assert set(np.unique(found["VOC segmentation"][0][1].numpy()[0])) == {2}
        assert shapes["SimCLR"] == [(10, 2, 3, 224, 224)]
        assert shapes["DINO"] == [(10, 2, 3, 224, 224), (10, 6, 3, 96, 96)]
        assert found["CLIP"][0][1] == [["a", "dog"], ["two", "dogs"]]
        tags = found["Several labels of an image"][0][1].tolist()
        assert sorted(tags) == [[0, 1, 1], [1, 0, 0]]
        assert sum(len(labels) for _, labels in found["Five folds"]) == 40
        depth = found["Depth of 16 bits"][0][1]
        assert (depth.dtype, depth.size) == (np.float32, 2 * 224 * 224)
        metres = sorted((set(np.unique(row).tolist()) - {0} for row in depth), key=max)
        assert metres == [{1.0}, {float(np.float32(1.001))}] and (depth == 0).any()


def test_the_page_counts_its_lines() -> None:
    counted = [(lines(own), lines(theirs)) for _, own, theirs in jobs()]
    rows = ROW.findall(PAGE.read_text())
    assert [(int(own), int(theirs)) for _, own, theirs in rows] == counted
    assert [name.lower() for name, *_ in rows] == [name.lower() for name, *_ in jobs()]
    assert all(own <= MOST_LINES and own <= theirs for own, theirs in counted)
