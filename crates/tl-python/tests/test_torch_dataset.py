from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import sys
import textwrap

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, bmp, image, write
from turboloader import transforms as T  # noqa: N812

torch = pytest.importorskip("torch")
import turboloader.torch as tlt  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]

TRAIN = [T.RandomResizedCrop(5), T.RandomHorizontalFlip(), T.ColorJitter(0.4), T.ToTensor()]


def pixels_of_loader(data, epoch, **settings):
    """The image of each sample, as a loader of ours has it in any order."""
    loader = tl.DataLoader(data, 7, shuffle=True, output_format="torch", **settings)
    loader.set_epoch(epoch)
    return {
        index: (pixels, label)
        for batch in loader
        for index, pixels, label in zip(
            batch["index"].tolist(), batch["image"], batch["label"].tolist(), strict=True
        )
    }


@pytest.mark.parametrize("epoch", [0, 3])
def test_samples_are_those_of_the_loader(data, epoch):
    expected = pixels_of_loader(data, epoch, transform=TRAIN, seed=9)
    dataset = tlt.Dataset(data, TRAIN, seed=9)
    dataset.set_epoch(epoch)
    assert len(dataset) == len(expected) == 100
    for index, (pixels, label) in enumerate(dataset):
        assert torch.equal(pixels, expected[index][0])
        assert label == expected[index][1] == index % 7
    dataset.set_epoch(epoch)
    for index in (0, 17, 99):
        assert torch.equal(dataset[index - 100][0], expected[index][0])
    # Any order, several at a time, by one thread or more.
    numbers = [5, 99, 0, 41, 2]
    for threads in (1, 3):
        several = tlt.Dataset(data, TRAIN, seed=9, threads=threads)
        several.set_epoch(epoch)
        found = several.__getitems__(numbers)
        assert [label for _, label in found] == [number % 7 for number in numbers]
        for number, (pixels, _) in zip(numbers, found, strict=True):
            assert torch.equal(pixels, expected[number][0])


def test_epoch_and_seed_decide_what_is_random(data):
    dataset, other = tlt.Dataset(data, TRAIN), tlt.Dataset(data, TRAIN, seed=43)
    first = dataset[3][0]
    assert not torch.equal(other[3][0], first)
    dataset.set_epoch(1)
    assert not torch.equal(dataset[3][0], first)
    dataset.set_epoch(0)
    assert torch.equal(dataset[3][0], first)


@pytest.mark.parametrize("workers", [0, 2, "persistent"])
def test_a_plain_loop_draws_each_epoch_anew(data, workers):
    options = {} if workers == 0 else {"num_workers": 2, "multiprocessing_context": "fork"}
    dataset = tlt.Dataset(data, TRAIN, seed=9, fields=("index", "image"))
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=8,
        shuffle=True,
        persistent_workers=workers == "persistent",
        **options,
    )
    for epoch in range(3):
        expected = pixels_of_loader(data, epoch, transform=TRAIN, seed=9)
        seen = 0
        for indices, images in loader:
            for index, pixels in zip(indices.tolist(), images, strict=True):
                assert torch.equal(pixels, expected[index][0])
                seen += 1
        assert seen == 100


def test_every_access_draws_anew(data):
    crops = [T.RandomResizedCrop(5)]
    for chosen in (None, 0, 4):
        dataset = tlt.Dataset(data, crops)
        if chosen is not None:
            dataset.set_epoch(chosen)
        images = [dataset[3][0] for _ in range(3)] + [
            one[0] for one in dataset.__getitems__([3] * 3)
        ]
        assert len({tuple(image.flatten().tolist()) for image in images}) == 6
        # The first access of a chosen epoch is that of the loader, and all of them come again.
        again = tlt.Dataset(data, crops)
        again.set_epoch(chosen or 0)
        assert torch.equal(again[3][0], images[0])
        if chosen is not None:
            assert torch.equal(again[3][0], images[1])
    weighted = torch.utils.data.WeightedRandomSampler([0.0] * 99 + [1.0], 5)
    loader = torch.utils.data.DataLoader(tlt.Dataset(data, crops), batch_size=5, sampler=weighted)
    images, _ = next(iter(loader))
    assert len({tuple(image.flatten().tolist()) for image in images}) == 5


@pytest.mark.parametrize("persistent", [False, True])
def test_a_state_knows_the_epoch_of_workers(data, persistent):
    dataset = tlt.Dataset(data, TRAIN, fields=("index", "image"))
    # An access in this process does not hide those of workers.
    dataset[0]
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=20,
        num_workers=2,
        multiprocessing_context="fork",
        persistent_workers=persistent,
    )
    for _ in range(3):
        list(loader)
    assert dataset.state_dict() == {"epoch": 3, "is_chosen": False}
    dataset.set_epoch(7)
    list(loader)
    assert dataset.state_dict() == {"epoch": 7, "is_chosen": True}


@pytest.fixture
def pairs(tmp_path):
    """Five images, two with a caption; the last image is damaged."""
    root = tmp_path / "pairs"
    root.mkdir()
    for number in range(5):
        (root / f"{number}.bmp").write_bytes(bmp(image(number)) if number < 4 else b"BM damaged")
        (root / f"{number}.cls").write_text(str(number))
    (root / "0.txt").write_text("none")
    (root / "4.TXT").write_text("four")
    return root


def test_files_of_a_sample_are_fields(pairs):
    stored = {name: tl.Bytes() for name in ("cls", "txt", "bmp")}
    opened = tl.open(pairs, fields=stored)
    dataset = tlt.Dataset(opened, fields=("key", "txt", "cls", "bmp"))
    assert dataset[0] == ("0.bmp", b"none", b"0", bmp(image(0)))
    assert dataset[1][:3] == ("1.bmp", None, b"1")
    assert dataset[4] == ("4.bmp", b"four", b"4", b"BM damaged")
    assert pickle.loads(pickle.dumps(dataset))[0] == dataset[0]
    loader = torch.utils.data.DataLoader(tlt.Dataset(opened, fields={"text": "cls"}), batch_size=5)
    assert [batch["text"] for batch in loader] == [[b"0", b"1", b"2", b"3", b"4"]]
    named = tlt.Dataset(pairs, fields={"text": tl.Bytes("txt"), "class": tl.Bytes("cls")})
    sample = named[1]
    assert (sample["label"], sample["text"], sample["class"]) == (1, None, b"1")
    assert torch.equal(sample["image"].movedim(0, -1), torch.from_numpy(image(1)))
    with pytest.raises(tl.SettingError, match="`jpg`; the files are called: TXT, bmp, cls"):
        tlt.Dataset(pairs, fields={"jpg": tl.Bytes()})
    with pytest.raises(tl.SettingError, match=r"fields names txt, a sample has image, label"):
        tlt.Dataset(pairs, fields=("txt",))
    for name in ("image", "label"):
        with pytest.raises(tl.SettingError, match=f"field {name}: every sample has its own"):
            tlt.Dataset(pairs, fields={name: tl.Bytes("cls")})


@pytest.mark.parametrize("policy", ["skip", "fill"])
def test_policies_of_batches_are_refused_by_name(pairs, policy):
    for errors in (policy, tl.Errors(policy)):
        with pytest.raises(tl.SettingError, match=f'errors is {policy}.*"replace"'):
            tlt.Dataset(pairs, errors=errors)
    with pytest.raises(tl.SettingError, match="Errors: at_most is a part of an epoch"):
        tlt.Dataset(pairs, errors=tl.Errors("replace", at_most=3))


def test_bad_samples_are_replaced_by_others(pairs):
    def made(**settings):
        fields = ("index", "label", "image", "cls")
        opened = tl.open(pairs, fields={"cls": tl.Bytes()})
        return tlt.Dataset(opened, fields=fields, **settings)

    with pytest.raises(tl.DecodeError, match="sample 4"):
        made()[4]
    found = []
    for threads in (1, 2):
        errors = "replace" if threads == 1 else tl.Errors("replace")
        dataset = made(errors=errors, threads=threads)
        with pytest.warns(UserWarning, match="bad samples are replaced, .*4.bmp") as said:
            samples = [dataset.__getitems__([3, 4]) for _ in range(20)]
        assert len(said) == 1
        found.append([(one[0][0], one[1][0]) for one in samples])
        for index, label, pixels, text in (sample for one in samples for sample in one):
            assert index == label == int(text) < 4
            assert torch.equal(pixels.movedim(0, -1), torch.from_numpy(image(index)))
    assert found[0] == found[1]
    assert all(first == 3 for first, _ in found[0])
    assert {second for _, second in found[0]} == {0, 1, 2, 3}
    for number in range(4):
        (pairs / f"{number}.cls").write_text("unreadable")
    bad = made(errors="replace")
    with pytest.warns(UserWarning), pytest.raises(tl.SampleError, match="16 samples drawn"):
        bad[4]


def test_errors_name_the_sample_of_the_whole_data_set(data, pairs):
    (pairs / "1.cls").write_text("dog")
    dataset = tlt.Dataset([data, pairs])
    with pytest.raises(tl.LoaderError, match=r"1\.cls") as raised:
        dataset[101]
    assert (raised.value.sample, raised.value.key) == (101, "1.bmp")
    with pytest.raises(tl.LoaderError, match=r"1\.cls"):
        dataset.targets  # noqa: B018


def test_a_data_set_warns_of_its_notes(pairs):
    (pairs / "2.cls").unlink()
    with pytest.warns(UserWarning, match="samples without a label") as caught:
        dataset = tlt.Dataset(pairs)
    (note,) = dataset.notes
    assert [(str(warning.message), warning.filename) for warning in caught] == [(note, __file__)]
    # Copies for workers do not warn again.
    pickle.loads(pickle.dumps(dataset))


def test_a_data_set_without_samples_is_refused(tmp_path):
    (tmp_path / ".DS_Store").write_text("")
    for made in (tlt.Dataset, tlt.IterableDataset):
        with pytest.raises(tl.SettingError, match="no images found in this folder"):
            made(tmp_path, image_size=8)
    (tmp_path / "a.txt").write_text("text")
    for made in (tlt.Dataset, tlt.IterableDataset):
        with pytest.raises(tl.SettingError, match="none of 1 samples is an image"):
            made(tmp_path, image_size=8)


def test_copies_count_on(data):
    # Picklers that are not torch's copy shared memory; workers of the copy have to share it again.
    for copied in (copy.deepcopy, lambda dataset: pickle.loads(pickle.dumps(dataset))):
        dataset = copied(tlt.Dataset(data, TRAIN, fields=("image",)))
        loader = torch.utils.data.DataLoader(
            dataset, batch_size=100, num_workers=1, multiprocessing_context="fork"
        )
        first, second = next(iter(loader))[0], next(iter(loader))[0]
        assert not torch.equal(first, second)


def test_ranks_draw_apart_unless_an_epoch_is_chosen(data, monkeypatch):
    images = {}
    for rank in (0, 1):
        monkeypatch.setenv("RANK", str(rank))
        dataset = tlt.Dataset(data, TRAIN)
        images[rank, None] = dataset[3][0]
        dataset.set_epoch(0)
        images[rank, 0] = dataset[3][0]
    # A distributed sampler may give rank 1 in epoch 1 what rank 0 had in epoch 0.
    assert not torch.equal(images[0, None], images[1, None])
    assert torch.equal(images[0, 0], images[1, 0])
    assert torch.equal(images[0, 0], images[0, None])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_resumes_in_the_middle_of_an_epoch(data, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def made():
        dataset = tlt.Dataset(data, TRAIN, fields=("index", "image"))
        context = "fork" if workers else None
        return stateful(dataset, batch_size=8, num_workers=workers, multiprocessing_context=context)

    loader = made()
    assert len(list(loader)) == 13
    batches = iter(loader)
    for _ in range(4):
        next(batches)
    state = loader.state_dict()
    expected = list(batches)
    resumed = made()
    resumed.load_state_dict(state)
    found = list(resumed)
    assert len(found) == len(expected) == 9
    for (indices, images), (expected_indices, expected_images) in zip(found, expected, strict=True):
        assert torch.equal(indices, expected_indices)
        assert torch.equal(images, expected_images)
    dataset = tlt.Dataset(data, TRAIN)
    for bad in ({}, {"epoch": -1, "is_chosen": False}, [], {"epoch": 1}):
        with pytest.raises(tl.StateError):
            dataset.load_state_dict(bad)


def test_images_keep_their_size_without_a_transform(data):
    dataset = tlt.Dataset(data)
    pixels, label = dataset[8]
    assert (pixels.shape, pixels.dtype, label) == ((3, HEIGHT, WIDTH), torch.uint8, 1)
    np.testing.assert_array_equal(pixels.permute(1, 2, 0).numpy(), image(8))


def test_a_recipe_changes_nothing_about_channels(data):
    for steps, shape in (
        ([T.Resize((4, 5))], (3, 4, 5)),
        ([T.Resize((4, 5)), T.ToTensor()], (3, 4, 5)),
        ([T.FiveCrop((2, 3))], (5, 3, 2, 3)),
        ([], (3, HEIGHT, WIDTH)),
    ):
        expected = tlt.Dataset(data, steps)[3][0]
        assert expected.shape == shape
        for last in (True, False, None):
            dataset = tlt.Dataset(data, T.recipe(steps, channels_last=last))
            assert torch.equal(dataset[3][0], expected)


def test_samples_that_come_alone_are_not_mixed(data):
    steps = [T.Resize((4, 5)), T.ToTensor()]
    with pytest.raises(tl.SettingError, match="mixes batches"):
        tlt.Dataset(data, T.recipe(steps, batch_transform=T.MixUp(num_classes=7)))


def test_several_files_are_one_data_set(data, tmp_path):
    more = write(tmp_path / "more.tbl", 5, height=9)
    dataset = tlt.Dataset([data, more], fields=("index", "key", "image", "label"))
    assert len(dataset) == 105
    index, key, pixels, label = dataset[102]
    assert (index, key, pixels.shape, label) == (102, "00002.bmp", (3, 9, WIDTH), 2)
    assert dataset.targets == [index % 7 for index in range(100)] + [0, 1, 2, 3, 4]
    random = [T.RandomResizedCrop(4)]
    expected = pixels_of_loader([data, more], 1, transform=random, channels_last=False)
    dataset = tlt.Dataset([data, more], random)
    dataset.set_epoch(1)
    for number in (0, 99, 100, 104):
        assert torch.equal(dataset[number][0], expected[number][0])


def test_photographs_are_those_of_image_folder(photos):
    folder = pytest.importorskip("torchvision.datasets").ImageFolder
    v2 = pytest.importorskip("torchvision.transforms.v2")
    chain = v2.Compose(
        [
            v2.Resize(64),
            v2.CenterCrop(56),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4]),
        ]
    )
    theirs = folder(photos, chain, allow_empty=True)
    ours = tlt.Dataset(photos, chain, fields=("image", "label", "key"))
    assert (ours.classes, ours.class_to_idx) == (theirs.classes, theirs.class_to_idx)
    assert len(ours) == len(theirs) == 12
    # The order of the files is each one's own.
    paths = {path: number for number, (path, _) in enumerate(theirs.samples)}
    for pixels, label, key in ours:
        expected, expected_label = theirs[paths[str(photos / key)]]
        assert label == expected_label
        # Two of 255 levels, divided by the least deviation.
        assert (pixels - expected).abs().max() <= 2 / 255 / 0.2 + 1e-6
    assert sorted(ours.targets) == sorted(theirs.targets)


def test_labels_go_through_their_transform_and_may_be_absent(data, tmp_path):
    assert tlt.Dataset(data, target_transform=lambda label: label * 10)[9][1] == 20
    path = tmp_path / "bare.tbl"
    with tl.TblWriter(path, sync=False) as writer:
        writer.add_sample(bmp(image(0)))
    assert tlt.Dataset(path, fields=("label",))[0] == (-1,)
    assert tlt.Dataset(path).targets == [-1]


def test_samplers_of_torch_choose_the_samples(data):
    dataset = tlt.Dataset(data, TRAIN, fields=("index", "image"))
    samplers = [
        torch.utils.data.DistributedSampler(dataset, num_replicas=2, rank=rank, seed=5)
        for rank in (0, 1)
    ]
    seen = []
    for sampler in samplers:
        sampler.set_epoch(4)
        loader = torch.utils.data.DataLoader(dataset, batch_size=8, sampler=sampler)
        indices = [index for indices, _ in loader for index in indices.tolist()]
        assert indices == list(sampler)
        seen += indices
    assert sorted(seen) == list(range(100))
    weighted = torch.utils.data.WeightedRandomSampler([0.0] * 99 + [1.0], 5)
    loader = torch.utils.data.DataLoader(dataset, batch_size=5, sampler=weighted)
    assert next(iter(loader))[0].tolist() == [99] * 5


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_have_the_samples_and_the_epoch(data, start):
    dataset = tlt.Dataset(data, TRAIN, threads=2)
    dataset.__getitems__([0, 1, 2])
    loader = torch.utils.data.DataLoader(
        dataset,
        batch_size=10,
        num_workers=2,
        persistent_workers=True,
        multiprocessing_context=multiprocessing.get_context(start),
    )
    for epoch in (0, 2):
        dataset.set_epoch(epoch)
        expected = [dataset[index][0] for index in range(100)]
        dataset.set_epoch(epoch)
        images = torch.cat([images for images, _ in loader])
        assert torch.equal(images, torch.stack(expected))


def test_data_sets_can_be_pickled(data):
    dataset = tlt.Dataset(data, TRAIN, seed=3)
    dataset.set_epoch(7)
    other = pickle.loads(pickle.dumps(dataset))
    assert other.state_dict() == {"epoch": 7, "is_chosen": True}
    assert torch.equal(other[4][0], dataset[4][0])
    assert other.classes == dataset.classes


def test_what_is_wrong_is_named(data, tmp_path):
    dataset = tlt.Dataset(data)
    for index in (100, -101):
        with pytest.raises(IndexError, match=f"no sample {index}: the data set has 100"):
            dataset[index]
    with pytest.raises(tl.SettingError, match="fields names images, a sample has image, label"):
        tlt.Dataset(data, fields=("images",))[0]
    path = tmp_path / "bad.tbl"
    with tl.TblWriter(path, sync=False) as writer:
        writer.add_sample(b"no image", key="a.jpg", label=1)
    with pytest.raises(tl.DecodeError, match=r"bad.tbl: sample 0 \(a.jpg\) at byte") as raised:
        tlt.Dataset(path)[0]
    assert (raised.value.sample, raised.value.key) == (0, "a.jpg")


def test_importing_the_package_imports_no_framework(run):
    script = """
        import json, sys
        import turboloader
        print(json.dumps([name for name in ("torch", "ray", "jax") if name in sys.modules]))
    """
    assert run([[sys.executable, "-c", textwrap.dedent(script)]]) == [[]]


@pytest.fixture
def poses(tmp_path):
    """Images with a text, numbers and boxes next to them."""
    folder = tmp_path / "poses"
    folder.mkdir()
    for number in range(12):
        (folder / f"s{number:02d}.bmp").write_bytes(bmp(image(number)))
        (folder / f"s{number:02d}.txt").write_text(f"caption {number}")
        document = {"angle": number / 4, "boxes": [[0, 0, 4 + number % 3, 5]], "ids": [number]}
        (folder / f"s{number:02d}.json").write_text(json.dumps(document))
    return folder


KINDS = {
    "caption": tl.Text("txt"),
    "angle": tl.Number("json:/angle"),
    "boxes": tl.Boxes("json:/boxes/*", labels="/ids/*"),
}


def rows_of_loader(data, epoch, **settings):
    """The fields of each sample, as a loader of ours has them in any order."""
    loader = tl.DataLoader(data, 5, shuffle=True, output_format="torch", **settings)
    loader.set_epoch(epoch)
    rows = {}
    for batch in loader:
        for row, index in enumerate(batch["index"].tolist()):
            rows[index] = {name: batch[name][row] for name in batch.keys()}  # noqa: SIM118
    return rows


@pytest.mark.parametrize("epoch", [0, 2])
@pytest.mark.parametrize("form", ["of the call", "of the data set"])
def test_fields_with_kinds_are_those_of_the_loader(poses, epoch, form):
    expected = rows_of_loader(poses, epoch, transform=TRAIN, seed=9, fields=KINDS)
    if form == "of the call":
        dataset = tlt.Dataset(poses, TRAIN, seed=9, fields=KINDS)
    else:
        wanted = {name: name for name in ("image", "label", *KINDS, "box_labels", "box_index")}
        dataset = tlt.Dataset(tl.open(poses, fields=KINDS), TRAIN, seed=9, fields=wanted)
    dataset.set_epoch(epoch)
    names = ["image", "label", "caption", "angle", "boxes", "box_labels", "box_index"]
    for index in (0, 11, 5):
        sample = dataset[index]
        assert list(sample) == names
        for name, value in sample.items():
            other = expected[index][name]
            if name == "caption":
                assert value == other == f"caption {index}"
            else:
                assert torch.equal(torch.as_tensor(value), other), name
        assert isinstance(sample["angle"], float) and isinstance(sample["label"], int)
    pairs = tlt.Dataset(tl.open(poses, fields=KINDS), TRAIN, seed=9, fields=("image", "caption"))
    pairs.set_epoch(epoch)
    pixels, caption = pairs[-1]
    assert torch.equal(pixels, expected[11]["image"]) and caption == "caption 11"
    plain = tlt.Dataset(tl.open(poses, fields=KINDS), TRAIN, seed=9)
    plain.set_epoch(epoch)
    assert torch.equal(plain[3][0], expected[3]["image"]) and plain._settings is None


def test_kinds_add_to_the_fields_of_a_data_set(poses):
    opened = tl.open(poses, fields=KINDS)
    (batch,) = tl.DataLoader(opened, 12, TRAIN, fields={"raw": tl.Bytes("json")})
    sample = tlt.Dataset(opened, TRAIN, fields={"raw": tl.Bytes("json")})[1]
    of_batches = {"index", "valid", "size"}
    assert set(sample) == set(batch.keys()) - of_batches and sample["raw"] == batch["raw"][1]


@pytest.mark.parametrize("transform", [None, T.RandomHorizontalFlip(1.0)])
def test_fields_go_with_images_in_their_own_sizes(poses, transform):
    plain = tlt.Dataset(poses, transform)
    dataset = tlt.Dataset(tl.open(poses, fields=KINDS), transform, fields=("image", "boxes"))
    for index in (0, 7):
        pixels, boxes = dataset[index]
        assert torch.equal(pixels, plain[index][0]) and pixels.shape[0] == 3
        assert boxes.shape[1] == 4


def test_a_dict_of_transforms_gives_several_images(poses):
    transform = {"weak": [T.Resize((4, 6)), T.ToTensor()], "strong": TRAIN}
    expected = rows_of_loader(poses, 1, transform=transform, seed=3)
    dataset = tlt.Dataset(poses, transform, lambda label: label + 5, seed=3)
    dataset.set_epoch(1)
    for index in (2, 7):
        weak, strong, label = dataset[index]
        assert torch.equal(weak, expected[index]["weak"]) and weak.shape == (3, 4, 6)
        assert torch.equal(strong, expected[index]["strong"]) and label == 4
    batches = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=2)
    assert [len(weak) for weak, _, _ in batches] == [4, 4, 4]


def test_channels_and_labels_are_those_of_the_loader(poses):
    labels = [number % 3 for number in range(12)]
    dataset = tlt.Dataset(poses, T.Resize((4, 4)), channels=1, labels=labels, seed=9)
    expected = rows_of_loader(poses, 0, image_size=4, channels=1, labels=labels)
    assert dataset.targets == labels
    for index in (0, 8):
        pixels, label = dataset[index]
        assert pixels.shape == (1, 4, 4) and label == index % 3
        assert torch.equal(pixels.movedim(0, -1), expected[index]["image"])
    own = tlt.Dataset(poses, channels=1)
    assert own[0][0].shape == (1, HEIGHT, WIDTH)


def test_bad_fields_are_replaced(poses):
    (poses / "s03.json").write_text('{"angle": "steep", "boxes": [], "ids": []}')
    dataset = tlt.Dataset(poses, T.Resize((4, 4)), fields=KINDS, errors="replace")
    with pytest.warns(
        match=r"bad samples are replaced, the first: .* sample 3 .*expected a number"
    ):
        sample = dataset[3]
    assert sample["caption"] != "caption 3"
    with pytest.raises(tl.SampleError, match="sample 3"):
        tlt.Dataset(poses, T.Resize((4, 4)), fields=KINDS)[3]


def test_fields_that_are_refused(poses):
    with pytest.raises(tl.SettingError, match="fields names captions, a sample has image, label"):
        tlt.Dataset(tl.open(poses, fields=KINDS), fields=("image", "captions"))
    with pytest.raises(tl.SettingError, match="labels: the data set is open already"):
        tlt.Dataset(tl.open(poses), labels=[0] * 12)
    with pytest.raises(tl.SettingError, match=r"lable.* did you mean label"):
        tlt.Dataset(poses, fields=("image", "lable"))
    with pytest.raises(TypeError, match=r"'columns': .* pass fields={'json': tl.Bytes\(\)}"):
        tlt.Dataset(poses, columns=["json"])
