"""Groups of settings."""

import turboloader as tl


def main() -> None:
    cache = tl.Cache(memory="2GB", disk="20GB", folder="cache", decoded=True)
    assert tl.Cache(disk="20GB", blocks=True) != cache
    errors = tl.Errors("replace", at_most=0.01)
    store = tl.Store({"region": "eu-west-1"}, connections=8)
    loader = tl.DataLoader(
        "s3://bucket/train-{000..099}.tar",
        batch_size=64,
        shuffle="block:64x8",
        image_size=(224, 224),
        tail="pad",
        buckets=tl.Buckets(8),
        cache=cache,
        errors=errors,
        memory=tl.Memory("4GB"),
        ranks=tl.Ranks(0, 2),
        store=store,
        seed=None,
        num_workers=4,
    )
    tl.DataLoader(["a.tar", "b.tar"], cache="2GB", errors="skip", memory="1GB", ranks="auto")
    print(loader.cache_stats()["memory"]["hits"], cache.memory, errors.policy, store)
