"""Windows of tokens against slices of NumPy's arrays."""

from __future__ import annotations

import itertools
import json
import pathlib
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


WRITTEN = pathlib.Path(__file__).parents[3] / "testdata" / "tokens"


@pytest.mark.parametrize("name", ["litdata_array", "litdata_tensor", "mds_several", "mds_bytes"])
def test_files_of_other_libraries_give_their_documents(name):
    expected = json.loads((WRITTEN / "expected.json").read_text())[name]
    column = "tokens" if name == "mds_several" else None
    dtype = "int64" if name == "mds_bytes" else None
    documents = []
    ds = tl.tokens(WRITTEN / name, length=400, documents="pad", dtype=dtype, column=column)
    for batch in tl.DataLoader(ds, batch_size=8):
        for tokens, ends in zip(batch["tokens"].numpy(), batch["cu_seqlens"], strict=True):
            documents.append(tokens[: ends.numpy()[-1]].tolist())
    assert documents == expected["documents"]
    if "blocks" in expected:
        ds = tl.tokens(WRITTEN / name / "index.json", length=17, targets=False)
        loader = tl.DataLoader(ds, batch_size=4, num_workers=2)
        blocks = [row for batch in loader for row in batch["tokens"].numpy().tolist()]
        assert blocks == expected["blocks"]
    # Windows over records cross them.
    ds = tl.tokens(WRITTEN / name, length=13, dtype=dtype, column=column)
    loader = tl.DataLoader(ds, batch_size=4, shuffle=True)
    flat = [token for document in expected["documents"] for token in document]
    text = ",".join(map(str, flat))
    for batch in loader:
        for row in batch["tokens"].numpy().tolist():
            assert ",".join(map(str, row)) in text


def test_lists_of_parquet_files_are_documents(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(5)
    documents = [rng.integers(0, 50_000, rng.integers(1, 30)).tolist() for _ in range(40)]
    columns = {"text": ["a"] * 40, "input_ids": documents, "attention_mask": [[1]] * 40}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet", row_group_size=15)
    settings = {"length": 32, "column": "input_ids"}
    ds = tl.tokens(tmp_path / "a.parquet", documents="pad", **settings)
    batch = next(iter(tl.DataLoader(ds, batch_size=40)))
    for row, document in zip(batch["tokens"].numpy(), documents, strict=True):
        assert row[: len(document)].tolist() == document
    flat = [token for document in documents for token in document]
    windows = next(iter(tl.DataLoader(tl.tokens(tmp_path / "a.parquet", **settings), batch_size=5)))
    for number, row in enumerate(windows["tokens"].numpy()):
        assert row.tolist() == flat[32 * number : 32 * number + 32]
    # Of several columns that of tokenizers is taken.
    ds = tl.tokens(tmp_path / "a.parquet", length=32)
    assert ds[0]["tokens"].tolist() == flat[:32]
    columns["ids"] = columns.pop("input_ids")
    parquet.write_table(pyarrow.table(columns), tmp_path / "b.parquet")
    with pytest.raises(tl.LoaderError, match="the file has attention_mask, ids"):
        tl.tokens(tmp_path / "b.parquet", length=32)


@pytest.mark.parametrize("settings", [{}, {"cache": tl.Cache(memory="1 MB")}])
def test_a_run_of_megatron_continues_in_its_order(settings):
    expected = json.loads((WRITTEN / "expected.json").read_text())["megatron"]["train"]
    prefix = WRITTEN / "megatron" / "train"
    ds = tl.tokens(WRITTEN / "megatron" / "corpus.bin", length=20, order=f"megatron:{prefix}")
    assert len(ds) == len(expected)

    def rows(loader):
        for batch in loader:
            for tokens, last in zip(batch["tokens"].numpy(), batch["targets"].numpy(), strict=True):
                assert (tokens[1:] == last[:-1]).all()
                yield [*tokens.tolist(), int(last[-1])]

    loader = tl.DataLoader(ds, batch_size=4, **settings)
    assert list(rows(loader)) == expected
    # What the two ranks of a run there have consumed is skipped.
    rest = [
        list(
            rows(tl.DataLoader(ds.skip(16), batch_size=4, ranks=tl.Ranks(rank=rank, world_size=2)))
        )
        for rank in range(2)
    ]
    for number, row in enumerate(expected[16:56]):
        assert rest[number // 4 % 2][number // 8 * 4 + number % 4] == row


def test_documents_that_a_token_ends(stored):
    path, values = stored
    end = int(values[500])
    ds = tl.tokens(path, dtype="uint16", length=1000, documents="pad", end_token=end)
    whole = np.split(values, np.flatnonzero(values == end) + 1)
    assert len(ds) == len(whole) > 1
    batch = next(iter(tl.DataLoader(ds, batch_size=len(ds))))
    for tokens, document in zip(batch["tokens"].numpy(), whole, strict=True):
        assert (tokens[: len(document)] == document).all()


def test_files_are_mixed_in_stages_and_resume(tmp_path):
    for name, first in [("a", 0), ("b", 10_000)]:
        (np.arange(1000) + first).astype(np.uint16).tofile(tmp_path / f"{name}.bin")
    a, b = (tl.tokens(tmp_path / f"{name}.bin", dtype="u16", length=10) for name in "ab")

    def loader(stages):
        mixed = tl.mix({a: 3, b: 1}, length=400, stages=stages)
        return tl.DataLoader(mixed, batch_size=8, shuffle=True)

    stages = {160: {a: 1, b: 1}, 240: {a: 0, b: 1}}
    whole = [batch["tokens"].numpy().copy() for batch in loader(stages)]
    of_b = [int((tokens[:, 0] >= 10_000).sum()) for tokens in whole]
    assert [sum(of_b[i:j]) for i, j in [(0, 20), (20, 30), (30, 50)]] == [40, 40, 160]
    # Windows of a part come once before any comes again.
    starts = np.concatenate(whole)[:, 0]
    assert len(set(starts[starts < 10_000][:99])) == 99
    # A run without stages takes them up where they begin, or before it.
    for received, stages_before in [(3, None), (20, None), (25, {160: {a: 1, b: 1}}), (7, stages)]:
        before = loader(stages_before)
        iterator = iter(before)
        for number in range(received):
            np.testing.assert_array_equal(next(iterator)["tokens"].numpy(), whole[number])
        after = loader(stages)
        after.load_state_dict(before.state_dict())
        rest = [batch["tokens"].numpy() for batch in after]
        np.testing.assert_array_equal(rest, whole[received:])
    before = loader(None)
    iterator = iter(before)
    for _ in range(21):
        next(iterator)
    with pytest.raises(tl.LoaderError, match="order"):
        loader(stages).load_state_dict(before.state_dict())


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
    fails("order is 'a', expected 'megatron:PREFIX'", order="a")
    fails("expected the three files of Megatron-LM's order", order="megatron:a")
    fails("token 65536 does not fit u16", documents="pad", end_token=65_536)
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
