from __future__ import annotations

import json
import threading

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, image
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
    def deep(pixels):
        nested: list = []
        for _ in range(100_000):
            nested = [nested]
        with pytest.raises(RecursionError):
            repr(nested)
        return pixels

    assert sum(len(batch) for batch in tl.DataLoader(data, batch_size=50, transform=deep)) == 100


def refuse_five(pixels):
    if np.array_equal(pixels, image(5)):
        raise KeyError("five")
    return pixels


def test_an_exception_is_the_samples_error(data):
    loader = tl.DataLoader(data, batch_size=8, transform=[refuse_five])
    with pytest.raises(tl.SampleError, match=r"refuse_five.*KeyError: 'five'") as raised:
        next(iter(loader))
    assert (raised.value.sample, raised.value.key) == (5, "00005.bmp")
    loader = tl.DataLoader(data, batch_size=8, transform=[refuse_five], on_error="skip")
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
    for wrong in (T.ToTensor, 3, "flip"):
        with pytest.raises(TypeError, match="no transform of turboloader"):
            T.Compose([wrong])
    with pytest.raises(tl.SettingError, match="inverted"):
        tl.DataLoader(data, transform=T.recipe([inverted, T.Resize(3)]))
