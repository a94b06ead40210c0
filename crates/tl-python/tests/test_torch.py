from __future__ import annotations

import multiprocessing

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, image
from turboloader import _draws
from turboloader import transforms as T  # noqa: N812

torch = pytest.importorskip("torch")


def test_tensors_of_torch_share_the_memory(data):
    loader = tl.DataLoader(data, batch_size=8, image_size=(HEIGHT, WIDTH))
    batch = next(iter(loader))
    tensor = batch["image"]
    for shared in (tensor.torch(), torch.from_dlpack(tensor), batch.torch()["image"]):
        assert shared.data_ptr() == tensor.data_ptr()
    tensor.torch()[1, 2, 3] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    assert tensor.numpy()[1, 2, 3].tolist() == [1, 2, 3]
    assert batch["label"].torch().dtype == torch.int64
    assert batch["index"].torch().dtype == torch.int64
    assert batch["valid"].torch().dtype == torch.bool
    kept = tensor.torch()
    del batch, tensor, shared, loader
    np.testing.assert_array_equal(kept[0].numpy(), image(0))


def test_batches_are_of_torch_where_that_is_asked_for(data):
    loader = tl.DataLoader(
        data,
        batch_size=8,
        transform=[T.Resize([6, 10]), T.ToTensor()],
        output_format="torch",
        dtype=torch.bfloat16,
    )
    batch = next(iter(loader))
    assert batch["image"].dtype == torch.bfloat16
    assert batch["image"].shape == (8, 3, 6, 10)
    assert isinstance(batch[0]["image"], torch.Tensor)
    expected = torch.from_numpy(image(0).astype(np.float32)).permute(2, 0, 1) * (1 / 255)
    assert torch.equal(batch["image"][0], expected.to(torch.bfloat16))


class Cropped(torch.utils.data.Dataset):
    """Where a random crop of an image is, as its pixel says, which no other pixel is like."""

    pixels = np.arange(3 << 18).astype(">u4").view(np.uint8).reshape(512, -1, 4)[:, :, 1:]

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return T.RandomCrop(1)(self.pixels).astype(int).ravel() @ [1 << 16, 1 << 8, 1]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_workers_of_torch_draw_each_their_own(monkeypatch):
    def epochs(seed, manual_seed=torch.manual_seed):
        manual_seed(seed)
        context = multiprocessing.get_context("fork")
        loader = torch.utils.data.DataLoader(
            Cropped(), num_workers=2, multiprocessing_context=context
        )
        return [drawn for _ in range(2) for batch in loader for drawn in batch.tolist()]

    # As where nobody has called manual_seed before.
    monkeypatch.setattr(_draws, "draws", _draws.Draws())
    for manual_seed in (torch.manual_seed, T.manual_seed):
        first = epochs(1, manual_seed)
        assert len(set(first)) == 24
        assert epochs(1, manual_seed) == first
        assert not set(epochs(2, manual_seed)) & set(first)


def test_parameters_may_be_tensors():
    mean, std = [0.5, 0.25, 0.125], [0.25, 0.5, 0.5]
    assert T.Normalize(torch.tensor(mean), torch.tensor(std)) == T.Normalize(mean, std)


def test_transforms_keep_the_layout_of_tensors():
    pixels = torch.from_numpy(image(0)).permute(2, 0, 1)
    flipped = T.RandomHorizontalFlip(p=1)(pixels)
    assert torch.equal(flipped, pixels.flip(2))
    assert T.ToTensor()(pixels).shape == (3, HEIGHT, WIDTH)


CASES = [
    "v2.Resize((4, 5))",
    "v2.Resize(4)",
    "v2.CenterCrop((4, 7))",
    "v2.Pad(2, fill=7)",
    "v2.Pad([1, 2, 3, 4], padding_mode='reflect')",
    "v2.RandomInvert(p=1.0)",
    "v2.RandomPosterize(3, p=1.0)",
    "v2.RandomSolarize(100, p=1.0)",
    "v2.RandomAdjustSharpness(2.0, p=1.0)",
    "v2.RandomAutocontrast(p=1.0)",
    "v2.RandomEqualize(p=1.0)",
    "v2.GaussianBlur(3, (1.0, 1.0))",
    "v2.RandomHorizontalFlip(p=1.0)",
    "v2.RandomApply([v2.RandomInvert(p=1.0)], p=1.0)",
    "v2.RandomRotation((30.0, 30.0))",
    "v2.RandomRotation((30.0, 30.0), expand=True)",
    "v2.RandomAffine((10.0, 10.0), shear=(5.0, 5.0), scale=(1.2, 1.2))",
    "v2.Compose([v2.ToImage(), v2.Resize(5), v2.ToDtype(torch.float32, scale=True)])",
    "v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)])",
]


@pytest.mark.parametrize("case", CASES)
def test_what_is_converted_from_torchvision_does_the_same(case):
    v2 = pytest.importorskip("torchvision.transforms.v2")
    theirs = eval(case, {"v2": v2, "torch": torch})
    converted = T.from_torchvision(theirs)
    pixels = torch.from_numpy(image(1, height=20, width=31)).permute(2, 0, 1)
    made = T.recipe(converted, parity="tensor", channels_last=False)
    ours = made.apply(pixels.permute(1, 2, 0).contiguous().numpy().tobytes(), (31, 20), (0, 0, 0))
    difference = (ours.torch().double() - theirs(pixels).double()).abs().max()
    assert difference <= (1 if ours.dtype == "uint8" else 1e-6), difference


def test_every_random_transform_of_torchvision_is_converted():
    v2 = pytest.importorskip("torchvision.transforms.v2")
    for theirs in (
        v2.RandomResizedCrop(8),
        v2.RandomCrop(8, padding=2),
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        v2.RandomErasing(),
        v2.AutoAugment(),
        v2.RandAugment(),
        v2.TrivialAugmentWide(),
        v2.AugMix(),
        v2.RandomPerspective(),
        v2.ElasticTransform(),
        v2.RandomPhotometricDistort(),
        v2.RandomZoomOut(),
        v2.ScaleJitter((8, 8)),
        v2.RandomShortestSize([8]),
        v2.RandomChoice([v2.RandomInvert(), v2.RandomEqualize()]),
        v2.RandomOrder([v2.RandomInvert(), v2.RandomEqualize()]),
        v2.FiveCrop(8),
        v2.TenCrop(8),
        v2.GaussianNoise(),
        v2.RandomGrayscale(),
    ):
        converted = T.from_torchvision(theirs)
        assert type(converted).__name__ == type(theirs).__name__
        assert T.recipe([T.Resize([8, 8]), converted]).to_json()
    with pytest.raises(tl.UnsupportedTransformError, match="Lambda"):
        T.from_torchvision(v2.Compose([v2.Lambda(abs)]))
