"""Files of tokens as data sets: windows for language models.

>>> import turboloader as tl
>>> loader = tl.DataLoader(tl.tokens("corpus.bin", dtype="uint16", length=8), batch_size=2)
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from . import _native
from ._advice import advised
from ._checks import check_choice, check_flags, one_or_more, path_list, type_name, whole
from ._huggingface import token_files
from ._paths import absolute, expand, refuse_url, shown
from .dataset import Dataset
from .exceptions import SettingError
from .settings import Store, StoreLike, as_store

__all__ = ["tokenize", "tokens"]

PathLike = str | os.PathLike[str]

# The largest length: windows are counted in 32 bits.
_MOST: Final = (1 << 32) - 1

# The largest text unless another one is allowed: 64 MiB.
_TEXT: Final = 64 << 20


@advised
def tokens(
    path: PathLike | Sequence[PathLike] | Any,
    *,
    length: int,
    dtype: Any = None,
    targets: bool = True,
    stride: int | None = None,
    offset: Literal["none", "random"] = "none",
    documents: Literal["pad", "best_fit", "first_fit", "split"] | None = None,
    window: int = 100_000,
    long: Literal["truncate", "split", "error"] = "truncate",
    pad: int = 0,
    ignore: int = -100,
    tensor: str | None = None,
    column: str | None = None,
    order: str | None = None,
    tokenizer: PathLike | None = None,
    field: str = "text",
    end_token: str | int | None = None,
    special_tokens: bool = False,
    max_document: int = _TEXT,
    store: StoreLike = None,
) -> Dataset:
    """Open files of tokens, cut into sequences of one length: the samples of the data set.

    Nothing is read but headers, and no list of windows is built, so a corpus of terabytes opens at
    once. Batches of a `DataLoader` have ``tokens`` and ``targets``, the token after each, as
    ``int64`` of shape (batch, length); ``dtype="int32"`` or ``"stored"`` of the loader gives other
    types. The two share memory, so rows are not contiguous: flatten them with ``reshape(-1)``.
    Windows do not cross files; the tokens after the last window of a file are in no batch.

    Parameters
    ----------
    path
        A file, a list of files, or a pattern such as ``"train-*.bin"``: raw tokens, a file of llm.c
        or modded-nanogpt, the ``.bin`` or the ``.idx`` of Megatron-LM, ``.npy``,
        ``.safetensors``, Parquet or Arrow; or the folder or the ``index.json`` of LitData's or
        MosaicML's files, or a folder of ``save_to_disk``. Paths or URLs. Also a
        ``datasets.Dataset`` whose rows are those of its files, in their order.
    length
        The number of tokens in a window.
    dtype
        The type of raw tokens, such as ``"uint16"`` or ``"u16"``, or a type of NumPy's. Files that
        state their type need none.
    targets
        Whether batches have ``targets``; a window then takes one token more of the file.
    stride
        The number of tokens from the start of one window to that of the next; by default
        ``length``.
    offset
        ``"random"`` shifts all windows by a number of tokens that is drawn for each epoch, so that
        epochs cut the corpus in different places.
    documents
        None for windows of the stream, which documents do not end. Otherwise the rows of
        documents: those of an index of Megatron-LM, the items of LitData, samples of MDS, rows of
        Parquet and Arrow, or what ``end_token`` ends. ``"pad"`` for one document per row;
        ``"best_fit"`` or ``"first_fit"`` for as many as fit; ``"split"`` for all in order, cut
        where a row is full.
        Batches also have ``positions``, which count from 0 in each document, and ``cu_seqlens``, a
        list of where documents begin in each row, and the end of the last. The rows are the same
        in every epoch; their order is not.
    window
        The number of adjacent documents that are packed together.
    long
        How to treat documents longer than a row: ``"truncate"`` leaves tokens out, ``"split"``
        makes several pieces, ``"error"`` fails.
    pad
        The token after the last document of a row.
    ignore
        The target after the last document of a row, and of the last token of each document.
    tensor
        The tensor of a safetensors file; by default the only one of one dimension of integers.
    column
        The column of MDS, Parquet and Arrow files that has the tokens; by default the only one of
        integers, or ``input_ids``.
    order
        ``"megatron:PREFIX"`` takes windows in the order that Megatron-LM cached, so that a training
        that began there continues: its files are called ``PREFIX-document_index.npy`` and so on.
        Sample ``i`` is the one that is used as the ``i``-th there; pass ``shuffle=False`` to the
        loader, and skip what was consumed.
    tokenizer
        A ``tokenizer.json``, for files of texts instead of tokens: JSON Lines, Parquet, or one text
        each. Workers tokenize each document when its row is read, so only ``documents="pad"`` is
        possible, without ``long="split"``; other rows need the file that `tokenize` writes. Batches
        are those of that file. Opening reads JSON Lines once, or the index that ``tl index`` wrote
        next to the file, and keeps 8 bytes a line.
    end_token
        With ``tokenizer``: the token that is put after each document, as for `tokenize`. Of files
        of tokens: the number of the token that ends each document, such as GPT-2's 50256, instead
        of an index that they may have; all tokens are read once when the files are opened.
    field, special_tokens, max_document
        With ``tokenizer``: as for `tokenize`.
    store
        A `Store`: how stores that URLs name are read.

    Examples
    --------
    >>> ds = tokens("corpus.bin", dtype="uint16", length=8)
    >>> ds
    Dataset('corpus.bin', 12 samples)
    >>> ds[0]["tokens"][:4], ds[0]["targets"][:4]
    (array([0, 1, 2, 3]), array([1, 2, 3, 4]))
    """
    check_flags(targets=targets)
    check_choice("offset", offset, ("none", "random"))
    check_choice("long", long, ("truncate", "split", "error"))
    if documents is not None:
        check_choice("documents", documents, ("pad", "best_fit", "first_fit", "split"))
        if stride is not None or offset != "none":
            raise SettingError("stride and offset are those of windows: pass documents=None")
    prefix = None if order is None else order.removeprefix("megatron:")
    if prefix is not None and (prefix == order or not prefix):
        raise SettingError(f"order is {order!r}, expected 'megatron:PREFIX'")
    of_files = {"dtype": dtype, "tensor": tensor, "column": column, "order": order}
    of_texts = {"field": field != "text", "special_tokens": special_tokens}
    of_texts["max_document"] = max_document != _TEXT
    for name, value in of_files.items():
        if tokenizer is not None and value is not None:
            raise SettingError(f"{name} is that of files of tokens: with a tokenizer leave it out")
    for name, is_set in of_texts.items():
        if tokenizer is None and is_set:
            raise SettingError(f"{name} is that of texts: pass tokenizer=")
    if tokenizer is None and end_token is not None and documents is None:
        raise SettingError("end_token ends documents: pass documents=, such as 'best_fit'")
    if tokenizer is not None or end_token is None:
        end = None
    elif isinstance(end_token, str):
        raise SettingError(f"end_token is {end_token!r}: names need a tokenizer, pass its number")
    else:
        end = operator.index(end_token)
    if type(path).__module__.partition(".")[0] == "datasets":
        paths, column = token_files(path, column)
        name = f"{len(paths)} sources"
    else:
        paths = [absolute(one) for one in expand(path_list(path, "path"))]
        name = f"{len(paths)} sources"
        if isinstance(path, (str, os.PathLike)):
            name = repr(shown(os.fspath(path)))
    settings = {
        "dtype": None if dtype is None else type_name(dtype),
        "tensor": tensor,
        "column": column,
        "end_token": end,
        "order": None if prefix is None else absolute(prefix),
        "length": one_or_more("length", length, most=_MOST),
        "targets": targets,
        "stride": None if stride is None else one_or_more("stride", stride, most=_MOST),
        "offset": offset,
        "documents": documents,
        "window": one_or_more("window", window, most=_MOST),
        "long": long,
        "pad": operator.index(pad),
        "ignore": operator.index(ignore),
        "text": None
        if tokenizer is None
        else _text(absolute(os.fspath(tokenizer)), field, end_token, special_tokens, max_document),
    }
    return _opened(paths, settings, name, as_store(store))


def _opened(paths: list[str], settings: dict[str, Any], name: str, store: Store | None) -> Dataset:
    made = _native.tokens(paths, settings, store)
    return Dataset(made, _opened, (paths, settings, name, store), name=name)


def tokenize(
    sources: PathLike | Sequence[PathLike],
    destination: PathLike,
    *,
    tokenizer: PathLike,
    field: str = "text",
    end_token: str | int | None = None,
    special_tokens: bool = False,
    to: Literal["megatron", "raw"] = "megatron",
    on_error: Literal["raise", "skip"] = "raise",
    max_document: int = _TEXT,
    num_workers: int = 0,
    overwrite: bool = False,
    sync: bool = True,
    progress_callback: Callable[[int, int], Any] | None = None,
    store: StoreLike = None,
) -> dict[str, Any]:
    """Tokenize texts into a file that `tokens` opens, as ``tl tokenize`` does.

    The result does not depend on the number of threads: documents keep the order of the files and
    of the texts in them. Files have their names only when all is well.

    Parameters
    ----------
    sources
        JSON Lines, Parquet files, other files, which are one text each, or folders of them; ``.gz``
        and ``.zst`` are unpacked on the way. Patterns are expanded. Paths or URLs.
    destination
        The file of tokens on this machine.
    tokenizer
        A ``tokenizer.json`` of Hugging Face, as ``save_pretrained`` of ``transformers`` writes it.
        Its truncation and padding are not applied.
    field
        The key of the text in JSON Lines, or its column.
    end_token
        The token after each document, by its name or number; documents without tokens get none.
    special_tokens
        Whether to have the tokens that the tokenizer puts around a text, such as ``[CLS]``.
    to
        ``"megatron"`` for the ``.bin`` of Megatron-LM with an ``.idx`` of documents next to it,
        ``"raw"`` for tokens alone.
    on_error
        ``"skip"`` leaves out texts that cannot be used, with a warning for the first ten.
    max_document
        The largest text, in bytes.
    num_workers
        The number of threads; 0 for one per core.
    overwrite
        Whether to replace files of these names.
    sync
        Whether to wait until the data is on the disk.
    progress_callback
        Called with the bytes of the files that were read and those of all. An exception ends the
        work.
    store
        A `Store`: how stores that URLs name are read.

    Returns
    -------
    dict
        How many ``documents`` and ``tokens`` were written, the ``dtype`` of the tokens, which
        `tokens` takes for raw ones, and how many texts were ``skipped``.
    """
    refuse_url(destination)
    check_flags(overwrite=overwrite, sync=sync)
    check_choice("to", to, ("megatron", "raw"))
    check_choice("on_error", on_error, ("raise", "skip"))
    settings = {
        "text": _text(tokenizer, field, end_token, special_tokens, max_document),
        "to": to,
        "skip": on_error == "skip",
        "num_workers": whole("num_workers", num_workers),
        "overwrite": overwrite,
        "sync": sync,
    }
    made: dict[str, Any] = _native.tokenize(
        expand(path_list(sources, "sources")),
        os.fspath(destination),
        settings,
        progress_callback=progress_callback,
        stores=as_store(store),
    )
    kind, bits = made["dtype"][0], made["dtype"][1:]
    return made | {"dtype": f"{'uint' if kind == 'u' else 'int'}{bits}"}


def _text(
    tokenizer: PathLike,
    field: str,
    end_token: str | int | None,
    special_tokens: bool,
    max_document: int,
) -> dict[str, Any]:
    """Return the texts and their tokenizer as the native side takes them."""
    check_flags(special_tokens=special_tokens)
    return {
        "tokenizer": os.fspath(tokenizer),
        "field": field,
        "end_token": None if end_token is None else str(end_token),
        "special_tokens": special_tokens,
        "document_bytes": one_or_more("max_document", max_document, most=1 << 30),
    }
