//! Rows of documents: tokens, targets, positions and starts, for any ranks and resumption.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_io::Stores;
use tl_pipeline::{
    Batch, CacheKind, Dataset, DatasetView, Loader, LoaderConfig, PipelineError, Readers, Shuffle,
    TokenNumber, TokenWork, Work,
};
use tl_tokens::{DocumentRows, Fill, Long, PackedRows, Packing, Sequences, TokenOptions};

use crate::caches;
use crate::tokens::{cases, elastic};

/// Writes documents of these lengths, whose 16-bit tokens count from 1, as Megatron-LM does.
pub(crate) fn write(folder: &Path, lengths: &[u16]) -> PathBuf {
    let total: u16 = lengths.iter().sum();
    let tokens: Vec<u8> = (1..=total).flat_map(u16::to_le_bytes).collect();
    let path = folder.join("corpus.bin");
    std::fs::write(&path, tokens).unwrap();
    let count = lengths.len() as u64;
    let mut index = b"MMIDIDX\0\0".to_vec();
    index.extend(1u64.to_le_bytes());
    index.push(8);
    index.extend([count.to_le_bytes(), 1u64.to_le_bytes()].concat());
    index.extend(lengths.iter().flat_map(|&length| i32::from(length).to_le_bytes()));
    let mut start = 0i64;
    for &length in lengths {
        index.extend(start.to_le_bytes());
        start += 2 * i64::from(length);
    }
    index.extend(0i64.to_le_bytes());
    std::fs::write(folder.join("corpus.idx"), index).unwrap();
    path
}

pub(crate) fn open(path: &Path, sequences: Sequences) -> Result<Dataset, PipelineError> {
    Dataset::open_tokens(&Stores::new(), &[path], &TokenOptions::default(), sequences)
}

fn packed(length: u32, strategy: Packing, long: Long) -> Sequences {
    let window = NonZeroU32::new(20).unwrap();
    let rows = PackedRows::new(NonZeroU32::new(length).unwrap());
    Sequences::Packed(PackedRows { window, strategy, long, ..rows })
}

fn config(number: TokenNumber) -> LoaderConfig {
    let work = Work::Tokens(TokenWork { number });
    let sampler = Shuffle::Full.into();
    LoaderConfig { sampler, seed: 9, batch_size: 4, workers: 2, ..LoaderConfig::new(work) }
}

/// Everything that a row has.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    sample: u64,
    valid: bool,
    tokens: Vec<i64>,
    targets: Vec<i64>,
    positions: Vec<i32>,
    ends: Vec<i32>,
}

fn rows(batch: &Batch) -> Vec<Row> {
    let positions = batch.column_named("positions").unwrap();
    let length = positions.spec.shape[0];
    let positions = positions.numbers::<i32>().unwrap();
    let row = |row: usize| {
        let found = batch.token_row::<i64>(row).unwrap();
        Row {
            sample: batch.indices()[row],
            valid: batch.valid()[row],
            tokens: found.tokens.to_vec(),
            targets: found.targets.to_vec(),
            positions: positions[row * length..][..length].to_vec(),
            ends: batch.cu_seqlens(row).unwrap().to_vec(),
        }
    };
    assert!(batch.cu_seqlens(batch.len()).is_none() && !batch.targets_overlap());
    (0..batch.len()).map(row).collect()
}

/// The documents' tokens that a row has, each with the target of its last token; everything else about
/// the row is checked here.
fn documents(row: &Row, length: usize, fill: Fill) -> Vec<(Vec<i64>, i64)> {
    let place = |end: i32| usize::try_from(end).unwrap();
    assert_eq!((row.tokens.len(), row.ends[0]), (length, 0));
    let mut found = Vec::new();
    for ends in row.ends.windows(2) {
        let start = place(ends[0]);
        let end = place(ends[1]);
        let tokens = row.tokens[start..end].to_vec();
        assert!(row.positions[start..end].iter().copied().eq(0..ends[1] - ends[0]));
        let Some(last) = end.checked_sub(1).filter(|_| start < end) else { continue };
        assert_eq!(row.targets[start..last], row.tokens[start + 1..end]);
        found.push((tokens, row.targets[last]));
    }
    let used = place(row.ends[row.ends.len() - 1]);
    assert!(row.tokens[used..].iter().all(|&token| token == fill.pad));
    assert!(row.targets[used..].iter().all(|&target| target == fill.ignore));
    assert!(row.positions[used..].iter().all(|&position| position == 0));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn every_document_is_there_once_per_epoch_over_ranks_and_resumes(
        lengths in prop::collection::vec(0u16..20, 1..50),
        length in 1u32..16,
        strategy in prop::sample::select(vec![
            None, Some(Packing::FirstFit), Some(Packing::BestFit), Some(Packing::Split),
        ]),
        split: bool,
        worlds in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 6]), 1..4),
        every in 1u64..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), &lengths);
        let long = if split { Long::Split } else { Long::Truncate };
        let alone = |length| {
            let length = NonZeroU32::new(length).unwrap();
            Sequences::Documents(DocumentRows { length, targets: true, long, fill: Fill::default() })
        };
        let sequences = strategy.map_or_else(|| alone(length), |strategy| packed(length, strategy, long));
        let dataset = open(&path, sequences).unwrap();
        prop_assume!(!dataset.is_empty());
        let samples = dataset.len();
        let view = DatasetView::from(dataset);
        let config = LoaderConfig { batch_size: 6, ..config(TokenNumber::I64) };
        let whole = elastic(&view, &config, &[1], 100, rows);
        prop_assert_eq!(whole.iter().filter(|row| row.valid).count() as u64, samples);
        // The tokens of all documents, each with its target.
        let mut pairs = BTreeMap::new();
        for row in whole.iter().filter(|row| row.valid) {
            for (tokens, last) in documents(row, length as usize, Fill::default()) {
                let targets = tokens[1..].iter().copied().chain([last]);
                for (&token, target) in tokens.iter().zip(targets) {
                    prop_assert_eq!(pairs.insert(token, target), None, "token {} twice", token);
                }
            }
        }
        let mut first = 1;
        let mut expected = BTreeMap::new();
        for &tokens in &lengths {
            let end = first + i64::from(tokens);
            let cuts = split || strategy == Some(Packing::Split);
            let kept = if cuts { end } else { end.min(first + i64::from(length)) };
            let target = |token| if token + 1 < end { token + 1 } else { -100 };
            expected.extend((first..kept).map(|token| (token, target(token))));
            first = end;
        }
        prop_assert_eq!(pairs, expected);
        prop_assert_eq!(elastic(&view, &config, &worlds, every, rows), whole);
    }
}

#[test]
fn a_row_has_its_document_and_the_fill_of_the_caller() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &[3, 0, 6]);
    let length = NonZeroU32::new(4).unwrap();
    let fill = Fill { pad: 50, ignore: -1 };
    let sequences = |targets| {
        Sequences::Documents(DocumentRows { length, targets, long: Long::Truncate, fill })
    };
    let config = |number| LoaderConfig { sampler: Shuffle::None.into(), ..config(number) };
    let loader = Loader::new(open(&path, sequences(true)).unwrap(), config(TokenNumber::I32));
    let batch = loader.unwrap().batch(0, 0).unwrap();
    let row = |row| batch.token_row::<i32>(row).unwrap();
    assert_eq!((row(0).tokens, row(0).targets), (&[1, 2, 3, 50][..], &[2, 3, -1, -1][..]));
    assert_eq!((row(1).tokens, row(1).targets), (&[50; 4][..], &[-1; 4][..]));
    // The fourth token has a target, for the document is longer.
    assert_eq!((row(2).tokens, row(2).targets), (&[4, 5, 6, 7][..], &[5, 6, 7, 8][..]));
    let ends = [0, 1, 2].map(|row| batch.cu_seqlens(row).unwrap().to_vec());
    assert_eq!(ends, [[0, 3], [0, 0], [0, 4]]);
    let loader = Loader::new(open(&path, sequences(false)).unwrap(), config(TokenNumber::Stored));
    let batch = loader.unwrap().batch(0, 0).unwrap();
    let names: Vec<&str> = batch.columns().map(|column| &*column.spec.name).collect();
    assert_eq!(names, ["tokens", "positions"]);
    assert_eq!(batch.token_row::<u16>(2).unwrap().tokens, [4, 5, 6, 7]);
}

#[test]
fn requests_that_do_not_fit_documents_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &[3, 5]);
    let check = |config: LoaderConfig, expected: &str| {
        let dataset = open(&path, packed(4, Packing::BestFit, Long::Truncate)).unwrap();
        let error = Loader::new(dataset, config).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let ignore = "ignore is -100, which tokens of u16 cannot be";
    check(config(TokenNumber::Stored), ignore);
    let readers = LoaderConfig { readers: Readers::Threads(1), ..config(TokenNumber::I64) };
    check(readers, "documents and windows with a random offset are read by workers");
    let cache = caches::memory(CacheKind::Encoded, 1 << 20);
    check(LoaderConfig { cache, ..config(TokenNumber::I64) }, "documents and windows");
    let error = open(&path, packed(4, Packing::FirstFit, Long::Error)).unwrap_err().to_string();
    assert!(error.ends_with("document 1 has 5 tokens, expected at most the 4 of a row"), "{error}");
}

#[test]
fn states_of_other_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), &[3, 5, 2, 2, 4]);
    let loader =
        |sequences| Loader::new(open(&path, sequences).unwrap(), config(TokenNumber::I64)).unwrap();
    let best = packed(5, Packing::BestFit, Long::Truncate);
    let state = loader(best).state(1).unwrap();
    loader(best).check(&state).unwrap();
    // The same number of rows, tokens and documents, but other lengths in the middle.
    write(folder.path(), &[3, 5, 3, 1, 4]);
    let error = loader(best).check(&state).unwrap_err();
    assert!(matches!(error, PipelineError::StateMismatch { what: "data set", .. }), "{error}");
    write(folder.path(), &[3, 5, 2, 2, 4]);
    let length = NonZeroU32::new(5).unwrap();
    let rows = PackedRows::new(length);
    let window = NonZeroU32::new(2).unwrap();
    let long = Long::Truncate;
    let fill = Fill::default();
    for other in [
        packed(5, Packing::FirstFit, Long::Truncate),
        packed(5, Packing::BestFit, Long::Split),
        Sequences::Packed(PackedRows { window, ..rows }),
        Sequences::Packed(PackedRows { fill: Fill { pad: 1, ..fill }, ..rows }),
        Sequences::Documents(DocumentRows { length, targets: true, long, fill }),
    ] {
        let error = loader(other).check(&state).unwrap_err();
        let PipelineError::StateMismatch { what, .. } = error else { panic!("{error}") };
        assert_eq!(what, "data set");
    }
}
