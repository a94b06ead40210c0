"""Writes the tokenizers and texts of this folder, and the tokens that Python's `tokenizers` has for them.

Run with `tokenizers` 0.23: python testdata/text/generate.py

The texts are paragraphs of this project's documentation as it was when this script ran first; they are
in texts.jsonl, from which a later run trains the same tokenizers.
"""

import json
import pathlib

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

FOLDER = pathlib.Path(__file__).parent
TEXTS = FOLDER / "texts.jsonl"
VOCABULARY = 600
END = "<|endoftext|>"

# What tokenizers treat in their own ways.
ODD = [
    "",
    " ",
    "\n\n\t",
    "a",
    "na\u00efve caf\u00e9 \u2014 \u4f60\u597d \u0416\u0438\u0437\u043d\u044c \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "e\u0301 \ufb01 \u00bd \u2460 \u1e9b\u0323",
    f"before {END} after",
    "[CLS] [MASK] <s> </s> <unk>",
    "x" * 300,
    "1234567890 3.14159 -7e10 0xff",
    "don't we'll I'VE they're   spaces    \r\n tabs\t\t",
    "\u0000 \u200b \ufeff \u00a0 \u3000",
    "def f(x):\n    return [y**2 for y in x if y != 0]\n",
]


def texts() -> list[str]:
    if TEXTS.exists():
        return [json.loads(line)["text"] for line in TEXTS.read_text().splitlines()]
    docs = FOLDER.parent.parent / "docs"
    found = []
    for page in ("architecture.md", "pipeline/tokens.md", "migration/megatron.md"):
        found += (docs / page).read_text().split("\n\n")[:40]
    found += ODD
    lines = [
        json.dumps({"id": i, "text": text}, ensure_ascii=i % 2 == 0)
        for i, text in enumerate(found)
    ]
    TEXTS.write_text("".join(line + "\n" for line in lines))
    return found


def bpe(corpus: list[str]) -> Tokenizer:
    """As those of GPT-2 and Llama 3."""
    made = Tokenizer(models.BPE(ignore_merges=True))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", special_tokens=[(END, 0)]
    )
    train_bpe(made, corpus)
    return made


def train_bpe(made: Tokenizer, corpus: list[str]) -> None:
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    made.train_from_iterator(corpus, trainer)


# The pattern of Llama 3, whose look-ahead few engines of regular expressions have.
LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def split(corpus: list[str]) -> Tokenizer:
    """As that of Llama 3."""
    made = bpe([])
    parts = [
        pre_tokenizers.Split(Regex(LLAMA), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    made.pre_tokenizer = pre_tokenizers.Sequence(parts)
    train_bpe(made, corpus)
    return made


def wordpiece(corpus: list[str]) -> Tokenizer:
    """As that of BERT."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=special, show_progress=False
    )
    made.train_from_iterator(corpus, trainer)
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def unigram(corpus: list[str]) -> Tokenizer:
    """As that of T5."""
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace("  ", " ")]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY,
        special_tokens=special,
        unk_token="<unk>",
        show_progress=False,
    )
    made.train_from_iterator(corpus, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return made


def main() -> None:
    corpus = texts()
    expected: list[dict[str, list[int]]] = [{} for _ in corpus]
    for train in (bpe, split, wordpiece, unigram):
        name = train.__name__
        path = FOLDER / f"{name}.json"
        if not path.exists():
            train(corpus).save(str(path), pretty=False)
        made = Tokenizer.from_file(str(path))
        for row, text in zip(expected, corpus, strict=True):
            row[name] = made.encode(text, add_special_tokens=False).ids
            if text in ODD:
                row[f"{name}_special"] = made.encode(text).ids
    lines = (json.dumps(row, separators=(",", ":")) + "\n" for row in expected)
    (FOLDER / "expected.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
