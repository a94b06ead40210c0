from __future__ import annotations

import gc
import itertools
import json
import subprocess
import sys
import threading
import time
import traceback
import weakref

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, bmp, image
from test_sources import gray_png
from turboloader import _native
from turboloader import transforms as T  # noqa: N812


def inverted(pixels):
    return 255 - pixels


def in_place(pixels):
    pixels[0] = 7
    return pixels


@pytest.mark.parametrize("workers", [1, 3])
def test_functions_are_called_with_each_image(data, workers):
    threads = set()

    def mirrored(pixels):
        threads.add(threading.get_ident())
        assert (pixels.shape, pixels.dtype) == ((HEIGHT, WIDTH, 3), np.uint8)
        return pixels[:, ::-1]

    steps = [T.Resize([HEIGHT, WIDTH]), inverted, mirrored, T.Lambda(in_place)]
    loader = tl.DataLoader(data, batch_size=8, transform=steps, num_workers=workers)
    for number, batch in enumerate(loader):
        for row, made in enumerate(batch["image"].numpy()):
            pixels = 255 - image(8 * number + row)[:, ::-1]
            pixels[0] = 7
            np.testing.assert_array_equal(made, pixels)
    assert number == 12
    assert threading.get_ident() not in threads


def test_functions_stand_among_other_transforms(data):
    steps = [T.CenterCrop(4), inverted, T.RandomHorizontalFlip(p=1), T.ToTensor()]
    batch = next(iter(tl.DataLoader(data, batch_size=3, transform=T.Compose(steps))))
    alone = T.Compose(steps)(image(2))
    expected = (255 - image(2)[1:5, 3:7])[:, ::-1].astype(np.float32) * np.float32(1 / 255)
    np.testing.assert_array_equal(alone, expected)
    np.testing.assert_array_equal(batch["image"].numpy()[2], expected.transpose(2, 0, 1))
    nested = T.RandomApply([T.Lambda(inverted)], p=1.0)
    np.testing.assert_array_equal(nested(image(2)), 255 - image(2))
    single = next(iter(tl.DataLoader(data, batch_size=2, transform=inverted)))
    np.testing.assert_array_equal(single["image"][1].numpy(), 255 - image(1))


def test_functions_may_recurse_as_deep_as_in_the_main_thread(data):
    tried = []

    def deep(pixels):
        # Deep lists take a while, and ten say as much as a hundred.
        if len(tried) >= 10:
            return pixels
        tried.append(pixels)
        nested: list = []
        for _ in range(100_000):
            nested = [nested]
        with pytest.raises(RecursionError):
            repr(nested)
        return pixels

    assert sum(len(batch) for batch in tl.DataLoader(data, batch_size=50, transform=deep)) == 100
    assert len(tried) >= 10


def refuse_five(pixels):
    if np.array_equal(pixels, image(5)):
        raise KeyError("five")
    return pixels


def test_an_exception_is_the_samples_error(data):
    loader = tl.DataLoader(data, batch_size=8, transform=[refuse_five])
    with pytest.raises(tl.SampleError, match=r"refuse_five.*KeyError: 'five'") as raised:
        next(iter(loader))
    assert (raised.value.sample, raised.value.key) == (5, "00005.bmp")
    loader = tl.DataLoader(data, batch_size=8, transform=[refuse_five], errors="skip")
    with pytest.warns(UserWarning, match="bad samples are skipped, the first: .*sample 5"):
        assert next(iter(loader))["index"].numpy().tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert [index for index, _, _ in loader.audit] == [5]


def test_results_of_another_size_or_type_are_errors(data):
    for function in (lambda pixels: pixels[1:], lambda pixels: pixels / 255, lambda pixels: None):
        loader = tl.DataLoader(data, batch_size=8, transform=[function])
        with pytest.raises(tl.SampleError, match="returned"):
            next(iter(loader))


def test_epochs_end_while_functions_run(data):
    for _ in range(20):
        loader = tl.DataLoader(data, batch_size=2, transform=inverted, num_workers=3)
        epoch = iter(loader)
        next(epoch)
        # Its threads want the interpreter, which this thread has.
        del epoch, loader


# A loader is asked while it is closed, and its threads sleep in a transform: they have begun with
# the second epoch. Explaining it takes longest.
CLOSED_MEANWHILE = """
import sys, threading, time
import turboloader as tl

def slow(pixels):
    time.sleep(0.002)
    return pixels

def ask(loader):
    try:
        while True:
            loader._native.explain()
    except tl.exceptions.ClosedError:
        pass

sys.setswitchinterval(1e-5)
for _ in range(40):
    steps = [tl.transforms.Lambda(slow)]
    loader = tl.DataLoader(sys.argv[1], batch_size=25, transform=steps, num_workers=2)
    batches = len(list(loader))
    threads = [threading.Thread(target=ask, args=(loader,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.001)
    loader.close()
    for thread in threads:
        thread.join()
print(batches)
"""


def test_loaders_are_closed_while_they_are_asked(data):
    command = [sys.executable, "-c", CLOSED_MEANWHILE, str(data)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == "4\n"


def test_recipes_have_the_functions_name():
    operation = json.loads(T.recipe([inverted]).to_json())["ops"][0]
    assert operation["name"] == "test_user_transforms.inverted"
    with pytest.raises(tl.RecipeError, match="two functions are called"):
        T.functions([lambda pixels: pixels, lambda pixels: 255 - pixels])
    assert T.functions([inverted, T.Lambda(inverted)]) == {
        "test_user_transforms.inverted": inverted
    }


def test_what_is_no_function_of_an_image_is_named(data):
    for wrong in (len.__class__, 3, "flip"):
        with pytest.raises(TypeError, match="neither a transform of turboloader"):
            T.Compose([wrong])
    with pytest.raises(tl.SettingError, match="inverted"):
        tl.DataLoader(data, transform=T.recipe([inverted, T.Resize(3)]))


def called_alone(function):
    T.Compose([T.Resize([HEIGHT, WIDTH]), function])(image(5))


def called_for_a_sample(data, function):
    steps = [function]
    samples = _native.Samples(
        [data], T.recipe(steps), seed=0, user_transforms=T.functions(T.Compose(steps))
    )
    samples.image(5, 0)


def called_by_a_loader(data, function):
    list(tl.DataLoader(data, batch_size=8, transform=[function]))


def test_exceptions_are_the_cause_with_their_traceback(data):
    for call, kind in (
        (lambda: called_alone(refuse_five), tl.RecipeError),
        (lambda: called_for_a_sample(data, refuse_five), tl.SampleError),
        (lambda: called_by_a_loader(data, refuse_five), tl.SampleError),
    ):
        with pytest.raises(kind, match="KeyError: 'five'") as raised:
            call()
        cause = raised.value.__cause__
        assert isinstance(cause, KeyError)
        names = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
        assert names[-1] == "refuse_five"


def test_exceptions_of_samples_that_are_passed_over_are_not_kept(data):
    kept = []

    class RefusedError(Exception):
        pass

    def refuse(pixels):
        error = RefusedError()
        kept.append(weakref.ref(error))
        raise error

    skip = tl.Errors("skip", at_most=1.0)
    loader = tl.DataLoader(data, batch_size=8, transform=[refuse], errors=skip)
    with pytest.warns(UserWarning, match="bad samples are skipped"):
        assert list(loader) == []
    # The next epoch may have begun.
    assert len(loader.audit) == 100 <= len(kept)
    # Threads of an epoch that began meanwhile have errors of their own.
    loader.close()
    gc.collect()
    assert not any(error() for error in kept)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_failure_ends_the_caller(data, kind):
    def end(pixels):
        raise kind

    with pytest.raises(kind):
        called_alone(end)
    with pytest.raises(kind):
        called_for_a_sample(data, end)
    # Threads of the loader's own have no caller that it could end.
    with pytest.raises(tl.SampleError, match=kind.__name__) as raised:
        called_by_a_loader(data, end)
    assert isinstance(raised.value.__cause__, kind)


MISUSES = ["close", "__iter__", "__exit__"]


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_function_can_neither_begin_nor_close_its_own_loader(data, misuse):
    def function(pixels):
        arguments = (None, None, None) if misuse == "__exit__" else ()
        getattr(loader, misuse)(*arguments)
        return pixels

    loader = tl.DataLoader(data, batch_size=8, transform=[function], num_workers=2)
    with pytest.raises(tl.SampleError, match="cannot begin, read or close") as raised:
        next(iter(loader))
    assert isinstance(raised.value.__cause__, tl.SettingError)
    loader.close()


@pytest.mark.parametrize("misuse", [*MISUSES, "state_dict", "next"])
def test_a_function_that_uses_its_loader_late_is_refused(data, misuse):
    """The consumer has the error of the first batch by then, and joins the threads."""
    refusals = []

    def function(pixels):
        if next(calls) < 8:
            raise ValueError
        time.sleep(0.3)
        try:
            if misuse == "next":
                next(epoch)
            else:
                getattr(loader, misuse)(*((None,) * 3 if misuse == "__exit__" else ()))
        except tl.SettingError as error:
            refusals.append(str(error))
        return pixels

    def consume():
        with pytest.raises(tl.SampleError, match="ValueError"):
            next(epoch)

    # On a busy machine the epoch can end before a function is late.
    for _ in range(30):
        calls = itertools.count()
        loader = tl.DataLoader(data, batch_size=8, transform=[function], num_workers=2)
        epoch = iter(loader)
        consumer = threading.Thread(target=consume, daemon=True)
        consumer.start()
        consumer.join(60)
        assert not consumer.is_alive()
        if refusals:
            break
    assert refusals and all("cannot begin, read or close" in refusal for refusal in refusals)
    loader.close()


def test_a_function_may_use_another_loader(data):
    def function(pixels):
        with tl.DataLoader(data, batch_size=1, image_size=(HEIGHT, WIDTH)) as other:
            return next(iter(other))["image"].numpy()[0]

    loader = tl.DataLoader(data, batch_size=8, transform=[function])
    np.testing.assert_array_equal(next(iter(loader))["image"][3].numpy(), image(0))


def test_a_loader_is_let_go_of_on_its_own_thread(data):
    kept, begun, gone = [], threading.Event(), threading.Event()

    def function(pixels):
        begun.wait(60)
        kept.clear()
        gone.set()
        return pixels

    loader = tl.DataLoader(data, batch_size=8, transform=[function], num_workers=2)
    kept += [iter(loader), loader]
    died = weakref.ref(loader)
    del loader
    begun.set()
    assert gone.wait(60)
    assert died() is None


FOLLOWERS = {
    "mask": tl.Mask("seg.png"),
    "masks": tl.InstanceMasks("json:/m/*"),
    "boxes": tl.Boxes("json:/b/*", labels="/l/*"),
    "points": tl.Keypoints("json:/p/*"),
    "eyes": tl.Keypoints("json:/e"),
}


@pytest.fixture
def annotated(tmp_path):
    """Return a folder of three images with everything that moves."""
    depth = np.full((HEIGHT, WIDTH), 3, np.uint16)
    for number in range(3):
        stem = tmp_path / str(number)
        pixels = image(number)
        stem.with_suffix(".bmp").write_bytes(bmp(pixels))
        stem.with_suffix(".seg.png").write_bytes(gray_png(np.ascontiguousarray(pixels[:, :, 0])))
        stem.with_suffix(".depth.png").write_bytes(gray_png(depth))
        document = {
            "m": [[[0, 0, 4, 0, 4, 4]], [[1, 1, 3, 1, 3, 2]]],
            "b": [[0, 0, 4, 4], [1, 1, 3, 2]],
            "l": [7, 8],
            "p": [[[1, 2, 2], [3, 0, 1]], [[0, 0, 0], [2, 1, 2]]],
            "e": [[1.5, 2], [3, number]],
        }
        stem.with_suffix(".json").write_text(json.dumps(document))
    return tmp_path


@pytest.mark.parametrize("name", [*FOLLOWERS, "depth"])
def test_functions_that_may_move_pixels_are_refused_next_to_fields_that_follow(annotated, name):
    """Nothing would tell the field where the pixels went."""
    depth = tl.Image("depth.png", pixels="uint16")
    fields = {name: FOLLOWERS.get(name, depth)}

    def loader(function):
        steps = [T.Resize((HEIGHT, WIDTH)), T.RandomApply([function], p=1.0)]
        return tl.DataLoader(annotated, 1, transform=steps, fields=fields)

    with pytest.raises(tl.SettingError, match=rf"{name} moves with .* function .*inverted"):
        loader(inverted)
    batch = next(iter(loader(T.Lambda(inverted, moves=False))))
    np.testing.assert_array_equal(batch["image"][0].numpy(), 255 - image(0))
    assert len(batch[name]) == 1


def mirrored_all(image, boxes, mask, masks, points, eyes, seed):
    width = image.shape[1]
    left, top, right, bottom = boxes.T
    assert (boxes.dtype, boxes.shape, masks.shape) == (np.float32, (2, 4), (2, HEIGHT, WIDTH))
    assert (points.shape, eyes.shape, type(seed)) == ((2, 2, 3), (2, 2), int)
    boxes = np.stack([width - right, top, width - left, bottom], axis=1)
    for one in (points, eyes):
        one[..., 0] = width - 1 - one[..., 0]
    return {
        "image": image[:, ::-1],
        "boxes": boxes,
        "mask": mask[:, ::-1],
        "masks": masks[:, :, ::-1],
        "points": points,
        "eyes": eyes,
    }


def content(batch):
    """Return what every row has, by names."""
    lists = {name: [one.numpy() for one in batch[name]] for name in ("boxes", "points", "masks")}
    arrays = {name: list(batch[name].numpy()) for name in ("image", "mask", "eyes", "index")}
    return {
        f"{name} {row}": one
        for name, all in (lists | arrays).items()
        for row, one in enumerate(all)
    }


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("cache", [None, tl.Cache(memory="1MB"), tl.Cache("1MB", decoded=True)])
def test_functions_move_the_fields_that_they_take(annotated, workers, cache):
    def batches(step):
        steps = [T.Resize((HEIGHT, WIDTH)), step, T.RandomCrop((5, 6)), T.ToTensor()]
        loader = tl.DataLoader(
            annotated,
            2,
            transform=steps,
            fields=FOLLOWERS,
            num_workers=workers,
            seed=5,
            cache=cache,
        )
        first = [content(batch) for batch in loader]
        epoch = iter(loader)
        next(epoch)
        state = loader.state_dict()
        rest = [content(batch) for batch in epoch]
        loader.load_state_dict(state)
        again = [content(batch) for batch in loader]
        for one, other in zip(rest, again, strict=True):
            for name, array in one.items():
                np.testing.assert_array_equal(other[name], array)
        return first + rest

    for found, expected in zip(
        batches(mirrored_all), batches(T.RandomHorizontalFlip(p=1.0)), strict=True
    ):
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_functions_may_change_sizes_and_drop_objects(annotated):
    def part(image, boxes, label=None):
        boxes[1] = np.nan
        return {"image": image[:3, :4], "boxes": boxes}

    fields = {"boxes": FOLLOWERS["boxes"]}
    for size in ((3, 4), "any"):
        step = T.Lambda(part, size=size)
        loader = tl.DataLoader(annotated, 3, transform=step, fields=fields)
        batch = next(iter(loader))
        images = batch["image"] if size == "any" else batch["image"].numpy()
        assert [np.shape(one) for one in images] == [(3, 4, 3)] * 3
        assert [one.numpy().tolist() for one in batch["box_labels"]] == [[7]] * 3
        assert [one.numpy().tolist() for one in batch["boxes"]] == [[[0, 0, 4, 3]]] * 3
    resized = tl.DataLoader(
        annotated, 3, transform=[T.Lambda(part, size="any"), T.Resize((6, 8))], fields=fields
    )
    assert next(iter(resized))["image"].shape == (3, 6, 8, 3)
    undeclared = tl.DataLoader(annotated, 3, transform=part, fields=fields)
    with pytest.raises(tl.SampleError, match=r"4x3 pixels, expected 10x6: declare size \[3, 4\]"):
        next(iter(undeclared))
    doubled = T.Lambda(lambda image: np.repeat(image, 2, axis=0), size="any")
    assert doubled(image(0)).shape == (2 * HEIGHT, WIDTH, 3)
    assert T.Compose([doubled, T.CenterCrop(4)])(image(0)).shape == (4, 4, 3)
    assert json.loads(T.recipe(doubled).to_json())["ops"][0]["size"] == "any"
    with pytest.raises(tl.RecipeError, match="cannot be within RandomApply"):
        T.recipe(T.RandomApply([doubled]))
    with pytest.raises(tl.RecipeError, match="one image and not 2"):
        tl.DataLoader(annotated, 1, transform=T.Views(2, [doubled, T.Resize((4, 4))]))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda image, boxes: image, "returned no dict with 'image', 'boxes'"),
        (lambda image, boxes: {"image": image}, "returned no 'boxes'"),
        (lambda image, boxes: {"image": image, "boxes": boxes[:1]}, r"\(1, 4\), expected \(2, 4\)"),
        (lambda image, boxes: {"image": image / 2, "boxes": boxes}, "returned float64 of shape"),
        (
            lambda image, boxes: {"image": image, "boxes": boxes + 1e30},
            "boxes: number 0 of those .* -1e20",
        ),
    ],
)
def test_functions_that_return_other_fields_are_the_samples_error(annotated, returned, message):
    fields = {"boxes": FOLLOWERS["boxes"]}
    loader = tl.DataLoader(annotated, 3, transform=returned, fields=fields)
    with pytest.raises(tl.SampleError, match=message):
        next(iter(loader))
    with pytest.raises(tl.SettingError, match=r"takes other, which .* the image \(boxes\)"):
        tl.DataLoader(annotated, 3, transform=lambda image, boxes, other: None, fields=fields)


MOVED = {"boxes": "boxes", "mask": "mask", "masks": "masks", "points": "keypoints"}


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("mask", lambda mask: mask * 0.5, "mask of float64, expected whole numbers"),
        ("mask", lambda mask: mask * 0 - np.int64(3), "mask with -3, expected 0 to 255"),
        ("mask", lambda mask: np.full(mask.shape, 256), "mask with 256, expected 0 to 255"),
        ("mask", lambda mask: mask[..., None], r"mask of shape \(6, 10, 1\), expected \(height"),
        ("mask", lambda mask: None, "returned no 'mask'"),
        ("mask", lambda mask: mask[:3], "mask: returned 10x3 pixels for an image of 10x6"),
        ("masks", lambda masks: masks * 255, "masks with 255, expected 0 to 1"),
        ("masks", lambda masks: masks * 0.5, "masks of float64, expected whole numbers"),
        ("masks", lambda masks: masks[:, :, :0], r"masks of shape \(2, 6, 0\), expected \(objects"),
        ("masks", lambda masks: masks[0], r"masks of shape \(6, 10\), expected \(objects"),
        ("masks", lambda masks: masks[:1], "masks of objects: returned 1, expected 2"),
        ("boxes", lambda boxes: boxes.astype(str), "boxes of <U32, expected numbers"),
        ("boxes", lambda boxes: boxes[:, [2, 1, 0, 3]], "boxes with 4, 0, 0, 4, expected left"),
        ("points", lambda points: points - 3, "keypoints with visibility -1, expected 0 or more"),
        ("points", lambda points: points * np.nan, "keypoints with visibility NaN"),
    ],
)
def test_fields_that_do_not_fit_are_the_samples_error(annotated, name, change, message):
    def function(image, **fields):
        return {"image": image, name: change(fields[name])}

    steps = [T.Resize((HEIGHT, WIDTH)), function]
    loader = tl.DataLoader(annotated, 3, transform=steps, fields={name: FOLLOWERS[name]})
    with pytest.raises(tl.SampleError, match=message):
        next(iter(loader))


def test_fields_may_come_back_as_other_types(annotated):
    def other(image, boxes, points, mask, masks):
        return {
            "image": image,
            "boxes": boxes.astype(int).tolist(),
            "points": points.astype(np.float64),
            "mask": mask.astype(np.int64),
            "masks": list(masks > 0),
        }

    fields = {name: FOLLOWERS[name] for name in MOVED}
    steps = [T.Resize((HEIGHT, WIDTH))]
    alone, moved = (
        next(iter(tl.DataLoader(annotated, 3, transform=chain, fields=fields)))
        for chain in (steps, [*steps, other])
    )
    for name in MOVED:
        for one, two in zip(alone[name], moved[name], strict=True):
            np.testing.assert_array_equal(one.numpy(), two.numpy())


def test_images_without_objects_may_come_back_with_empty_lists(annotated):
    document = {"m": [], "b": [], "l": [], "p": []}
    for path in annotated.glob("*.json"):
        path.write_text(json.dumps(document))
    shapes = []

    def part(image, boxes, points, masks):
        shapes.append((boxes.shape, points.shape, masks.shape))
        masks = masks * np.ones(image.shape[:2], np.uint8)
        made = {"image": image[:4], "boxes": list(boxes), "points": list(points)}
        return made | {"masks": [one[:4] for one in masks]}

    fields = {name: FOLLOWERS[name] for name in ("boxes", "masks")}
    fields["points"] = tl.Keypoints("json:/p/*", shape=(2, 3))
    loader = tl.DataLoader(annotated, 3, transform=T.Lambda(part, size="any"), fields=fields)
    batch = next(iter(loader))
    assert shapes == [((0, 4), (0, 2, 3), (0, HEIGHT, WIDTH))] * 3
    assert [one.shape for one in batch["masks"]] == [(0, 4, WIDTH)] * 3


def by_place(image, boxes, /):
    return {"image": image, "boxes": boxes}


def whole(image, boxes):
    return {"image": image, "boxes": boxes}


def test_functions_get_fields_by_their_names(annotated):
    fields = {"boxes": FOLLOWERS["boxes"]}

    def loader(transform, fields=fields):
        return tl.DataLoader(annotated, 3, transform=transform, fields=fields)

    with pytest.raises(tl.SettingError, match="boxes moves with the image, and would stay"):
        loader(by_place)
    with pytest.raises(tl.SettingError, match=r"by_place of image b takes boxes, which"):
        loader({"a": T.Resize((4, 4)), "b": [by_place, T.Resize((4, 4))]})
    with pytest.raises(tl.SettingError, match="boxes moves with the image, and would stay"):
        loader(lambda boxes: {"image": boxes, "boxes": boxes})
    with pytest.raises(tl.SettingError, match=r"takes seed by its place.* remove the /"):
        loader(eval("lambda image, seed, /, **fields: None"))
    for name in ("image", "seed"):
        with pytest.raises(tl.SettingError, match=f"field {name} .*give the field another name"):
            loader({"a": whole}, {name: FOLLOWERS["boxes"]})
    # The further image has no boxes.
    with pytest.raises(tl.SettingError, match=r"whole of image b takes boxes, which"):
        loader({"a": whole, "b": whole})
    batch = next(iter(loader({"a": whole, "b": [inverted, T.Resize((HEIGHT, WIDTH))]})))
    np.testing.assert_array_equal(batch["b"][0].numpy(), 255 - image(0))


def test_lambdas_say_what_they_declare():
    for size in ("big", 1.5, (0, 3), 70000, (1, 2, 3), True, -1):
        with pytest.raises(tl.RecipeError, match=r"size is .*, expected 1 to 65535, \(height, w"):
            T.Lambda(inverted, size=size)
    for size in (4, "any"):
        with pytest.raises(tl.RecipeError, match="a function that changes the size moves pixels"):
            T.Lambda(inverted, size=size, moves=False)
    with pytest.raises(tl.SettingError, match="moves is 'no', expected True or False"):
        T.Lambda(inverted, moves="no")
    assert repr(T.Lambda(inverted)) == "Lambda(inverted)"
    assert repr(T.Lambda(inverted, moves=False)) == "Lambda(inverted, moves=False)"
    assert repr(T.Lambda(inverted, size=(3, 4))) == "Lambda(inverted, size=[3, 4])"
    assert repr(T.Lambda(inverted, size="any")) == "Lambda(inverted, size='any')"


def test_albumentations_move_boxes_points_and_masks(annotated):
    A = pytest.importorskip("albumentations")  # noqa: N806
    flip = [A.HorizontalFlip(p=1.0), A.RandomBrightnessContrast(p=0.0)]

    def batches(step, fields=FOLLOWERS):
        loader = tl.DataLoader(
            annotated, 2, transform=[T.Resize((HEIGHT, WIDTH)), step], fields=fields
        )
        return [content(batch) for batch in loader]

    with_visibility = FOLLOWERS | {"eyes": tl.Keypoints("json:/p/0")}
    expected = batches(T.RandomHorizontalFlip(p=1.0), with_visibility)
    for form in ("pascal_voc", "coco", "yolo", "albumentations"):
        boxes = A.BboxParams(form, label_fields=["classes"])
        chain = A.Compose(flip, bbox_params=boxes, keypoint_params=A.KeypointParams("xy"))
        for found, wanted in zip(batches(chain, with_visibility), expected, strict=True):
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, atol=1e-4, err_msg=f"{form} {name}")
    for fields, argument in (("boxes", "bbox_params"), ("points", "keypoint_params")):
        with pytest.raises(tl.SettingError, match=argument):
            tl.DataLoader(
                annotated, 2, transform=A.Compose(flip), fields={fields: FOLLOWERS[fields]}
            )


ENDING = """
import sys
import turboloader as tl

def function(image):
    return image

loader = tl.DataLoader(sys.argv[1], 2, transform=function, num_workers=3)
epoch = iter(loader)
batch = next(epoch)
print(len(batch["index"]))
"""


def test_processes_end_while_functions_are_called(data):
    """The end of the interpreter must not wait for threads that wait for it."""
    for _ in range(5):
        command = [sys.executable, "-W", "ignore", "-c", ENDING, str(data)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert ended.stdout == "2\n"


def of_albumentations(folder, fields, *transforms, form="pascal_voc", **params):
    """Return a loader with a chain of Albumentations that has boxes and keypoints."""
    import albumentations as A  # noqa: N812

    boxes, points = A.BboxParams(form, **params), A.KeypointParams("xy", **params)
    chain = A.Compose(list(transforms), bbox_params=boxes, keypoint_params=points)
    return tl.DataLoader(folder, 3, transform=chain, fields=fields)


@pytest.mark.parametrize(("name", "one"), [("boxes", "box"), ("points", "keypoint")])
def test_copies_of_objects_by_albumentations_are_refused(annotated, name, one):
    A = pytest.importorskip("albumentations")  # noqa: N806
    cv2 = pytest.importorskip("cv2")

    def batch(border):
        pad = A.PadIfNeeded(2 * HEIGHT, 2 * WIDTH, border_mode=border)
        return next(iter(of_albumentations(annotated, {name: FOLLOWERS[name]}, pad)))

    assert len(batch(cv2.BORDER_CONSTANT)[name]) == 3
    expected = f"made several {name} of {one} 0 .*border_mode=cv2.BORDER_CONSTANT"
    with pytest.raises(tl.SampleError, match=expected):
        batch(cv2.BORDER_REFLECT_101)


def test_albumentations_that_mirror_are_refused_next_to_pairs_of_points(annotated):
    A = pytest.importorskip("albumentations")  # noqa: N806
    paired = tl.Keypoints("json:/p/*", flip_pairs=[(0, 1)])
    fields = {"points": paired}

    class OfMine(A.DualTransform):
        pass

    for mirror in (
        A.HorizontalFlip(),
        A.OneOf([A.RandomGamma(), A.Sequential([A.VerticalFlip()])]),
        A.D4(),
        A.SquareSymmetry(),
        A.Transpose(),
        A.Affine(scale={"x": (-1, 1), "y": 1}),
        A.Affine(shear={"x": (50, 60), "y": (50, 60)}),
        OfMine(),
    ):
        with pytest.raises(tl.SettingError, match=r"field points has flip_pairs, which \w+ of"):
            of_albumentations(annotated, fields, mirror)
        of_albumentations(annotated, {"points": FOLLOWERS["points"]}, mirror)
    others = [
        A.Affine(rotate=(-20, 20), shear=(-9, 9)),
        A.RandomGamma(),
        A.Rotate(),
        A.Resize(4, 5),
    ]
    assert len(next(iter(of_albumentations(annotated, fields, *others)))["points"]) == 3


def test_albumentations_that_drop_boxes_get_them(annotated):
    A = pytest.importorskip("albumentations")  # noqa: N806
    fields = {"boxes": FOLLOWERS["boxes"]}
    for least, labels in ((0, [7, 8]), (3, [7])):
        params = A.BboxParams("pascal_voc", min_area=least)
        chain = A.Compose([A.RandomGamma(), A.NoOp()], bbox_params=params)
        batch = next(iter(tl.DataLoader(annotated, 3, transform=chain, fields=fields)))
        assert [one.numpy().tolist() for one in batch["box_labels"]] == [labels] * 3


def test_albumentations_that_make_no_images_or_cannot_be_seeded_are_refused():
    A = pytest.importorskip("albumentations")  # noqa: N806
    with pytest.raises(tl.RecipeError, match=r"Normalize of Albumentations .* T.Normalize.* Compo"):
        T.Compose([A.Compose([A.HorizontalFlip(), A.Normalize()])])
    with pytest.raises(tl.RecipeError, match=r"ToFloat .* put T.ToTensor\(\) after it"):
        T.Lambda(A.ToFloat())
    with pytest.raises(tl.RecipeError, match=r"Lambda of .*no description: .*A.Lambda\(..., name="):
        T.recipe(A.Lambda(image=inverted))

    class Earlier:
        """One of albumentations 1.4.20."""

        __module__ = "albumentations.core"

        def __call__(self, **targets):
            return targets

    with pytest.raises(tl.RecipeError, match=r"Earlier .* cannot be seeded: .* 1.4.21 or later"):
        T.Lambda(Earlier())


def test_albumentations_have_the_same_name_in_every_process():
    A = pytest.importorskip("albumentations")  # noqa: N806

    class OfMine(A.ImageOnlyTransform):
        def to_dict(self):
            return {"own": object()}

    assert T.Lambda(OfMine()).name == T.Lambda(OfMine()).name
    chain = A.Compose([A.HorizontalFlip()])
    assert T.Lambda(chain) == T.Lambda(chain)
    # One object may stand in a recipe twice, or be that of two images.
    assert len(T.functions({"a": [chain, chain], "b": chain})) == 1


def test_sizes_of_albumentations_are_known():
    A = pytest.importorskip("albumentations")  # noqa: N806

    class Cut(A.RandomCrop):
        pass

    class Chain(A.Compose):
        pass

    sizes = [
        (A.SquareSymmetry(), "any"),
        (A.Rotate(crop_border=True), "any"),
        (A.Rotate(), None),
        (A.Affine(fit_output=True), "any"),
        (A.Affine(), None),
        (A.Perspective(keep_size=False), "any"),
        (A.Perspective(), None),
        (Cut(3, 4), [3, 4]),
        (Cut(3, 4, p=0.5), "any"),
        (Chain([A.Rotate(crop_border=True), Cut(3, 4)]), [3, 4]),
        (A.ReplayCompose([Cut(3, 4)]), [3, 4]),
    ]
    assert [T.Lambda(one).size for one, _ in sizes] == [size for _, size in sizes]
