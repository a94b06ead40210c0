"""Trainers that others wrote: each step gets the samples that the loader has there."""

from __future__ import annotations

import numpy as np
import pytest
import turboloader as tl
from conftest import HEIGHT, WIDTH, image
from turboloader import transforms as T  # noqa: N812

torch = pytest.importorskip("torch")
from turboloader.torch import Dataset, IterableDataset  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

EPOCHS = 2
TRANSFORM = T.Compose([T.Resize([HEIGHT, WIDTH]), T.ToTensor()])
SETTINGS = {"shuffle": True, "transform": TRANSFORM}


class Classifier(torch.nn.Module):
    """Something to train, which keeps the numbers of the samples of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(HEIGHT * WIDTH * 3, 7)
        self.seen: list[list[int]] = []

    def forward(self, pixel_values, labels, index):
        self.seen.append(index.tolist())
        for pixels, number in zip(pixel_values, index.tolist(), strict=True):
            expected = image(number).transpose(2, 0, 1) * np.float32(1 / 255)
            np.testing.assert_array_equal(pixels.numpy(), expected)
        logits = self.layer(pixel_values.flatten(1))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels)}


def steps(data) -> list[list[int]]:
    """The samples of each batch of all epochs."""
    loader = tl.DataLoader(data, 8, **SETTINGS)
    return [batch["index"].numpy().tolist() for _ in range(EPOCHS) for batch in loader]


def batches(data) -> torch.utils.data.DataLoader:
    dataset = IterableDataset(data, 8, fields=("image", "label", "index"), **SETTINGS)
    return torch.utils.data.DataLoader(dataset, batch_size=None)


def module_of(lightning):
    """Return a module that trains on tuples, and on batches of a loader of ours."""

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Classifier()

        def training_step(self, batch, number):
            if not isinstance(batch, (tuple, list)):
                batch = (batch["image"], batch["label"], batch["index"])
            return self.model(*batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    return Module()


def test_lightning(data, tmp_path):
    lightning = pytest.importorskip("lightning")

    module = module_of(lightning)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, batches(data))
    assert module.model.seen == steps(data)


def test_lightning_resumes_in_the_middle_of_an_epoch(data, tmp_path):
    lightning = pytest.importorskip("lightning")

    def fit(folder, steps, checkpoint=None):
        module = module_of(lightning)
        trainer = lightning.Trainer(
            max_epochs=EPOCHS,
            max_steps=steps,
            accelerator="cpu",
            logger=False,
            callbacks=[lightning.pytorch.callbacks.ModelCheckpoint(folder, every_n_train_steps=4)],
            enable_model_summary=False,
            enable_progress_bar=False,
            default_root_dir=folder,
        )
        loader = tl.DataLoader(data, 8, output_format="torch", **SETTINGS)
        trainer.fit(module, loader, ckpt_path=checkpoint)
        return module.model.seen

    expected = steps(data)
    assert fit(tmp_path / "whole", -1) == expected
    # 13 steps an epoch: within the first and the second.
    for stop in (4, 16):
        folder = tmp_path / str(stop)
        assert fit(folder, stop) == expected[:stop]
        (checkpoint,) = folder.glob("*.ckpt")
        assert fit(tmp_path / f"{stop} resumed", -1, checkpoint) == expected[stop:]


def test_accelerate(data):
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    prepared, optimizer, loader = accelerator.prepare(model, optimizer, batches(data))
    for _ in range(EPOCHS):
        for batch in loader:
            accelerator.backward(prepared(*batch)["loss"])
            optimizer.step()
            optimizer.zero_grad()
    assert model.seen == steps(data)


def test_transformers(data, tmp_path):
    transformers = pytest.importorskip("transformers")
    fields = {"pixel_values": "image", "labels": "label", "index": "index"}
    model = Classifier()
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=8,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )
    dataset = Dataset(data, TRANSFORM, fields=fields)
    transformers.Trainer(model, arguments, train_dataset=dataset).train()
    # In the order of the trainer's own sampler, each once an epoch.
    numbers = [number for step in model.seen for number in step]
    assert sorted(numbers[:100]) == sorted(numbers[100:]) == list(range(100))
