"""Kinds of fields."""

import numpy as np
import turboloader as tl


def main() -> None:
    fields: dict[str, tl.Field] = {
        "caption": tl.Text("txt"),
        "meta": tl.Json("json"),
        "score": tl.Number("json:/score", dtype=np.float64, missing=-1.0),
        "tags": tl.MultiLabel("json:/tags", classes=["cat", "dog"]),
        "class": tl.Label("cls", classes=["cat", "dog"]),
        "latent": tl.Array("npy", shape=(4, 8)),
        "raw": tl.Bytes("bin"),
        "depth": tl.Image("depth.png"),
        "mask": tl.Mask("seg.png", dtype="int64", padding=255),
        "boxes": tl.Boxes("json:/objects/*/bbox", labels="/objects/*/id", format="xywh"),
    }
    for batch in tl.DataLoader("a.tar", 8, image_size=224, fields=fields):
        mask = batch["mask"]
        print(mask.shape, batch["boxes"][0], batch["score"].tolist())
    dataset = tl.open("a.tar", fields=fields).with_fields({"more": tl.Text("md")})
    kinds: dict[str, tl.Field] = dataset.fields
    print(kinds["caption"].source)
