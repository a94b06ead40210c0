from __future__ import annotations

import gc
import itertools
import json
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
        with pytest.raises(tl.SampleError, match="it returned"):
            next(iter(loader))


def test_epochs_end_while_functions_run(data):
    for _ in range(20):
        loader = tl.DataLoader(data, batch_size=2, transform=inverted, num_workers=3)
        epoch = iter(loader)
        next(epoch)
        # Its threads want the interpreter, which this thread has.
        del epoch, loader


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
    "boxes": tl.Boxes("json:/b/*"),
    "points": tl.Keypoints("json:/p/*"),
    "depth": tl.Image("depth.png", pixels="uint16"),
}


@pytest.mark.parametrize("name", FOLLOWERS)
def test_functions_that_may_move_pixels_are_refused_next_to_fields_that_follow(tmp_path, name):
    """Nothing would tell the field where the pixels went."""
    (tmp_path / "a.bmp").write_bytes(bmp(image(0)))
    gray = gray_png(np.full((HEIGHT, WIDTH), 3, np.uint16 if name == "depth" else np.uint8))
    (tmp_path / "a.seg.png").write_bytes(gray)
    (tmp_path / "a.depth.png").write_bytes(gray)
    document = {"m": [[[0, 0, 4, 0, 4, 4]]], "b": [[0, 0, 4, 4]], "p": [[[1, 2]]]}
    (tmp_path / "a.json").write_text(json.dumps(document))
    fields = {name: FOLLOWERS[name]}

    def loader(function):
        steps = [T.Resize((HEIGHT, WIDTH)), T.RandomApply([function], p=1.0)]
        return tl.DataLoader(tmp_path, 1, transform=steps, fields=fields)

    with pytest.raises(tl.SettingError, match=rf"field {name} moves .* function .*inverted"):
        loader(inverted)
    batch = next(iter(loader(T.Lambda(inverted, moves=False))))
    np.testing.assert_array_equal(batch["image"][0].numpy(), 255 - image(0))
    assert len(batch[name]) == 1
