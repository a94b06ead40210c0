//! Orders that Megatron-LM cached, against the samples that its `GPTDataset` returned
//! (`testdata/tools/token_files.py`).

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use tbl_io::{ReadError, SampleSource, Stores, TokensDefect};
use tl_tokens::{
    EpochOffset, Sequences, TokenOptions, TokenSource, TokenType, Windows, open_all_in,
};

use crate::containers::{expected, numbers, testdata, tokens_of};

fn windows(targets: bool) -> Windows {
    Windows { targets, ..Windows::new(NonZeroU32::new(20).unwrap()) }
}

fn open(
    files: &[&Path],
    order: &Path,
    sequences: Sequences,
) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    let order = Some(order.as_os_str().to_owned());
    let options = TokenOptions { order, ..TokenOptions::default() };
    open_all_in(&Stores::new(), files, &options, sequences, |_, _| Ok(None))
}

#[test]
fn windows_and_order_are_those_of_megatrons_data_set() {
    let folder = testdata().join("megatron");
    let corpus = folder.join("corpus.bin");
    for (name, targets) in [("train", true), ("valid", true), ("rows", false)] {
        let samples = expected("megatron")[name].as_array().unwrap().clone();
        for order in [folder.join(name), folder.join(format!("{name}-sample_index.npy"))] {
            let sources = open(&[&corpus], &order, windows(targets).into()).unwrap();
            let source = TokenSource::of(&*sources[0]).unwrap();
            assert_eq!(source.sample_count(), samples.len() as u64);
            for (index, sample) in (0..).zip(&samples) {
                assert_eq!(tokens_of(source, index).unwrap(), numbers(sample), "{name} {index}");
            }
        }
    }
    // The last epoch of training is shuffled by itself.
    assert!(expected("megatron")["train"].as_array().unwrap().len() >= 60);
}

#[test]
fn orders_of_other_data_are_named() {
    let folder = testdata().join("megatron");
    let corpus = folder.join("corpus.bin");
    let check = |result: Result<Vec<Box<dyn SampleSource>>, ReadError>, expected: &str| {
        let error = result.and_then(|sources| tokens_of(TokenSource::of(&*sources[0]).unwrap(), 0));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let train = folder.join("train");
    let other = Windows { targets: true, ..Windows::new(NonZeroU32::new(16).unwrap()) };
    check(open(&[&corpus], &train, other.into()), "tokens, expected the 17 of a window: the order");
    let longer = Windows { targets: false, ..Windows::new(NonZeroU32::new(21).unwrap()) };
    check(open(&[&corpus], &train, longer.into()), "20 tokens, expected the 21 of a window");
    check(open(&[&corpus, &corpus], &train, windows(true).into()), "not with several");
    let missing = folder.join("test");
    check(
        open(&[&corpus], &missing, windows(true).into()),
        "test-document_index.npy: expected the",
    );
    let stride = Windows { stride: NonZeroU32::new(3), ..windows(true) };
    check(open(&[&corpus], &train, stride.into()), "without stride and offset");
    let offset = Windows { offset: EpochOffset::Random, ..windows(true) };
    check(open(&[&corpus], &train, offset.into()), "without stride and offset");
    let raw = TokenOptions {
        number: Some(TokenType::U16),
        order: Some(train.as_os_str().to_owned()),
        ..TokenOptions::default()
    };
    let raw = open_all_in(&Stores::new(), &[&corpus], &raw, windows(true).into(), |_, _| Ok(None));
    check(raw, "goes with windows of one file and its .idx, which is missing");
}

#[test]
fn every_truncation_and_changed_byte_is_an_error_or_leaves_tokens() {
    let from = testdata().join("megatron");
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "corpus.bin",
        "corpus.idx",
        "valid-document_index.npy",
        "valid-sample_index.npy",
        "valid-shuffle_index.npy",
    ];
    for name in names {
        fs::copy(from.join(name), folder.path().join(name)).unwrap();
    }
    let corpus = folder.path().join("corpus.bin");
    let read = || -> Result<(), ReadError> {
        let sources = open(&[&corpus], &folder.path().join("valid"), windows(true).into())?;
        let source = TokenSource::of(&*sources[0]).unwrap();
        for index in 0..source.sample_count().min(50) {
            assert_eq!(tokens_of(source, index)?.len(), 21);
        }
        Ok(())
    };
    read().unwrap();
    for name in &names[2..] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        for kept in 0..whole.len() {
            fs::write(&path, &whole[..kept]).unwrap();
            let error = read().unwrap_err();
            assert!(matches!(error, ReadError::Tokens { .. }), "{name} {kept}: {error:?}");
        }
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[place] ^= 1 << bit;
                fs::write(&path, &changed).unwrap();
                match read() {
                    Ok(()) | Err(ReadError::Tokens { .. }) => {}
                    Err(ReadError::Sample { source, .. })
                        if matches!(*source, ReadError::Tokens { .. }) => {}
                    Err(error) => panic!("{name} {place} {bit}: {error:?}"),
                }
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    let defect = TokensDefect::OrderLength { found: 5, count: 2 };
    assert!(defect.to_string().starts_with("5 places of samples, expected one more than the 2"));
}
