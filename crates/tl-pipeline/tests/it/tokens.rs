//! Tokens: rows against slices of the files, for any threads, ranks, readers and resumption.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_io::Stores;
use tl_pipeline::{
    Batch, Blocks, CacheKind, ColumnRequest, Columns, Dataset, DatasetView, Fields, Loader,
    LoaderConfig, LoaderState, OnError, PipelineError, Readers, Sampler, Shard, Shuffle, Tail,
    TokenNumber, TokenWork, Work,
};
use tl_tokens::{EpochOffset, TokenOptions, TokenType, Windows};
use tl_transform::{Recipe, Rng};

use crate::caches;
use crate::store::MemoryStore;

const SEED: u64 = 42;

/// A file of tokens of 16 bits.
fn write(path: &Path, tokens: &[u16]) {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
    std::fs::write(path, bytes).unwrap();
}

/// Files with these numbers of tokens, which count on from file to file.
fn files(folder: &Path, counts: &[usize]) -> (Vec<PathBuf>, Vec<Vec<u16>>) {
    let mut first = 0;
    let contents: Vec<Vec<u16>> = counts
        .iter()
        .map(|&count| {
            let tokens = first..first + u16::try_from(count).unwrap();
            first = tokens.end;
            tokens.map(|token| token.wrapping_mul(40_503)).collect()
        })
        .collect();
    let name = |number: usize| folder.join(format!("{number}.bin"));
    let paths: Vec<PathBuf> = (0..counts.len()).map(name).collect();
    paths.iter().zip(&contents).for_each(|(path, tokens)| write(path, tokens));
    (paths, contents)
}

fn windows(length: u32, offset: EpochOffset) -> Windows {
    Windows { offset, ..Windows::new(NonZeroU32::new(length).unwrap()) }
}

fn options(number: TokenType) -> TokenOptions {
    TokenOptions { number: Some(number), ..TokenOptions::default() }
}

fn open(paths: &[PathBuf], windows: Windows) -> Dataset {
    Dataset::open_tokens(&Stores::new(), paths, &options(TokenType::U16), windows.into()).unwrap()
}

fn config(number: TokenNumber) -> LoaderConfig {
    let sampler = Shuffle::Full.into();
    let work = Work::Tokens(TokenWork { number });
    LoaderConfig { sampler, seed: SEED, batch_size: 4, workers: 2, ..LoaderConfig::new(work) }
}

/// The sample, whether it counts, and all tokens of every row.
type Row = (u64, bool, Vec<i64>);

fn rows(batch: &Batch) -> Vec<Row> {
    let row = |row| {
        let found = batch.token_row::<i64>(row).unwrap();
        let mut tokens = found.tokens.to_vec();
        if batch.targets_overlap() {
            assert_eq!(found.targets.len(), tokens.len());
            tokens.extend(found.targets.last());
            assert_eq!(found.targets, &tokens[1..]);
        }
        (batch.indices()[row], batch.valid()[row], tokens)
    };
    assert_eq!(batch.token_row::<i64>(batch.len()), None);
    assert!(batch.sample(0).is_none() && batch.images().is_empty());
    (0..batch.len()).map(row).collect()
}

/// The windows of an epoch in their order, cut here from the tokens of the files.
fn expected(contents: &[Vec<u16>], windows: &Windows, offset: usize) -> Vec<Vec<i64>> {
    let span = usize::try_from(windows.tokens()).unwrap();
    let stride = windows.stride() as usize;
    let most = windows.offsets() as usize - 1;
    let of_file = |tokens: &Vec<u16>| {
        // As many as fit at every offset.
        let starts = (0..tokens.len()).step_by(stride);
        let starts = starts.filter(|start| start + most + span <= tokens.len());
        let tokens: Vec<i64> = tokens.iter().map(|&token| token.into()).collect();
        starts
            .map(|start| tokens[start + offset..start + offset + span].to_vec())
            .collect::<Vec<_>>()
    };
    contents.iter().flat_map(of_file).collect()
}

/// The offset that the documentation defines.
fn offset_of(windows: &Windows, epoch: u32) -> usize {
    if windows.offset == EpochOffset::None {
        return 0;
    }
    Rng::new(SEED, epoch, u64::MAX, 3).below(windows.stride()) as usize
}

#[test]
fn rows_are_slices_in_the_order_of_the_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, contents) = files(folder.path(), &[33, 5, 0, 70]);
    for targets in [true, false] {
        for stride in [None, Some(3), Some(11)] {
            for offset in [EpochOffset::None, EpochOffset::Random] {
                let stride = stride.and_then(NonZeroU32::new);
                let windows = Windows { targets, stride, ..windows(7, offset) };
                let loader = Loader::new(open(&paths, windows), config(TokenNumber::I64)).unwrap();
                for epoch in [0, 5] {
                    let all = expected(&contents, &windows, offset_of(&windows, epoch));
                    assert_eq!(loader.dataset().len(), all.len() as u64, "{windows:?}");
                    let order = loader.order(epoch);
                    let found: Vec<Row> =
                        loader.epoch(epoch).flat_map(|batch| rows(&batch.unwrap())).collect();
                    assert_eq!(found.len(), all.len());
                    for (position, (sample, valid, tokens)) in (0..).zip(found) {
                        assert_eq!(order.sample_at(position), Some(sample));
                        assert!(valid);
                        assert_eq!(tokens, all[usize::try_from(sample).unwrap()]);
                    }
                }
            }
        }
    }
}

#[test]
fn windows_start_elsewhere_in_every_epoch_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, _) = files(folder.path(), &[200]);
    let first = |offset, epoch| {
        let config = LoaderConfig { sampler: Shuffle::None.into(), ..config(TokenNumber::I64) };
        let loader = Loader::new(open(&paths, windows(50, offset)), config).unwrap();
        rows(&loader.batch(epoch, 0).unwrap())[0].2.clone()
    };
    let of = |offset| (0..20).map(|epoch| first(offset, epoch)).collect::<Vec<_>>();
    let mut random = of(EpochOffset::Random);
    random.sort_unstable();
    random.dedup();
    assert!(random.len() > 12, "{} offsets of 20 epochs", random.len());
    let mut same = of(EpochOffset::None);
    same.dedup();
    assert_eq!(same.len(), 1);
}

#[test]
fn tokens_come_in_the_type_that_is_asked_for_or_fail_by_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let stored: Vec<u8> = [1u32, 2, 3, 1 << 31, 5].iter().flat_map(|t| t.to_le_bytes()).collect();
    std::fs::write(&path, stored).unwrap();
    let windows = Windows { targets: false, ..windows(2, EpochOffset::None) };
    let open = || {
        let options = options(TokenType::U32);
        Dataset::open_tokens(&Stores::new(), std::slice::from_ref(&path), &options, windows.into())
    };
    let config = |number| LoaderConfig { sampler: Shuffle::None.into(), ..config(number) };
    let batch = |number| Loader::new(open().unwrap(), config(number)).unwrap().batch(0, 0);
    let wide = batch(TokenNumber::I64).unwrap();
    assert_eq!(wide.token_row::<i64>(1).unwrap().tokens, [3, 1 << 31]);
    assert!(wide.token_row::<i64>(1).unwrap().targets.is_empty());
    assert!(wide.token_row::<u32>(1).is_none());
    let same = batch(TokenNumber::Stored).unwrap();
    assert_eq!(same.token_row::<u32>(1).unwrap().tokens, [3, 1 << 31]);
    let error = batch(TokenNumber::I32).unwrap_err().to_string();
    let expected = "sample 1: at byte 12: token 2147483648 does not fit i32";
    assert!(error.ends_with(expected), "{error}");
    let config = LoaderConfig { on_error: OnError::Skip, ..config(TokenNumber::I32) };
    let loader = Loader::new(open().unwrap(), config).unwrap();
    assert_eq!(loader.batch(0, 0).unwrap().token_row::<i32>(0).unwrap().tokens, [1, 2]);
    assert_eq!(loader.batch(0, 0).unwrap().len(), 1);
}

/// The rows that all ranks receive of epoch 3, resumed on other ranks after every `every` steps.
/// `config` has the batch size of all ranks together.
pub(crate) fn elastic<R>(
    view: &DatasetView,
    config: &LoaderConfig,
    worlds: &[usize],
    every: u64,
    rows: impl Fn(&Batch) -> Vec<R>,
) -> Vec<R> {
    let (mut found, mut state): (_, Option<LoaderState>) = (Vec::new(), None);
    for (&world, workers) in worlds.iter().cycle().zip([1, 3, 2].into_iter().cycle()) {
        let rank = |rank| {
            let tail = Some(Tail::Pad);
            let shard = Shard { rank, world: u32::try_from(world).unwrap(), tail };
            let batch_size = config.batch_size / world;
            let config = LoaderConfig { batch_size, shard, workers, ..config.clone() };
            Loader::new(view.clone(), config).unwrap()
        };
        let ranks: Vec<Loader> = (0..u32::try_from(world).unwrap()).map(rank).collect();
        let start = |rank: &Loader| {
            state.map_or_else(|| rank.epoch(3), |state| rank.resume(&state).unwrap())
        };
        let mut epochs: Vec<_> = ranks.iter().map(start).collect();
        for _ in 0..every {
            for batch in epochs.iter_mut().filter_map(Iterator::next) {
                found.extend(rows(&batch.unwrap()));
            }
        }
        if epochs.iter().all(|epoch| epoch.remaining() == 0) {
            return found;
        }
        let text = serde_json::to_string(&epochs[0].state().unwrap()).unwrap();
        assert!(text.len() < 400, "{} bytes of state", text.len());
        state = Some(serde_json::from_str(&text).unwrap());
    }
    unreachable!("worlds go round")
}

/// The number of random cases: more for a soak.
pub(crate) fn cases() -> u32 {
    std::env::var("TURBOLOADER_CASES").map_or(60, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]
    #[test]
    fn resuming_on_other_ranks_concatenates_to_the_whole_epoch(
        counts in prop::collection::vec(0usize..90, 1..4),
        length in 1u32..9,
        stride in prop::option::of(1u32..12),
        random: bool,
        block: bool,
        worlds in prop::collection::vec(prop::sample::select(vec![1usize, 2, 3, 4, 6]), 1..4),
        every in 1u64..4,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (paths, contents) = files(folder.path(), &counts);
        let offset = if random { EpochOffset::Random } else { EpochOffset::None };
        let stride = stride.and_then(NonZeroU32::new);
        let windows = Windows { stride, ..windows(length, offset) };
        let dataset = open(&paths, windows);
        let all = expected(&contents, &windows, offset_of(&windows, 3));
        prop_assert_eq!(dataset.len(), all.len() as u64);
        prop_assume!(!dataset.is_empty());
        let view = DatasetView::from(dataset);
        let block = Shuffle::Block { blocks: Blocks::Samples(3), window: 2 };
        let sampler: Sampler = if random { Shuffle::Full.into() } else { block.into() };
        let config = LoaderConfig { batch_size: 12, sampler, ..config(TokenNumber::I64) };
        let whole = elastic(&view, &config, &[1], 100, rows);
        let mut samples: Vec<u64> = Vec::new();
        for (sample, valid, tokens) in &whole {
            prop_assert_eq!(tokens, &all[usize::try_from(*sample).unwrap()]);
            samples.extend(valid.then_some(*sample));
        }
        samples.sort_unstable();
        prop_assert_eq!(samples, (0..all.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(elastic(&view, &config, &worlds, every, rows), whole);
    }
}

#[test]
fn a_terabyte_of_windows_opens_and_resumes_without_a_look_at_each() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.bin");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    // A list of them would take terabytes of memory.
    let windows = Windows { stride: NonZeroU32::new(1), ..windows(8, EpochOffset::None) };
    let dataset = open(&[path], windows);
    assert_eq!(dataset.len(), (1 << 39) - 8);
    let loader = Loader::new(dataset, config(TokenNumber::I64)).unwrap();
    let mut epoch = loader.epoch(0);
    let first = epoch.next().unwrap().unwrap();
    assert_eq!(first.token_row::<i64>(0).unwrap().tokens, [0; 8]);
    let state = epoch.state().unwrap();
    drop(epoch);
    let next = loader.resume(&state).unwrap().next().unwrap().unwrap();
    assert_eq!(next.indices(), loader.batch(0, 1).unwrap().indices());
    let last = loader.batch(0, (1 << 37) - 3).unwrap();
    assert_eq!(last.len(), 4);
}

#[test]
fn readers_caches_and_stores_change_no_token() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, _) = files(folder.path(), &[333, 50]);
    let store = MemoryStore::default();
    store.upload(folder.path(), "mem://b");
    let urls = ["mem://b/0.bin", "mem://b/1.bin"];
    let all = |dataset: Dataset, config: LoaderConfig| -> Vec<Row> {
        let loader = Loader::new(dataset, config).unwrap();
        (0..2).flat_map(|epoch| loader.epoch(epoch)).flat_map(|b| rows(&b.unwrap())).collect()
    };
    for offset in [EpochOffset::None, EpochOffset::Random] {
        let windows = windows(9, offset);
        let remote = || {
            let options = options(TokenType::U16);
            Dataset::open_tokens(&store.stores(), &urls, &options, windows.into()).unwrap()
        };
        let plain = config(TokenNumber::I64);
        let found = all(open(&paths, windows), plain.clone());
        assert_eq!(all(remote(), plain.clone()), found);
        let readers = LoaderConfig { readers: Readers::Threads(2), ..plain.clone() };
        let cached = LoaderConfig {
            cache: caches::memory(CacheKind::Encoded, 1 << 20),
            ..config(TokenNumber::I64)
        };
        for config in [readers, cached] {
            if offset == EpochOffset::None {
                assert_eq!(all(open(&paths, windows), config.clone()), found);
                assert_eq!(all(remote(), config), found);
            } else {
                let error = Loader::new(open(&paths, windows), config).unwrap_err();
                assert!(
                    error.to_string().starts_with("readers and caches bring windows"),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn bytes_of_tokens_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, contents) = files(folder.path(), &[20]);
    for work in [Work::Bytes, Work::Views] {
        let config = LoaderConfig { sampler: Shuffle::None.into(), ..LoaderConfig::new(work) };
        let loader = Loader::new(open(&paths, windows(4, EpochOffset::None)), config).unwrap();
        let batch = loader.batch(0, 0).unwrap();
        let window: Vec<u8> = contents[0][4..9].iter().flat_map(|t| t.to_le_bytes()).collect();
        assert_eq!(batch.sample(1).unwrap().bytes, window);
    }
}

#[test]
fn a_file_that_is_cut_short_is_the_fault_of_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, _) = files(folder.path(), &[40_000]);
    let config = LoaderConfig { sampler: Shuffle::None.into(), ..config(TokenNumber::I64) };
    let loader = Loader::new(open(&paths, windows(1000, EpochOffset::None)), config).unwrap();
    rows(&loader.batch(0, 9).unwrap());
    std::fs::OpenOptions::new().write(true).open(&paths[0]).unwrap().set_len(50_001).unwrap();
    let error = loader.batch(0, 9).unwrap_err().to_string();
    assert!(error.contains("sample 3") && error.contains("became shorter"), "{error}");
}

#[test]
fn requests_that_do_not_fit_tokens_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, _) = files(folder.path(), &[60, 60]);
    let tokens = || open(&paths, windows(4, EpochOffset::None));
    let check = |dataset: Dataset, config: LoaderConfig, expected: &str| {
        let error = Loader::new(dataset, config).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let neither = "0.bin: tokens are neither images nor clips nor columns of a table";
    check(tokens(), LoaderConfig::new(Work::Images(Recipe::decode())), neither);
    let columns = Columns { columns: Some(vec![ColumnRequest::new("a")]), ..Columns::default() };
    check(tokens(), LoaderConfig::new(Work::Columns(columns)), neither);
    let fields = Fields { keys: true, ..Fields::default() };
    let fields = LoaderConfig { fields, ..config(TokenNumber::I64) };
    check(tokens(), fields, "fields go with samples of files; tokens have none");
    let photos = tl_testdata::shipped!("photos");
    let photos = || Dataset::open(&[&photos]).unwrap();
    check(photos(), config(TokenNumber::I64), "photos: not a file of tokens");
    let short = open(&paths, windows(60, EpochOffset::None));
    check(short, config(TokenNumber::I64), "the tokens do not fill one window");

    let joined = |other: Dataset| {
        let views = [DatasetView::from(tokens()), DatasetView::from(other)];
        DatasetView::concat(&views).unwrap_err().to_string()
    };
    let others = open(&paths[1..], windows(5, EpochOffset::None));
    assert!(joined(others).contains("1.bin: the sequences differ from those of"));
    assert!(joined(photos()).contains("photos: samples without tokens cannot be joined"));
    let folder = Dataset::open_tokens(
        &Stores::new(),
        &[folder.path()],
        &options(TokenType::U16),
        windows(4, EpochOffset::None).into(),
    );
    assert!(folder.unwrap_err().to_string().ends_with("is a directory, expected a regular file"));
    // Files of another type may be joined unless batches have it.
    let narrow = Dataset::open_tokens(
        &Stores::new(),
        &paths[1..],
        &options(TokenType::U8),
        windows(4, EpochOffset::None).into(),
    );
    let views = [DatasetView::from(tokens()), DatasetView::from(narrow.unwrap())];
    let mixed = DatasetView::concat(&views).unwrap();
    assert!(Loader::new(mixed.clone(), config(TokenNumber::I32)).is_ok());
    let error = Loader::new(mixed, config(TokenNumber::Stored)).unwrap_err().to_string();
    assert!(error.contains("1.bin: tokens are u8, those of"), "{error}");
}

#[test]
fn states_of_other_tokens_windows_or_types_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (paths, _) = files(folder.path(), &[60, 60]);
    let loader = |paths: &[PathBuf], length, offset, number| {
        Loader::new(open(paths, windows(length, offset)), config(number)).unwrap()
    };
    let none = EpochOffset::None;
    let state = loader(&paths[..1], 4, none, TokenNumber::I64).state(1).unwrap();
    let what = |loader: Loader| match loader.check(&state) {
        Err(PipelineError::StateMismatch { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(loader(&paths[1..], 4, none, TokenNumber::I64)), "data set");
    assert_eq!(what(loader(&paths[..1], 5, none, TokenNumber::I64)), "data set");
    assert_eq!(what(loader(&paths[..1], 4, EpochOffset::Random, TokenNumber::I64)), "data set");
    assert_eq!(what(loader(&paths[..1], 4, none, TokenNumber::I32)), "recipe");
    loader(&paths[..1], 4, none, TokenNumber::I64).check(&state).unwrap();
}
