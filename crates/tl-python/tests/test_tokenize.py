"""Texts into files of tokens, against Python's `tokenizers` as committed."""

from __future__ import annotations

import gzip
import json
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import turboloader as tl

TEXTS = pathlib.Path(__file__).resolve().parents[3] / "testdata" / "text"
LINES = TEXTS / "texts.jsonl"
BPE = TEXTS / "bpe.json"


def ids(tokenizer):
    """The tokens of each text by Python's `tokenizers`."""
    lines = (TEXTS / "expected.jsonl").read_text().splitlines()
    return [json.loads(line)[tokenizer] for line in lines]


@pytest.mark.parametrize("end_token", ["<|endoftext|>", 0])
def test_files_are_those_of_megatron(tmp_path, end_token):
    output = tmp_path / "corpus.bin"
    seen = []
    made = tl.tokenize(
        LINES,
        output,
        tokenizer=BPE,
        end_token=end_token,
        num_workers=2,
        progress_callback=lambda *step: seen.append(step),
    )
    assert made == {"documents": 101, "tokens": 10_615, "dtype": "uint16", "skipped": 0}
    assert output.read_bytes() == (TEXTS / "megatron.bin").read_bytes()
    assert output.with_suffix(".idx").read_bytes() == (TEXTS / "megatron.idx").read_bytes()
    size = LINES.stat().st_size
    assert seen[-1] == (size, size)
    rows = tl.tokens(output, length=64, documents="pad")
    expected = ids("bpe")
    assert len(rows) == len(expected)
    assert rows[1]["tokens"][: len(expected[1])].tolist() == expected[1][:64]


def test_raw_tokens_have_the_type_that_is_returned(tmp_path):
    output = tmp_path / "raw.bin"
    made = tl.tokenize([LINES], output, tokenizer=TEXTS / "unigram.json", to="raw")
    expected = ids("unigram")
    stored = np.fromfile(output, made["dtype"])
    np.testing.assert_array_equal(stored, np.concatenate(expected))
    assert not output.with_suffix(".idx").exists()
    assert len(tl.tokens(output, dtype=made["dtype"], length=100)) == (made["tokens"] - 1) // 100


def test_bad_texts_are_errors_or_warnings(tmp_path):
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"text": "a"}\n{"body": "b"}\n')
    output = tmp_path / "a.bin"
    with pytest.raises(tl.exceptions.FormatError, match="line 2, column `text`: no such key"):
        tl.tokenize(lines, output, tokenizer=BPE)
    assert list(tmp_path.iterdir()) == [lines]
    with pytest.warns(UserWarning, match="left out: .*a.jsonl: at byte 14: line 2"):
        made = tl.tokenize(lines, output, tokenizer=BPE, on_error="skip")
    assert (made["documents"], made["skipped"]) == (1, 1)
    with pytest.raises(FileExistsError):
        tl.tokenize(lines, output, tokenizer=BPE, on_error="skip")
    with pytest.raises(tl.exceptions.SettingError, match="no token `nothing`"):
        tl.tokenize(lines, output, tokenizer=BPE, end_token="nothing", overwrite=True)
    with pytest.raises(tl.exceptions.SettingError, match="to"):
        tl.tokenize(lines, output, tokenizer=BPE, to="hdf5")
    with pytest.raises(tl.exceptions.LoaderError, match="not a tokenizer of Hugging Face"):
        tl.tokenize(lines, output, tokenizer=lines, overwrite=True)


def test_an_exception_of_the_callback_ends_the_work(tmp_path):
    def fail(done, total):
        raise KeyError(done)

    with pytest.raises(KeyError):
        tl.tokenize(LINES, tmp_path / "a.bin", tokenizer=BPE, progress_callback=fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "end"), [("bpe", "<|endoftext|>"), ("wordpiece", None)])
def test_texts_give_the_batches_of_the_file_that_tokenize_writes(tmp_path, name, end):
    options = {"tokenizer": TEXTS / f"{name}.json", "end_token": end}
    output = tmp_path / "corpus.bin"
    tl.tokenize(LINES, output, **options)
    rows = {"length": 40, "documents": "pad", "pad": 3, "ignore": 4}
    stored = tl.tokens(output, **rows)
    texts = tl.tokens(LINES, **rows, **options)
    assert len(texts) == len(stored) == 101
    for dtype in ("int64", "int32", "stored"):
        settings = {"batch_size": 8, "shuffle": True, "dtype": dtype}
        ours = tl.DataLoader(texts, num_workers=3, **settings)
        theirs = tl.DataLoader(stored, num_workers=1, **settings)
        for one, other in zip(ours, theirs, strict=True):
            for field in ("tokens", "targets", "positions", "index"):
                np.testing.assert_array_equal(one[field].numpy(), other[field].numpy())
            for one_row, other_row in zip(one["cu_seqlens"], other["cu_seqlens"], strict=True):
                np.testing.assert_array_equal(one_row, other_row)


def test_texts_resume_and_pickle(tmp_path):
    texts = tl.tokens(LINES, length=24, documents="pad", tokenizer=BPE)
    settings = {"batch_size": 8, "shuffle": True, "seed": 3}
    whole = [batch["tokens"].numpy().copy() for batch in tl.DataLoader(texts, **settings)]
    loader = tl.DataLoader(texts, **settings)
    for _batch, _ in zip(loader, range(5), strict=False):
        state = loader.state_dict()
    again = pickle.loads(pickle.dumps(texts))
    loader = tl.DataLoader(again, num_workers=2, **settings)
    loader.load_state_dict(state)
    for one, other in zip(loader, whole[5:], strict=True):
        np.testing.assert_array_equal(one["tokens"].numpy(), other)
    other = tl.DataLoader(
        tl.tokens(LINES, length=24, documents="pad", tokenizer=BPE, end_token=0), **settings
    )
    with pytest.raises(tl.exceptions.StateError):
        other.load_state_dict(state)


def test_lines_open_by_the_index_next_to_them(tmp_path):
    lines = tmp_path / "texts.jsonl"
    lines.write_bytes(LINES.read_bytes())
    options = {"length": 24, "documents": "pad", "tokenizer": BPE}

    def rows(path):
        loader = tl.DataLoader(tl.tokens(path, **options), batch_size=8, shuffle=True, seed=4)
        return [batch["tokens"].numpy().copy() for batch in loader], loader.state_dict()

    expected, state = rows(lines)
    subprocess.run([sys.executable, "-m", "turboloader", "index", str(lines)], check=True)
    index = tmp_path / "texts.jsonl.tlidx"
    for path in (lines, index):
        found, of_index = rows(path)
        np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))
        assert of_index == state
    with pytest.raises(tl.LoaderError, match="read with `--tokens auto --tokenizer"):
        tl.open(index)
    with lines.open("a") as file:
        file.write('{"text": "more"}\n')
    with pytest.raises(tl.LoaderError, match=r"make .*texts.jsonl.tlidx anew with tl index"):
        tl.tokens(lines, **options)
    index.unlink()
    assert len(tl.tokens(lines, **options)) == 102


def test_rows_that_need_all_tokens_are_refused(tmp_path):
    for rows in (
        {},
        {"documents": "best_fit"},
        {"documents": "split"},
        {"documents": "pad", "long": "split"},
    ):
        with pytest.raises(tl.exceptions.SettingError, match="tl tokenize"):
            tl.tokens(LINES, length=24, tokenizer=BPE, **rows)
    packed = tmp_path / "texts.jsonl.gz"
    packed.write_bytes(gzip.compress(LINES.read_bytes()))
    with pytest.raises(tl.exceptions.SettingError, match="unpack it"):
        tl.tokens(packed, length=24, documents="pad", tokenizer=BPE)


def test_texts_without_a_tokenizer_are_refused(tmp_path):
    with pytest.raises(tl.exceptions.SettingError, match="pass its tokenizer"):
        tl.tokens(LINES, length=24)
    with pytest.raises(TypeError, match=r"block_size.*pass length"):
        tl.tokens(LINES, length=24, block_size=24)
    with pytest.raises(tl.LoaderError, match=r"ends with .bin"):
        tl.tokenize(LINES, tmp_path / "corpus", tokenizer=BPE)


def test_bad_texts_are_bad_samples(tmp_path):
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"text": "good"}\n{"text": 7}\n{"text": "also good"}\n')
    texts = tl.tokens(lines, length=4, documents="pad", tokenizer=BPE)
    with pytest.raises(tl.exceptions.FormatError, match=r"sample 1.*line 2, column `text`"):
        list(tl.DataLoader(texts, batch_size=3))
    with pytest.warns(UserWarning, match="bad samples are skipped"):
        batches = list(tl.DataLoader(texts, batch_size=3, errors="skip"))
    assert [batch["index"].tolist() for batch in batches] == [[0, 2]]
    lines.write_text('\n{"text": "good"}\n  \n{"text": 7}')
    texts = tl.tokens(lines, length=4, documents="pad", tokenizer=BPE)
    assert len(texts) == 2
    with pytest.raises(tl.exceptions.FormatError, match="at byte 30: column `text`"):
        list(tl.DataLoader(texts, batch_size=3))


@pytest.mark.parametrize("options", [{"dtype": "uint16"}, {"column": "a"}, {"order": "megatron:x"}])
def test_settings_of_files_do_not_go_with_texts(options):
    with pytest.raises(tl.SettingError, match="is that of files of tokens"):
        tl.tokens(LINES, length=24, documents="pad", tokenizer=BPE, **options)


@pytest.mark.parametrize("options", [{"field": "a"}, {"special_tokens": True}])
def test_settings_of_texts_do_not_go_with_files(tmp_path, options):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(100))
    with pytest.raises(tl.SettingError, match="is that of texts"):
        tl.tokens(path, length=4, dtype="uint16", **options)
    with pytest.raises(tl.SettingError, match="end_token ends documents"):
        tl.tokens(path, length=4, dtype="uint16", end_token=0)
