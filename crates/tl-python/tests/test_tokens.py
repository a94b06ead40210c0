"""Windows of tokens against slices of NumPy's arrays."""

from __future__ import annotations

import itertools
import pickle
import struct

import numpy as np
import pytest
import turboloader as tl

LENGTH = 16
COUNT = 1000


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A file of raw tokens, and the tokens."""
    values = (np.arange(COUNT) * 40_503 % 65_536).astype(np.uint16)
    path = tmp_path_factory.mktemp("tokens") / "corpus.bin"
    values.tofile(path)
    return path, values


def windows(values, stride=LENGTH, targets=True):
    """All windows with the token after each, as NumPy cuts them."""
    span = LENGTH + targets
    starts = range(0, len(values) - span + 1, stride)
    return np.array([values[start : start + span] for start in starts], dtype=np.int64)


@pytest.mark.parametrize("form", ["tensor", "numpy", "torch"])
@pytest.mark.parametrize("stride", [None, 5])
def test_batches_are_slices(stored, form, stride):
    if form == "torch":
        pytest.importorskip("torch")
    path, values = stored
    ds = tl.tokens(path, dtype="uint16", length=LENGTH, stride=stride)
    expected = windows(values, stride or LENGTH)
    assert len(ds) == len(expected)
    loader = tl.DataLoader(ds, batch_size=7, shuffle=True, output_format=form)
    seen = []
    for batch in loader:
        assert list(batch.keys()) == ["tokens", "targets", "index", "valid"]
        tokens, targets = np.asarray(batch["tokens"]), np.asarray(batch["targets"])
        index = np.asarray(batch["index"])
        assert tokens.dtype == np.int64 and tokens.shape == (len(batch), LENGTH)
        np.testing.assert_array_equal(tokens, expected[index, :-1])
        np.testing.assert_array_equal(targets, expected[index, 1:])
        seen.extend(index.tolist())
    assert sorted(seen) == list(range(len(expected))) and seen != sorted(seen)


def test_tokens_and_targets_share_memory_and_can_be_written(stored):
    torch = pytest.importorskip("torch")
    ds = tl.tokens(stored[0], dtype="uint16", length=LENGTH)
    batch = next(iter(tl.DataLoader(ds, batch_size=3, output_format="torch")))
    tokens, targets = batch["tokens"], batch["targets"]
    assert tokens.stride() == targets.stride() == (LENGTH + 1, 1)
    assert targets.data_ptr() == tokens.data_ptr() + 8
    targets[0, 0] = -100
    assert tokens[0, 1] == -100
    embedding = torch.nn.Embedding(1 << 16, 4)
    loss = torch.nn.functional.cross_entropy(
        torch.zeros(tokens.numel(), 2), (targets % 2).reshape(-1)
    )
    assert embedding(tokens.clamp(min=0)).shape == (3, LENGTH, 4)
    assert float(loss) == pytest.approx(np.log(2))


def test_one_row_and_other_types(stored):
    path, values = stored
    ds = tl.tokens(str(path), dtype=np.uint16, length=LENGTH, targets=False)
    expected = windows(values, targets=False)
    for dtype, name in [("int32", "int32"), (np.int64, "int64"), ("stored", "uint16")]:
        loader = tl.DataLoader(ds, batch_size=1, dtype=dtype)
        batch = next(iter(loader))
        assert batch["tokens"].dtype == name and "targets" not in batch
        np.testing.assert_array_equal(batch["tokens"].numpy(), expected[:1])
    row = tl.tokens(path, dtype="u16", length=LENGTH)[2]
    np.testing.assert_array_equal(row["tokens"], windows(values)[2, :-1])
    np.testing.assert_array_equal(row["targets"], windows(values)[2, 1:])


def test_the_offset_differs_from_epoch_to_epoch_if_it_is_random(stored):
    path, values = stored
    ds = tl.tokens(path, dtype="uint16", length=LENGTH, offset="random")
    loader = tl.DataLoader(ds, batch_size=len(ds))
    firsts = set()
    for _ in range(12):
        tokens = next(iter(loader))["tokens"].numpy()
        first = int(np.flatnonzero(values == tokens[0, 0])[0])
        firsts.add(first)
        np.testing.assert_array_equal(tokens.reshape(-1), values[first : first + tokens.size])
    assert len(firsts) > 6 and max(firsts) < LENGTH


def test_a_loader_resumes_where_it_was(stored):
    ds = tl.tokens(stored[0], dtype="uint16", length=LENGTH, offset="random")

    def loader():
        return tl.DataLoader(ds, batch_size=4, shuffle=True, drop_last=True)

    whole = [batch["tokens"].numpy().copy() for batch in loader()]
    first = loader()
    iterator = iter(first)
    for _ in range(5):
        next(iterator)
    state = first.state_dict()
    second = pickle.loads(pickle.dumps(loader()))
    second.load_state_dict(state)
    rest = [batch["tokens"].numpy().copy() for batch in second]
    np.testing.assert_array_equal(np.array(rest), np.array(whole[5:]))


def test_views_select_windows(stored):
    path, values = stored
    ds = tl.tokens(path, dtype="uint16", length=LENGTH)
    train, val = ds.split(0.9, 0.1, seed=1)
    assert len(train) + len(val) == len(ds)
    both = sorted(train.indices.tolist() + val.indices.tolist())
    assert both == list(range(len(ds)))
    batch = next(iter(tl.DataLoader(ds[3:5], batch_size=8)))
    np.testing.assert_array_equal(batch["tokens"].numpy(), windows(values)[3:5, :-1])


def test_each_format_gives_its_tokens(tmp_path):
    values = np.arange(50, dtype=np.uint16)
    header = np.zeros(256, dtype=np.int32)
    header[:3] = [20240520, 1, len(values)]
    (tmp_path / "llm.bin").write_bytes(header.tobytes() + values.tobytes())
    np.save(tmp_path / "a.npy", values.astype(np.int32))
    values.tofile(tmp_path / "meg.bin")
    lengths = np.array([20, 30], dtype=np.int32)
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 2, 3) + lengths.tobytes()
    index += np.array([0, 40, 0, 1, 2], dtype=np.int64).tobytes()
    (tmp_path / "meg.idx").write_bytes(index)
    head = b'{"ids": {"dtype": "I64", "shape": [50], "data_offsets": [0, 400]}}'
    data = struct.pack("<Q", len(head)) + head + values.astype(np.int64).tobytes()
    (tmp_path / "a.safetensors").write_bytes(data)
    expected = windows(values)
    for name in ["llm.bin", "a.npy", "meg.bin", "meg.idx", "a.safetensors"]:
        ds = tl.tokens(tmp_path / name, length=LENGTH)
        batch = next(iter(tl.DataLoader(ds, batch_size=9)))
        np.testing.assert_array_equal(batch["tokens"].numpy(), expected[:, :-1], err_msg=name)
    two = tl.tokens([tmp_path / "llm.bin", tmp_path / "meg.bin"], length=LENGTH)
    assert len(two) == 2 * len(expected)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Documents in the files of Megatron-LM: the paths, and each document."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(0, 24, 60).astype(np.int32)
    values = rng.integers(1, 1 << 16, lengths.sum()).astype(np.uint16)
    path = tmp_path_factory.mktemp("documents") / "corpus_text_document.bin"
    values.tofile(path)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), 1) + lengths.tobytes()
    index += (2 * starts[:-1]).astype(np.int64).tobytes() + np.zeros(1, np.int64).tobytes()
    path.with_suffix(".idx").write_bytes(index)
    return path, [values[a:b] for a, b in itertools.pairwise(starts)]


@pytest.mark.parametrize("documents", ["pad", "best_fit", "first_fit", "split"])
@pytest.mark.parametrize("long", ["truncate", "split"])
def test_every_document_is_in_its_rows_once(corpus, documents, long):
    path, expected = corpus
    ds = tl.tokens(path, length=LENGTH, documents=documents, long=long, window=25, pad=7)
    loader = tl.DataLoader(ds, batch_size=5, shuffle=True)
    pieces, rows = [], 0
    for batch in loader:
        names = ["tokens", "targets", "positions", "cu_seqlens", "index", "valid"]
        assert list(batch.keys()) == names
        rows += len(batch)
        fields = [batch[name].numpy() for name in names[:3]]
        for tokens, targets, positions, ends in zip(*fields, batch["cu_seqlens"], strict=True):
            ends = ends.numpy()
            assert ends.dtype == np.int32 and ends[0] == 0 and positions.dtype == np.int32
            for start, end in itertools.pairwise(ends):
                if start == end:  # A document without tokens has a row of its own.
                    continue
                assert (positions[start:end] == np.arange(end - start)).all()
                assert (targets[start : end - 1] == tokens[start + 1 : end]).all()
                pieces.append((tokens[start:end].tolist(), int(targets[end - 1])))
            assert (tokens[ends[-1] :] == 7).all() and (targets[ends[-1] :] == -100).all()
            assert (positions[ends[-1] :] == 0).all()
    assert rows == len(ds)
    if documents == "pad" and long == "truncate":
        assert rows == len(expected)
    # The target of a piece's last token is the next token of its document, if there is one.
    ends = [target for _, target in pieces if target == -100]
    if long == "truncate" and documents != "split":
        found = sorted(tokens for tokens, _ in pieces)
        assert found == sorted(d[:LENGTH].tolist() for d in expected if len(d))
        assert len([d for d in expected if 0 < len(d) <= LENGTH]) == len(ends)
    else:
        found = sorted(token for tokens, _ in pieces for token in tokens)
        assert found == sorted(token for d in expected for token in d.tolist())
        assert len([d for d in expected if len(d)]) == len(ends)


def test_attention_within_documents_is_attention_with_a_block_mask(corpus):
    torch = pytest.importorskip("torch")
    ds = tl.tokens(corpus[0], length=LENGTH, documents="best_fit")
    batch = next(iter(tl.DataLoader(ds, batch_size=4, output_format="torch")))
    x = torch.nn.functional.one_hot(batch["tokens"] % 8, 8).float()[:, None]
    document = torch.full(batch["tokens"].shape, -1)
    for row, ends in enumerate(batch["cu_seqlens"]):
        for number, (start, end) in enumerate(itertools.pairwise(ends)):
            document[row, start:end] = number
    attention = torch.nn.functional.scaled_dot_product_attention
    mask = (document[:, :, None] == document[:, None, :])[:, None]
    whole = attention(x, x, x, attn_mask=mask.tril())
    for row, ends in enumerate(batch["cu_seqlens"]):
        for start, end in itertools.pairwise(ends):
            part = x[row : row + 1, :, start:end]
            alone = attention(part, part, part, is_causal=True)
            torch.testing.assert_close(whole[row : row + 1, :, start:end], alone)


def test_packed_rows_resume_and_are_fewer(corpus):
    def loader(documents):
        ds = tl.tokens(corpus[0], length=LENGTH, documents=documents, long="split")
        return tl.DataLoader(ds, batch_size=3, shuffle=True, tail="pad")

    counts = {name: len(loader(name)) for name in ("pad", "first_fit", "best_fit", "split")}
    assert counts["split"] <= counts["best_fit"] <= counts["pad"]
    whole = [batch["tokens"].numpy().copy() for batch in loader("best_fit")]
    first = loader("best_fit")
    iterator = iter(first)
    next(iterator)
    second = loader("best_fit")
    second.load_state_dict(first.state_dict())
    np.testing.assert_array_equal([b["tokens"].numpy() for b in second], whole[1:])
    with pytest.raises(tl.LoaderError, match="data set"):
        loader("first_fit").load_state_dict(first.state_dict())


def test_mistakes_are_named(stored, tmp_path, photos):
    path, _ = stored

    def fails(expected, **settings):
        with pytest.raises(tl.LoaderError, match=expected):
            tl.tokens(path, **{"length": 8, "dtype": "uint16", **settings})

    fails("for raw tokens pass their type", dtype=None)
    fails('dtype is "float32", expected one of integers: u8, i8', dtype="float32")
    fails("length is 0, expected a whole number from 1", length=0)
    fails("stride is 0", stride=0)
    fails("no documents: expected a Megatron-LM index", documents="pad")
    fails("documents is all, expected one of pad, best_fit", documents="all")
    fails("stride and offset are those of windows", documents="pad", stride=3)
    fails("offset is often, expected one of none, random", offset="often")
    odd = tmp_path / "odd.bin"
    odd.write_bytes(b"123")
    with pytest.raises(tl.LoaderError, match="at byte 2: 3 bytes are not a whole number"):
        tl.tokens(odd, length=1, dtype="uint16")
    ds = tl.tokens(path, length=8, dtype="uint16")
    for settings, expected in [
        ({"dtype": "float32"}, 'dtype is "float32", expected "int64", "int32" or "stored"'),
        ({"transform": tl.Resize(8)}, "transform: only supported for images, not for tokens"),
        ({"keys": True}, "fields go with samples of files"),
        ({"columns": ["a"]}, "columns"),
    ]:
        with pytest.raises(tl.LoaderError, match=expected):
            tl.DataLoader(ds, **settings)
    with pytest.raises(tl.LoaderError, match="the tokens do not fill one window"):
        tl.DataLoader(tl.tokens(path, length=2000, dtype="uint16"))
    with pytest.raises(tl.LoaderError, match="cannot be joined"):
        tl.concat(ds, tl.open(photos))


def test_the_loader_explains_itself(stored):
    ds = tl.tokens(stored[0], dtype="uint16", length=LENGTH, offset="random")
    assert repr(ds).endswith("corpus.bin', 61 samples)")
    loader = tl.DataLoader(ds, batch_size=4)
    assert "tokens" in repr(loader)
    expected = "16 and their targets, int64, every 16 tokens, from a random offset"
    assert expected in loader.explain()
    assert loader.recipe is None
