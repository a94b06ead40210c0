//! Texts: their tokens are those of Python's `tokenizers`, their files those of Megatron-LM.

use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tbl_io::{ConvertError, Location, ReadError, SampleSource, Source, Stores, TokensDefect};
use tl_tokens::{
    DocumentRows, Fill, Long, OnBadText, TextInput, TextOptions, TokenFile, TokenOptions,
    TokenSource, TokenTarget, TokenType, Tokenize, TokenizeEvent, TokenizeSummary, Tokenizer,
};

pub(crate) fn data(name: &str) -> PathBuf {
    tl_testdata::shipped!("text").join(name)
}

pub(crate) fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::open(&Source::open(data(&format!("{name}.json"))).unwrap()).unwrap()
}

pub(crate) fn lines(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(data(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    let ids = value.as_array().unwrap().iter();
    ids.map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

/// The tokens of a file of 16 bits.
fn stored(path: &Path) -> Vec<u32> {
    let bytes = fs::read(path).unwrap();
    bytes.chunks_exact(2).map(|token| u16::from_le_bytes([token[0], token[1]]).into()).collect()
}

/// Writes the tokens of `inputs` to `output`, and returns the messages of texts that are left out.
fn run(
    job: &Tokenize<'_>,
    inputs: &[PathBuf],
    output: &Path,
) -> (Result<TokenizeSummary, ConvertError>, Vec<String>) {
    let inputs: Vec<Location> = inputs.iter().map(Location::new).collect();
    let mut skipped = Vec::new();
    let mut last = 0;
    let result = job.run(&Stores::new(), &inputs, output, &mut |event| {
        match event {
            TokenizeEvent::Skipped(error) => skipped.push(error.to_string()),
            TokenizeEvent::Progress { bytes, of } => {
                assert!(last <= bytes && bytes <= of, "{last} {bytes} {of}");
                last = bytes;
            }
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    });
    (result, skipped)
}

fn done(job: &Tokenize<'_>, inputs: &[PathBuf], output: &Path) -> TokenizeSummary {
    run(job, inputs, output).0.unwrap()
}

fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[test]
fn tokens_are_those_of_pythons_tokenizers() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["bpe", "split", "wordpiece", "unigram"] {
        let tokenizer = tokenizer(name);
        assert_eq!(tokenizer.vocabulary(), 600, "{name}");
        for special_tokens in [false, true] {
            let key = if special_tokens { format!("{name}_special") } else { name.to_owned() };
            for (number, row) in lines("expected.jsonl").iter().enumerate() {
                let Some(expected) = row.get(&key) else { continue };
                let text = &lines("texts.jsonl")[number];
                let input = folder.path().join("one.jsonl");
                fs::write(&input, format!("{text}\n")).unwrap();
                let text = TextOptions { special_tokens, ..TextOptions::default() };
                let to = TokenTarget::Raw;
                let job = Tokenize { text, to, ..Tokenize::new(&tokenizer) };
                let job = Tokenize { placement: replacing(), ..job };
                let output = folder.path().join("one.bin");
                done(&job, &[input], &output);
                assert_eq!(stored(&output), ids(expected), "{key}: text {number}");
            }
        }
    }
}

fn replacing() -> tbl_io::Placement {
    tbl_io::Placement { overwrite: true, sync: false }
}

#[test]
fn the_files_are_those_of_megatron_for_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = tokenizer("bpe");
    let end_token = tokenizer.token("<|endoftext|>").ok();
    assert_eq!((end_token, tokenizer.token("599").ok()), (Some(0), Some(599)));
    // A token is called "0", too.
    assert_eq!((tokenizer.token("0").ok(), tokenizer.token("600").ok()), (Some(0), None));
    let text = TextOptions { end_token, ..TextOptions::default() };
    let job = Tokenize { text, placement: replacing(), ..Tokenize::new(&tokenizer) };
    let output = folder.path().join("corpus_text_document.bin");
    for count in [1, 2, 7] {
        let job = Tokenize { workers: workers(count), ..job.clone() };
        let summary = done(&job, &[data("texts.jsonl")], &output);
        assert_eq!((summary.documents, summary.tokens), (101, 10_615));
        assert_eq!((summary.number, summary.files, summary.bytes), (TokenType::U16, 1, 23_292));
        for extension in ["bin", "idx"] {
            let ours = fs::read(output.with_extension(extension)).unwrap();
            let theirs = fs::read(data(&format!("megatron.{extension}"))).unwrap();
            assert!(ours == theirs, "{extension}, {count} threads");
        }
    }
}

/// Many lines, so that there are several blocks, some longer than one.
fn corpus() -> (String, usize) {
    let texts = lines("texts.jsonl");
    let mut corpus = String::new();
    for round in 0..20 {
        for text in &texts {
            corpus.push_str(&text.to_string());
            corpus.push_str(if round % 2 == 0 { "\r\n" } else { "\n\n" });
        }
    }
    let long = "many words ".repeat(30_000);
    corpus.push_str(&format!("{{\"text\": \"{long}\"}}"));
    (corpus, 20 * texts.len() + 1)
}

#[test]
fn blocks_threads_and_compression_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (corpus, documents) = corpus();
    fs::write(path("a.jsonl"), &corpus).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(corpus.as_bytes()).unwrap();
    let zipped = gzip.finish().unwrap();
    fs::write(path("a.jsonl.gz"), &zipped).unwrap();
    fs::write(path("a.jsonl.zst"), zstd::encode_all(corpus.as_bytes(), 1).unwrap()).unwrap();
    let tokenizer = tokenizer("bpe");
    let mut first = None;
    for (input, count) in [("a.jsonl", 1), ("a.jsonl", 5), ("a.jsonl.gz", 3), ("a.jsonl.zst", 2)] {
        let job = Tokenize { workers: workers(count), ..Tokenize::new(&tokenizer) };
        let output = path(&format!("{input}-{count}.bin"));
        let summary = done(&job, &[path(input)], &output);
        assert_eq!(summary.documents, documents as u64, "{input}");
        let files = ["bin", "idx"].map(|end| fs::read(output.with_extension(end)).unwrap());
        assert!(*first.get_or_insert(files.clone()) == files, "{input}, {count} threads");
    }
    let (line, offset) = (corpus.matches('\n').count() + 2, corpus.len() + 1);
    fs::write(path("bad.jsonl"), format!("{corpus}\nbad")).unwrap();
    let job = Tokenize { workers: workers(3), ..Tokenize::new(&tokenizer) };
    let (error, _) = run(&job, &[path("bad.jsonl")], &path("bad.bin"));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains(&format!("bad.jsonl: at byte {offset}: line {line}: not JSON")),
        "{error}"
    );
    let cut = path("cut.jsonl.gz");
    fs::write(&cut, &zipped[..zipped.len() / 2]).unwrap();
    let (error, _) = run(&Tokenize::new(&tokenizer), &[cut], &path("cut.bin"));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cut.jsonl.gz: at byte") && error.contains("ends early"), "{error}");
    assert!(!path("cut.bin").exists() && !path("cut.idx").exists());
}

#[test]
fn bad_lines_are_errors_at_their_byte_and_may_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("a.jsonl");
    let long = "y".repeat(300_000);
    let lines = format!(
        "{{\"text\": \"one\"}}\n{{\"text\": 2}}\n\n{{\"text\": \"{long}\"}}\n{{\"text\": \"three\"}}\n\
         nonsense\n{{\"text\": \"four\"}}"
    );
    fs::write(&input, &lines).unwrap();
    let tokenizer = tokenizer("bpe");
    let text = TextOptions { document_bytes: 100_000, ..TextOptions::default() };
    let job = Tokenize { text, to: TokenTarget::Raw, ..Tokenize::new(&tokenizer) };
    let output = folder.path().join("a.bin");
    for count in [1, 3] {
        let job = Tokenize { workers: workers(count), placement: replacing(), ..job.clone() };
        let (error, _) = run(&job, std::slice::from_ref(&input), &output);
        let error = error.unwrap_err();
        let expected = "a.jsonl: at byte 25: line 2, column `text`: invalid type: integer `2`, \
                        expected a string";
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(matches!(error, ConvertError::Read(ReadError::List { .. })));
        assert!(!output.exists());

        let job = Tokenize { on_bad: OnBadText::Skip, ..job };
        let (summary, skipped) = run(&job, std::slice::from_ref(&input), &output);
        let summary = summary.unwrap();
        assert_eq!((summary.documents, summary.skipped), (3, 3));
        let places =
            ["at byte 25: line 2", "at byte 29: line 4: the text has more than 100000", "line 6"];
        for (message, place) in skipped.iter().zip(places) {
            assert!(message.contains(place), "{message}");
        }
        fs::remove_file(&output).unwrap();
    }
}

#[test]
fn files_of_folders_come_in_the_order_of_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("in/b")).unwrap();
    fs::create_dir_all(path("in/.hidden")).unwrap();
    for (name, text) in [
        ("in/b/2.txt", "\u{feff}second file"),
        ("in/a.txt", "first file"),
        ("in/c.jsonl", "{\"text\": \"third\"}\n"),
        ("in/photo.jpg", "no text"),
        ("in/.hidden/d.txt", "hidden"),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let tokenizer = tokenizer("bpe");
    let job = Tokenize { placement: replacing(), ..Tokenize::new(&tokenizer) };
    let summary = done(&job, &[path("in")], &path("folder.bin"));
    assert_eq!((summary.files, summary.left_out, summary.documents), (3, 1, 3));
    let one = path("one.jsonl");
    let texts =
        ["first file", "second file", "third"].map(|text| format!("{{\"text\":\"{text}\"}}\n"));
    fs::write(&one, texts.concat()).unwrap();
    done(&job, &[one], &path("lines.bin"));
    for extension in ["bin", "idx"] {
        let read = |name: &str| fs::read(path(name).with_extension(extension)).unwrap();
        assert!(read("folder.bin") == read("lines.bin"), "{extension}");
    }
    fs::write(path("in/a.txt"), b"not \xff").unwrap();
    let (error, _) = run(&job, &[path("in")], &path("bad.bin"));
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("a.txt: at byte 4: not UTF-8, expected a text"), "{error}");
}

#[test]
fn outputs_are_complete_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let tokenizer = tokenizer("bpe");
    let job = Tokenize::new(&tokenizer);
    let input = [data("texts.jsonl")];
    done(&job, &input, &path("a.bin"));
    let before = ["bin", "idx"].map(|end| fs::read(path("a").with_extension(end)).unwrap());
    let (error, _) = run(&job, &input, &path("a.bin"));
    assert!(error.unwrap_err().to_string().contains("exists already"));
    let after = ["bin", "idx"].map(|end| fs::read(path("a").with_extension(end)).unwrap());
    assert!(before == after);

    let inputs = [Location::new(data("texts.jsonl"))];
    let stopped = job.run(&Stores::new(), &inputs, &path("b.bin"), &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(ConvertError::Stopped)));
    let (error, _) = run(&job, &[path("missing.jsonl")], &path("c.bin"));
    assert!(error.unwrap_err().to_string().contains("missing.jsonl"));
    let (error, _) = run(&job, &input, &path("d.idx"));
    assert!(error.unwrap_err().to_string().contains("ends with .bin"));
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.bin", "a.idx"]);
}

#[test]
fn types_follow_from_the_vocabulary() {
    for (vocabulary, megatron, raw) in [
        (600, TokenType::U16, TokenType::U16),
        (65_499, TokenType::U16, TokenType::U16),
        (65_500, TokenType::I32, TokenType::U16),
        (65_536, TokenType::I32, TokenType::U16),
        (65_537, TokenType::I32, TokenType::U32),
    ] {
        assert_eq!(TokenTarget::Megatron.number(vocabulary), megatron, "{vocabulary}");
        assert_eq!(TokenTarget::Raw.number(vocabulary), raw, "{vocabulary}");
    }
}

#[test]
fn truncation_and_padding_of_a_tokenizer_are_off() {
    let text = fs::read_to_string(data("wordpiece.json")).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["truncation"] = serde_json::json!({
        "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0
    });
    json["padding"] = serde_json::json!({
        "strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "[PAD]"
    });
    let folder = tempfile::tempdir().unwrap();
    let source = Source::from_bytes("cut.json", json.to_string().into_bytes());
    for (number, tokenizer) in
        [Tokenizer::open(&source).unwrap(), tokenizer("wordpiece")].iter().enumerate()
    {
        let output = folder.path().join(format!("{number}.bin"));
        done(&Tokenize::new(tokenizer), &[data("texts.jsonl")], &output);
    }
    for name in ["0.bin", "0.idx"] {
        let read = |name: String| fs::read(folder.path().join(name)).unwrap();
        assert!(read(name.to_owned()) == read(name.replace('0', "1")), "{name}");
    }
}

#[test]
fn other_files_are_no_tokenizers() {
    let error = |bytes: &[u8]| {
        let source = Source::from_bytes("t.json", bytes.to_vec());
        Tokenizer::open(&source).unwrap_err().to_string()
    };
    for bytes in
        [&b""[..], b"{}", b"[1]", b"{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\"}}"]
    {
        let error = error(bytes);
        assert!(
            error.starts_with("t.json: at byte 0: not a tokenizer of Hugging Face ("),
            "{error}"
        );
        assert!(error.ends_with("expected a tokenizer.json"), "{error}");
    }
}

/// Texts as documents of at most `length` tokens.
fn documents(source: Source, length: u32, long: Long) -> Result<TokenSource, ReadError> {
    let tokenizer = Arc::new(tokenizer("bpe"));
    let text = Some(TextInput { tokenizer, options: TextOptions::default() });
    let options = TokenOptions { text, ..TokenOptions::default() };
    let length = length.try_into().unwrap();
    let rows = DocumentRows { length, targets: true, long, fill: Fill::default() };
    let file = TokenFile::open(&Stores::new(), source, &options)?;
    TokenSource::new(file, tl_tokens::Sequences::Documents(rows))
}

#[test]
fn lines_are_documents_without_a_pass_over_their_tokens() {
    let source = documents(Source::open(data("texts.jsonl")).unwrap(), 50, Long::Truncate).unwrap();
    assert_eq!(source.sample_count(), 101);
    let mut bytes = Vec::new();
    for (number, row) in lines("expected.jsonl").iter().enumerate() {
        let expected = ids(&row["bpe"]);
        let piece = source.read_text(number as u64, &mut bytes).unwrap().unwrap();
        let all: Vec<u32> =
            bytes.chunks_exact(2).map(|id| u16::from_le_bytes([id[0], id[1]]).into()).collect();
        assert_eq!(all, expected);
        let count = expected.len().min(50);
        assert_eq!((piece.count, piece.continues), (count as u64, count < expected.len()));
        source.read_into(number as u64, &mut bytes).unwrap();
        assert_eq!(bytes.len(), 2 * count);
    }
    let error = source.read_text(101, &mut bytes).unwrap_err();
    assert!(matches!(error, ReadError::SampleOutOfRange { index: 101, sample_count: 101, .. }));
}

#[test]
fn lines_of_spaces_are_no_documents_and_every_end_of_a_file_is_one() {
    let texts = ["a", "b\\nc", "d"];
    for (separator, end) in [("\n", ""), ("\n", "\n"), ("\r\n \n", "\n\n"), ("\n\t\n\n", " ")] {
        let texts = texts.map(|text| format!("{{\"text\": \"{text}\"}}"));
        let file = format!("\n{}{end}", texts.join(separator));
        let source = Source::from_bytes("a.jsonl", file.clone().into_bytes());
        let source = documents(source, 8, Long::Truncate).unwrap();
        assert_eq!(source.sample_count(), 3, "{file:?}");
        for (number, text) in texts.iter().enumerate() {
            let offset = source.facts(number as u64).unwrap().offset;
            assert_eq!(offset as usize, file.find(text).unwrap(), "{file:?}");
        }
    }
    assert_eq!(
        documents(Source::from_bytes("a.jsonl", vec![]), 8, Long::Truncate).unwrap().sample_count(),
        0
    );
}

#[test]
fn long_documents_and_rows_that_need_all_lengths_are_refused() {
    let open = || Source::open(data("texts.jsonl")).unwrap();
    let error = documents(open(), 5, Long::Split).unwrap_err();
    assert!(matches!(error, ReadError::Tokens { source: TokensDefect::TextRows, .. }));
    let source = documents(open(), 5, Long::Error).unwrap();
    let error = source.read_text(1, &mut Vec::new()).unwrap_err();
    let ReadError::Tokens { offset, source, .. } = error else { panic!("{error}") };
    assert!(matches!(source, TokensDefect::Long { document: 1, most: 5, .. }), "{source}");
    assert_eq!(offset, lines("texts.jsonl")[0].to_string().len() as u64 + 4);
}
