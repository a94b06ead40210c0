"""Invalid and conflicting settings of a loader are refused by name."""

from __future__ import annotations

import dataclasses
import errno
import gc
import inspect
import os
import pickle
import re
import threading
import typing
import weakref

import numpy as np
import pytest
import turboloader as tl
from turboloader import transforms as T  # noqa: N812


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": "8"}, "^batch_size is '8', expected a whole number"),
        ({"batch_size": -1}, "^batch_size is -1, expected a whole number"),
        ({"drop_last": True, "tail": "pad"}, "drop_last and tail='pad'"),
        ({"decode": False, "dtype": "uint8"}, "dtype: not supported with decode=False"),
        ({"decode": False, "channels_last": False}, "channels_last: not supported"),
        ({"decode": False, "batch_transform": T.MixUp(num_classes=2)}, "batch_transform: not"),
        ({"worker_id": 2, "num_workers": 2}, r"worker_id is 2, expected less than num_workers .2"),
        ({"worker_id": 0}, r"worker_id is 0, expected less than num_workers \(0\), the number"),
        (
            {"worker_id": 0, "num_workers": 2, "ranks": tl.Ranks(1, 2)},
            "worker_id is the rank of ranks by another name; pass only ranks",
        ),
        (
            {"prefetch_factor": 2, "memory": tl.Memory(prefetch=9)},
            r"prefetch_factor is prefetch .*; pass only memory=tl.Memory\(prefetch=9\)",
        ),
        ({"source": "x"}, "source is data by another name; pass only data"),
        (
            {"transforms": [], "transform": []},
            "transforms is transform by another name; pass only transform",
        ),
        ({"format": "tar"}, "format is tar, but the files are tbl"),
        ({"format": "idv"}, "format is idv, but the files are tbl"),
        ({"format": "zip"}, "format is zip, expected one of auto, folder"),
        ({"format": ["tbl"]}, r"format is \['tbl'\], expected one of auto, folder"),
        ({"output_format": ["x"]}, "output_format is .*expected one of tensor"),
        ({"image_size": (224,)}, r"image_size is \(224,\), expected one number or"),
        ({"image_size": "224"}, "image_size is '224', expected a whole number"),
        ({"buckets": "12"}, "window is '12', expected a whole number"),
        ({"image_size": 4.0}, "image_size is 4.0, expected a whole number"),
        ({"image_size": True}, "image_size is True, expected a whole number"),
        ({"num_workers": -1}, "num_workers is -1, expected a whole number, 0 or more"),
        ({"num_workers": 1.5}, "num_workers is 1.5"),
        ({"columns": 3}, "columns is 3, expected a list of names"),
        ({"prefetch_factor": "2"}, "prefetch is '2'"),
        ({"buckets": (1, 2, 3)}, r"window is \(1, 2, 3\), expected a whole number from 1"),
        ({"buckets": 0}, "window is 0, expected a whole number from 1"),
        ({"worker_id": "x", "num_workers": 2}, "worker_id is 'x', expected a whole number"),
        ({"data": 3}, "data is 3, expected a path or URL, or a list of them"),
        ({"cache": True}, "cache is True, expected a turboloader.Cache"),
        ({"cache": {"memory": 1}}, "cache is {'memory': 1}, expected a turboloader.Cache"),
        ({"errors": tl.Memory("1GB")}, "errors is Memory, expected a turboloader.Errors"),
        ({"memory": "much"}, "budget is 'much', expected bytes: a number, or text such as '2GB'"),
        ({"ranks": "all"}, "ranks is 'all', expected 'auto', turboloader.Ranks"),
        ({"drop_last": "no"}, "drop_last is 'no', expected True or False"),
        ({"decode": None}, "decode is None, expected True or False"),
        ({"decode": False, "exif": True}, "exif: not supported with decode=False"),
        ({"columns": ["json"]}, "columns: only supported for tables.*'json': tl.Bytes"),
    ],
)
def test_what_cannot_be_is_refused_by_name(data, settings, message):
    with pytest.raises(tl.SettingError, match=message):
        tl.DataLoader(**{"data": data, **settings})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"channels_last": "x"}, "channels_last is 'x', expected True, False or None"),
        ({"decode_margin": "x"}, "decode_margin is 'x', expected a number"),
        ({"dtype": 3}, "3 is not a dtype"),
    ],
)
def test_wrong_types_are_named(data, settings, message):
    with pytest.raises(TypeError, match=message):
        tl.DataLoader(data, image_size=4, **settings)


def test_refused_sizes_are_in_no_line(data):
    with pytest.raises(tl.RecipeError, match=r"a size is 1 to 65535 pixels.*of such$"):
        tl.DataLoader(data, transform=T.Resize(-1))


@pytest.mark.parametrize("mixing", [["x"], 3, [T.MixUp(), T.Resize(3)]])
def test_what_does_not_mix_batches_is_no_batch_transform(data, mixing):
    with pytest.raises(TypeError, match=r"batch_transform: .* does not mix batches"):
        tl.DataLoader(data, image_size=4, batch_transform=mixing)


def test_numbers_of_numpy_are_numbers(data):
    expected = next(iter(tl.DataLoader(data, 8, image_size=(4, 5), num_workers=1)))["image"].numpy()
    for size in (np.array([4, 5]), [np.int64(4), np.uint8(5)]):
        loader = tl.DataLoader(
            data, np.int64(8), num_workers=np.int32(1), image_size=size, drop_last=np.bool_(False)
        )
        np.testing.assert_array_equal(next(iter(loader))["image"].numpy(), expected)
    assert tl.DataLoader(data, image_size=np.int64(4)).recipe.output_size == (4, 4)
    mean, std = [0.5, 0.25, 0.125], [0.25, 0.5, 0.5]
    said = T.Normalize(np.array(mean), np.array(std, np.float32))
    assert said == T.Normalize(mean, std)
    assert said(np.zeros((2, 2, 3), np.uint8)).tolist() == [[[-2, -0.5, -0.25]] * 2] * 2


def test_epochs_are_whole_numbers(data):
    loader = tl.DataLoader(data, image_size=4)
    for epoch in (-1, 1.5, "1", 1 << 32):
        with pytest.raises(tl.SettingError, match="epoch is "):
            loader.set_epoch(epoch)
    loader.set_epoch(np.int64(3))
    assert iter(loader).number == 3
    state = {name: np.int64(value) if value == 3 else value for name, value in state_of(loader)}
    loader.load_state_dict(state)
    assert loader.epoch == 3


def state_of(loader):
    return loader.state_dict().items()


@pytest.mark.parametrize("tail", ["drop", "pad", "uneven"])
def test_a_finished_epoch_is_followed_by_the_next(data, tail):
    loader = tl.DataLoader(data, 16, image_size=4, tail=tail)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    for number, state in enumerate(states):
        loader.load_state_dict(state)
        assert loader.epoch == (number == len(loader))
        assert iter(loader).number == (number == len(loader))


def test_batches_have_no_numbers(data):
    with pytest.raises(TypeError, match=r"turboloader\.torch\.IterableDataset"):
        tl.DataLoader(data)[0]


def test_a_closed_loader_still_has_a_form(data):
    loader = tl.DataLoader(data, 8, image_size=4)
    said = repr(loader)
    loader.close()
    assert "13 batches of 8" in said
    assert repr(loader) == said


class Named(tl.DataLoader):
    """A transform with arguments."""

    def __init__(self, name, path):
        self.name = name
        super().__init__(path, batch_size=4, shuffle=True, image_size=4)


def indices(loader):
    return [batch["index"].numpy().tolist() for batch in loader]


def test_classes_that_inherit_can_be_pickled(data):
    copy = pickle.loads(pickle.dumps(Named("mine", data)))
    assert (type(copy), copy.name) == (Named, "mine")
    assert indices(copy) == indices(Named("other", data))


@pytest.mark.parametrize(
    "settings",
    [
        {"ranks": "auto"},
        {"ranks": "auto", "worker_id": 1, "num_workers": 3},
        {"ranks": "auto", "worker_id": 1, "num_workers": 3, "drop_last": True},
        {"worker_id": 1, "num_workers": 2},
        {"ranks": tl.Ranks(2, 3)},
    ],
)
def test_a_loader_keeps_its_part_in_another_process(data, monkeypatch, settings):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = tl.DataLoader(data, 4, image_size=4, **settings)
    sent = pickle.dumps(loader)
    monkeypatch.setenv("RANK", "0")
    first = pickle.loads(sent)
    monkeypatch.delenv("RANK")
    second = pickle.loads(pickle.dumps(first))
    expected = indices(loader)
    assert indices(first) == indices(second) == expected


def test_a_list_that_changes_changes_no_loader(data, tmp_path):
    paths, steps = [data], [T.Resize(4)]
    loader = tl.DataLoader(paths, transform=steps)
    paths.append(tmp_path / "none.tbl")
    steps.append(T.ToTensor())
    assert pickle.loads(pickle.dumps(loader)).recipe == T.recipe([T.Resize(4)])
    assert pickle.loads(pickle.dumps(tl.DataLoader(iter([data])))).num_samples == 100


def test_settings_that_agree_are_taken(data):
    assert len(tl.DataLoader(data, 8, decode=False, drop_last=True, tail="drop")) == 12
    assert len(tl.DataLoader(data, 8, decode=False, format="tbl")) == 13
    tl.DataLoader(data, 8, decode=False, batch_transform=[], prefetch_factor=2)


def test_a_recipe_says_itself_how_pixels_lie(data):
    recipe = tl.DataLoader(data, image_size=4, dtype="float32").recipe
    loader = tl.DataLoader(data, transform=recipe, output_format="numpy")
    assert next(iter(loader))["image"].shape == (32, 3, 4, 4)
    for name, value in {"channels_last": False, "dtype": "uint8", "image_size": 0}.items():
        with pytest.raises(tl.SettingError, match=f"{name}: already defined by the recipe"):
            tl.DataLoader(data, transform=recipe, **{name: value})


def test_a_file_that_is_not_there_is_the_built_in_error_too(tmp_path):
    path = str(tmp_path / "none.tar")
    with pytest.raises(FileNotFoundError) as caught:
        tl.DataLoader(path)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert isinstance(error, tl.StorageError)
        assert (error.errno, error.filename, error.shard) == (errno.ENOENT, path, path)
        assert str(error).count("none.tar") == 1


def test_errors_keep_their_place_in_another_process():
    error = tl.DecodeError("broken")
    error.sample, error.offset = 3, 512
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), copy.sample, copy.offset) == (tl.DecodeError, "broken", 3, 512)


def test_a_fork_of_a_process_that_waits_is_told_at_once(data):
    """Another thread holds the epoch's lock while the process is forked."""
    inside, leave = threading.Event(), threading.Event()

    def wait(image):
        inside.set()
        leave.wait(60)
        return image

    loader = tl.DataLoader(data, batch_size=4, num_workers=1, transform=[wait, T.Resize(4)])
    epoch = iter(loader)
    waiting = threading.Thread(target=lambda: next(epoch))
    waiting.start()
    assert inside.wait(60)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            refused = 0
            for ask in (lambda: next(epoch), epoch.state, epoch.remaining, lambda: iter(loader)):
                try:
                    ask()
                except tl.ForkedError:
                    refused += 1
            loader.close()
            status = 0 if refused == 4 else 2
        finally:
            os._exit(status)
    try:
        for _ in range(600):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            leave.wait(0.1)
        else:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
    finally:
        leave.set()
        waiting.join()
    assert os.waitstatus_to_exitcode(status) == 0
    loader.close()


def brighter(image):
    return np.minimum(image, 250) + np.uint8(5)


def test_functions_go_into_samples_by_number_too(data):
    torch = pytest.importorskip("torch")
    import turboloader.torch as tlt

    transform = [T.Resize((4, 4)), brighter]
    loader = tl.DataLoader(data, transform=transform, batch_size=100)
    expected = torch.from_numpy(next(iter(loader))["image"].numpy()).permute(0, 3, 1, 2)
    dataset = pickle.loads(pickle.dumps(tlt.Dataset(data, transform=transform)))
    assert torch.equal(torch.stack([dataset[index][0] for index in range(100)]), expected)


class Trainer:
    """It has the loader, whose transform is its own method."""

    def __init__(self, data):
        self.loader = tl.DataLoader(data, batch_size=4, transform=[T.Resize((4, 4)), self.same])
        self.is_whole = True

    def same(self, image):
        assert self.is_whole
        return image


def test_a_loader_whose_function_leads_back_to_it_is_collected(data):
    trainer = Trainer(data)
    next(iter(trainer.loader))
    alive = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert alive() is None


def test_functions_of_an_epoch_that_is_left_stay_whole(data):
    batches = iter(Trainer(data).loader)
    gc.collect()
    assert sum(len(batch) for batch in batches) == 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_workers": 5000}, "^num_workers is 5000, expected at most 1024"),
        ({"memory": tl.Memory(prefetch=10**6)}, "^the prefetch of memory is 1000000, expected"),
        ({"buckets": 2**31}, "^the window of buckets is 2147483648, expected at least 1"),
        ({"buckets": tl.Buckets(2, multiple=70000)}, "^the multiple of buckets is 70000, expected"),
    ],
)
def test_errors_call_settings_as_python_does(data, settings, message):
    with pytest.raises(tl.SettingError, match=message):
        tl.DataLoader(data, **settings)


def test_errors_of_transforms_name_no_place_in_json(data):
    with pytest.raises(
        tl.RecipeError, match=r"^Resize: size is -1: a size is 1 to 65535 pixels"
    ) as raised:
        T.recipe([T.Resize(-1)])
    assert "line" not in str(raised.value)
    with pytest.raises(tl.RecipeError, match="numbers of transforms are finite"):
        T.recipe([T.Normalize([float("nan")] * 3)])
    loader = tl.DataLoader(data, batch_size=8)
    with pytest.raises(
        tl.StateError, match=r"^not a state of turboloader: missing field `dataset`$"
    ):
        loader.load_state_dict({"version": loader.state_dict()["version"]})


def test_a_transform_is_refused_where_it_is_made():
    for make, message in (
        (lambda: T.Resize("224"), r"Resize|size"),
        (lambda: T.Resize(-1), "size"),
        (lambda: T.GaussianBlur(4), "GaussianBlur: kernel_size is 4"),
        (lambda: T.RandomApply([T.RandomHorizontalFlip()], p=2), "RandomApply: p is 2"),
        (lambda: T.ColorJitter(brightness=-1), "ColorJitter: brightness"),
    ):
        with pytest.raises(tl.RecipeError, match=message):
            make()
    # What has to stand before an operation is known when there is a list of them.
    assert T.RandomErasing().p == 0.5


def test_operations_are_counted_as_they_were_given(data):
    with pytest.raises(tl.RecipeError, match="operation 1: Resize cannot follow"):
        tl.DataLoader(data, transform=[T.Normalize(), T.Resize(8)])


def test_objects_of_other_libraries_are_not_taken_for_functions_of_an_image(data):
    processor = type("ViTImageProcessor", (), {"__call__": lambda self, image: image})
    processor.__module__ = "transformers.models.vit"
    with pytest.raises(TypeError, match="ViTImageProcessor is neither a transform"):
        tl.DataLoader(data, transform=[processor()])
    with pytest.raises(TypeError, match="ViTImageProcessor is neither a transform"):
        tl.DataLoader(data, transform=processor())


def test_every_argument_is_described():
    _, text = inspect.getdoc(tl.DataLoader).split("Parameters\n----------\n")
    described = re.findall(r"^(\w+(?:, \w+)*)$", text.partition("\nExamples")[0], re.MULTILINE)
    signature = inspect.signature(tl.DataLoader)
    assert sorted(", ".join(described).split(", ")) == sorted(signature.parameters)
    with pytest.raises(
        TypeError, match=r"DataLoader got an unexpected .* 'shufle': did you mean shuffle"
    ):
        tl.DataLoader("a.tbl", shufle=True)


def test_the_loader_has_the_types_of_its_settings():
    signature = inspect.signature(tl.DataLoader.__init__)
    hints = typing.get_type_hints(tl.DataLoader.__init__)
    assert list(hints) == [*list(signature.parameters)[1:], "return"]
    assert hints["batch_size"] is int and hints["return"] is type(None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tl.Cache(), "neither memory nor disk is set: Cache"),
        (lambda: tl.Cache(-1), "memory is -1, expected bytes: a number"),
        (lambda: tl.Cache("2GB", folder="x"), "folder needs disk"),
        (lambda: tl.Cache("2GB", decoded=1), "decoded is 1, expected True or False"),
        (lambda: tl.Cache("2GB", blocks=True), "blocks needs disk, the size"),
        (lambda: tl.Cache(disk=1, blocks=True, decoded=True), "decoded and blocks; pass only one"),
        (lambda: tl.Errors("raise", at_most=3), "at_most has no effect with policy"),
        (lambda: tl.Errors("skip", at_most=1.5), "at_most is 1.5, expected a whole number of"),
        (lambda: tl.Errors("skip", at_most=-1), "at_most is -1, expected a whole number of"),
        (lambda: tl.Errors("skip", at_most="1"), "at_most is '1', expected a whole number of"),
        (lambda: tl.Errors("skip", at_most="101%"), "at_most is '101%', expected a whole number"),
        (lambda: tl.Errors("skip", at_most=True), "at_most is True, expected a whole number of"),
        (lambda: tl.Errors("ignore"), "policy is ignore, expected one of raise, skip"),
        (lambda: tl.Ranks(3, 2), "rank is 3, expected less than world_size"),
        (lambda: tl.Ranks(-1, 2), "rank is -1, expected a whole number"),
        (lambda: tl.Ranks(0, 1 << 32), "world_size is 4294967296, at most"),
        (lambda: tl.Memory("much"), "budget is 'much', expected bytes"),
        (lambda: tl.Memory(prefetch=-1), "prefetch is -1, expected a whole number"),
        (lambda: tl.Buckets(2, multiple=0), "multiple is 0, expected a whole number from 1"),
        (lambda: tl.Neighbors(2), "fanouts is 2, expected a list of numbers"),
        (lambda: tl.Columns("a"), "columns is the text 'a', expected a list of names"),
        (lambda: tl.Columns(features=3), "features is 3, expected a list of names"),
        (lambda: tl.Columns(neighbors={"a": 1}), "neighbors is {'a': 1}, expected a turboloader"),
        (lambda: tl.Store(connections=0), "connections is 0, expected a whole number from 1"),
        (lambda: tl.Store(read_ahead=0), "read_ahead is 0, expected a whole number from 1"),
        (lambda: tl.Store(deadline="x"), "deadline is 'x', expected seconds, more than 0"),
        (lambda: tl.Store(credentials="machine"), "credentials is machine, expected one of auto"),
        (lambda: tl.Store({"credentials": "a"}, credentials="instance"), "pass only one"),
        (lambda: tl.Cache(disk="1GB", folder=5), "folder is 5, expected the path of a folder"),
        (lambda: tl.Cache(disk="1GB", folder=b"/x"), "folder is b'/x', expected the path of a"),
        (lambda: tl.Store(unpack_to=5), "unpack_to is 5, expected the path of a folder"),
        (lambda: tl.Store(deadline=True), "deadline is True, expected seconds, more than 0"),
        (lambda: tl.Store(deadline="30"), "deadline is '30', expected seconds, more than 0"),
        (lambda: tl.Columns([1, 2]), "columns has 1, expected names"),
        (lambda: tl.Columns({1: "float32"}), "columns has 1, expected names"),
        (lambda: tl.Columns({"a", "b"}), "columns is a set, which has no order: pass a list"),
        (lambda: tl.Columns(features=[1]), "features has 1, expected names"),
        (lambda: tl.Columns(features=b"ab"), "features has 97, expected names"),
        (lambda: tl.Columns(label=5), "label is 5, expected the name of a column"),
        (lambda: tl.Neighbors("53"), "fanouts is '53', expected a list of numbers"),
        (lambda: tl.Neighbors([5], columns=[None]), "columns has None, expected names"),
        (lambda: tl.Errors(np.array(["skip", "raise"])), "policy is ['skip' 'raise'], expected"),
    ],
)
def test_groups_check_their_settings(make, message):
    with pytest.raises(tl.SettingError, match=rf"^({'|'.join(tl.settings.__all__)}): ") as caught:
        make()
    assert message in str(caught.value)


def test_groups_have_one_form():
    assert tl.Cache("2GB").memory == tl.Memory("2 GB").budget == 2_000_000_000
    assert tl.Cache(disk="1GiB", folder="a") == tl.Cache(0, 1 << 30, "a")
    assert tl.Cache("1kB").folder is None and tl.Cache(disk="1kB").folder is not None
    assert tl.Errors("skip", at_most=np.int64(3)).at_most == 3
    assert type(tl.Errors("skip", at_most=1).at_most) is int
    assert tl.Errors("skip", at_most="0.5%").at_most == 0.005
    assert tl.Errors("skip", at_most=np.float32(1)).at_most == 1.0
    assert tl.Columns(["a"], neighbors=[3]) == tl.Columns({"a": None}, neighbors=tl.Neighbors([3]))
    assert tl.Store({"anonymous": True}).options == {"anonymous": "true"}
    assert "true" not in repr(tl.Store({"anonymous": "true"}))
    assert pickle.loads(pickle.dumps(tl.Cache("2GB"))) == tl.Cache("2GB")


def test_groups_are_frozen():
    fanouts, features, columns, options = [5, 3], ["a"], {"b": None}, {"region": "eu"}
    made = tl.Columns(columns, features=features, neighbors=fanouts)
    store = tl.Store(options)
    fanouts.append(2)
    features.append("c")
    columns["d"] = options["token"] = "x"
    assert made == tl.Columns(["b"], features=["a"], neighbors=tl.Neighbors([5, 3]))
    assert (made.features, made.neighbors.fanouts) == (("a",), (5, 3))
    assert store == tl.Store({"region": "eu"})
    for group in (made, made.neighbors, store):
        with pytest.raises(TypeError, match=f"unhashable type: '{type(group).__name__}'"):
            hash(group)
    plain = (tl.Cache("1kB"), tl.Errors(), tl.Ranks(0, 2), tl.Memory(), tl.Buckets(2))
    assert len(set(plain)) == len(plain)
    for group in (*plain, made, store):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(group, dataclasses.fields(group)[0].name, None)


def test_a_value_is_the_first_field_of_a_group(data):
    def settings(**given):
        return vars(tl.DataLoader(data, image_size=4, **given)._settings)

    plain = settings(cache="2MB", errors="skip", memory="1GB", buckets=None)
    assert plain["cache"] == tl.Cache("2MB")
    assert (plain["errors"], plain["memory"]) == (tl.Errors("skip"), tl.Memory("1GB"))
    assert settings(store={"region": "eu"})["store"] == tl.Store({"region": "eu"})
    assert tl.DataLoader(data, decode=False, buckets=None)._settings.buckets is None


def test_more_bad_samples_than_allowed_end_an_epoch(data):
    def bad(image, seed):
        raise ValueError("bad")

    loader = tl.DataLoader(data, transform=[bad], errors=tl.Errors("skip", at_most=2))
    with (
        pytest.warns(UserWarning, match="bad samples are skipped"),
        pytest.raises(tl.LoaderError, match="are bad, the error budget allows 2"),
    ):
        list(loader)
