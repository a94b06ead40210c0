"""Image, mask, boxes, keypoints and masks of objects: this loader beside torchvision v2.

    python3 -m venv venv
    venv/bin/pip install ./crates/tl-python torch torchvision pillow pycocotools
    venv/bin/python testdata/tools/compare_joint.py PHOTOS WORK

PHOTOS is a folder of JPEG files. The first of them are linked in WORK, each with a mask in a PNG file
and a JSON file of objects: boxes, 17 keypoints and a polygon of 24 points each.

Everything runs in this process, on one core and with one thread each, from files that are in memory:
this loader with one worker, and torchvision v2 on `tv_tensors`, with the image decoded by
`torchvision.io` or by Pillow. Every round measures each contender once, and the table has the medians
of the processor time for a sample, from its files to its row of a batch of 32.
"""

import argparse
import io
import json
import math
import os
import pathlib
import random
import statistics
import time
import warnings

import numpy as np
import torch
import turboloader as tl
from PIL import Image
from pycocotools import mask as coco_masks
from torchvision import tv_tensors
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH, OBJECTS, EPOCHS = 32, 8, 4
T = tl.transforms


def objects(rng, width, height):
    """Objects as COCO lists them."""
    for number in range(OBJECTS):
        w, h = rng.uniform(0.1, 0.6) * width, rng.uniform(0.1, 0.6) * height
        x, y = rng.uniform(0, width - w), rng.uniform(0, height - h)
        turns = [2 * math.pi * step / 24 for step in range(24)]
        outline = [
            [x + w / 2 + w / 2 * math.cos(t), y + h / 2 + h / 2 * math.sin(t)] for t in turns
        ]
        points = [[round(x + rng.random() * w), round(y + rng.random() * h), 2] for _ in range(17)]
        yield {
            "bbox": [x, y, w, h],
            "category_id": number,
            "segmentation": [[one for point in outline for one in point]],
            "keypoints": [one for point in points for one in point],
        }


def write(photos, work, count):
    """Link photographs, and write their masks and objects."""
    rng = random.Random(1)
    work.mkdir(parents=True, exist_ok=True)
    chosen = sorted(path for path in photos.rglob("*") if path.suffix.lower() in {".jpg", ".jpeg"})
    for index, path in enumerate(chosen[:count]):
        link = work / f"{index:04d}.jpg"
        if link.exists():
            continue
        width, height = Image.open(path).size
        listed = list(objects(rng, width, height))
        mask = np.zeros((height, width), np.uint8)
        for number, one in enumerate(listed):
            x, y, w, h = map(int, one["bbox"])
            mask[y : y + h, x : x + w] = number + 1
        file = io.BytesIO()
        Image.fromarray(mask).save(file, "png")
        link.with_suffix(".seg.png").write_bytes(file.getvalue())
        link.with_suffix(".json").write_text(json.dumps({"annotations": listed}))
        os.link(path, link) if path.stat().st_dev == work.stat().st_dev else link.write_bytes(
            path.read_bytes()
        )


def ours(work, names):
    every = {
        "mask": tl.Mask("seg.png"),
        "boxes": tl.Boxes(
            "json:/annotations/*/bbox", labels="/annotations/*/category_id", format="xywh"
        ),
        "keypoints": tl.Keypoints("json:/annotations/*/keypoints"),
        "masks": tl.InstanceMasks("json:/annotations/*/segmentation"),
    }
    transform = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()]
    transform.append(T.Normalize(MEAN, STD))
    fields = {name: every[name] for name in names}
    settings = {"transform": transform, "fields": fields, "shuffle": True, "num_workers": 1}

    def epochs():
        # A new loader, as one that waits prepares the next epoch in the time of the others. What it
        # has prepared in vain at the end, three batches at most, counts too.
        with tl.DataLoader(work, BATCH, **settings) as loader:
            return sum(len(batch) for _ in range(EPOCHS) for batch in loader)

    return epochs


def sample(path, names, is_pil):
    """A sample as a data set of torchvision's references returns it."""
    if is_pil:
        image = Image.open(path).convert("RGB")
        width, height = image.size
    else:
        data = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
        image = tv_tensors.Image(decode_image(data, ImageReadMode.RGB))
        height, width = image.shape[-2:]
    size = {"canvas_size": (height, width)}
    target = {}
    if "mask" in names:
        mask = np.asarray(Image.open(path.with_suffix(".seg.png")))
        target["mask"] = tv_tensors.Mask(torch.from_numpy(mask.copy()))
    listed = json.loads(path.with_suffix(".json").read_text())["annotations"]
    boxes = torch.tensor([one["bbox"] for one in listed], dtype=torch.float32)
    boxes = tv_tensors.BoundingBoxes(boxes, format="XYWH", **size)
    target["boxes"] = F.convert_bounding_box_format(boxes, new_format="XYXY")
    target["labels"] = torch.tensor([one["category_id"] for one in listed])
    if "keypoints" in names:
        points = torch.tensor([one["keypoints"] for one in listed], dtype=torch.float32)
        points = points.reshape(-1, 17, 3)
        target["keypoints"] = tv_tensors.KeyPoints(points[..., :2].clone(), **size)
        target["visibility"] = points[..., 2]
    if "masks" in names:
        drawn = []
        for one in listed:
            runs = coco_masks.frPyObjects(one["segmentation"], height, width)
            drawn.append(coco_masks.decode(coco_masks.merge(runs)))
        target["masks"] = tv_tensors.Mask(torch.from_numpy(np.stack(drawn)))
    return image, target


def theirs(work, names, is_pil):
    paths = sorted(work.glob("*.jpg"))
    transform = v2.Compose(
        [
            v2.RandomResizedCrop(224, antialias=True),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )

    def one(path):
        image, target = transform(*sample(path, names, is_pil))
        # SanitizeBoundingBoxes takes a mask of the image for masks of objects.
        target["boxes"], stays = F.sanitize_bounding_boxes(target["boxes"])
        for name in ("labels", "masks", "keypoints", "visibility"):
            if name in target:
                target[name] = target[name][stays]
        return image, target

    def epoch():
        done = 0
        for start in range(0, len(paths), BATCH):
            made = [one(path) for path in paths[start : start + BATCH]]
            images = torch.stack([image for image, _ in made])
            if "mask" in names:
                torch.stack([target["mask"] for _, target in made])
            done += len(images)
        return done

    return epoch


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    torch.set_num_threads(1)
    write(args.photos, args.work, args.count)
    print("| per sample | ours | torchvision, tensors | ratio | torchvision, Pillow | ratio |")
    print("|---|---|---|---|---|---|")
    recipes = {
        "image, mask, boxes": ["mask", "boxes"],
        "image, mask, boxes, keypoints": ["mask", "boxes", "keypoints"],
        "image, boxes, masks of objects": ["boxes", "masks"],
    }
    for title, names in recipes.items():
        contenders = [ours(args.work, names), *(theirs(args.work, names, pil) for pil in (0, 1))]
        for epoch in contenders:
            epoch()
        times = [[] for _ in contenders]
        for _ in range(args.rounds):
            for found, epoch in zip(times, contenders, strict=True):
                start = time.process_time()
                samples = epoch()
                found.append((time.process_time() - start) / samples * 1e6)
        own, tensors, pil = map(statistics.median, times)
        ratios = f"{tensors:.0f} us | {tensors / own:.2f} | {pil:.0f} us | {pil / own:.2f}"
        print(f"| {title} | {own:.0f} us | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
