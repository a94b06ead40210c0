//! The same rows for any workers, on any ranks, broken off after every batch and gone on with.

use std::path::PathBuf;

use idv_format::Compression;
use tbf_format::BuildOptions;
use tl_pipeline::{
    Blocks, ColumnRequest, Columns, Fields, Loader, LoaderConfig, LoaderState, Neighbors,
    PipelineError, Sampler, Shard, Shuffle, Tail,
};

use super::files::{loader_with, row_of, write_idv, write_tbf};

const ROWS: u64 = 23;
const GLOBAL_BATCH: usize = 6;

type Row = (u64, i64, bool, Vec<u8>);

/// A data set and what is asked of it.
struct Case {
    paths: Vec<PathBuf>,
    columns: Columns,
    bytes: Vec<String>,
    sampler: Sampler,
}

impl Case {
    fn ranks(&self, world: usize, workers: usize, tail: Tail) -> Vec<Loader> {
        let rank = |rank| {
            let shard = Shard { rank, world: world.try_into().unwrap(), tail: Some(tail) };
            loader_with(&self.paths, self.columns.clone(), |config| LoaderConfig {
                batch_size: GLOBAL_BATCH / world,
                fields: Fields { bytes: self.bytes.clone(), ..Fields::default() },
                sampler: self.sampler.clone(),
                shard,
                workers,
                ..config
            })
        };
        (0..world.try_into().unwrap()).map(rank).collect()
    }

    /// The rows that all ranks receive of epoch 3, resumed on other ranks after every `every`
    /// steps.
    fn elastic(&self, worlds: &[usize], every: u64, tail: Tail) -> Vec<Row> {
        let (mut rows, mut state): (_, Option<LoaderState>) = (Vec::new(), None);
        for (&world, workers) in worlds.iter().cycle().zip([1, 3, 2].into_iter().cycle()) {
            let ranks = self.ranks(world, workers, tail);
            let start = |rank: &Loader| {
                state.map_or_else(|| rank.epoch(3), |state| rank.resume(&state).unwrap())
            };
            let mut epochs: Vec<_> = ranks.iter().map(start).collect();
            for _ in 0..every {
                for batch in epochs.iter_mut().filter_map(Iterator::next) {
                    let batch = batch.unwrap();
                    rows.extend((0..batch.len()).map(|row| row_of(&batch, row, self.bytes.len())));
                }
            }
            if epochs.iter().all(|epoch| epoch.remaining() == 0) {
                return rows;
            }
            let text = serde_json::to_string(&epochs[0].state().unwrap()).unwrap();
            state = Some(serde_json::from_str(&text).unwrap());
        }
        unreachable!("worlds go round")
    }
}

fn cases(root: &tempfile::TempDir) -> Vec<Case> {
    let path = |name: &str| root.path().join(name);
    write_idv(&path("a.idv"), 0..9, Compression::Deflate);
    write_idv(&path("b.idv"), 9..ROWS, Compression::None);
    write_tbf(&path("c.tbf"), 23, BuildOptions::default());
    let idv = Columns {
        features: vec!["sparse".into(), "x".into()],
        label: Some("key".into()),
        block_bytes: 100,
        ..Columns::default()
    };
    let columns = vec![ColumnRequest::new("embedding")];
    let tbf = Columns {
        neighbors: Some(Neighbors { fanouts: vec![2, 2], columns, ..Neighbors::default() }),
        ..Columns::default()
    };
    let twice = Sampler { repeat: 2, shuffle: Shuffle::Full, ..Sampler::default() };
    let block = Shuffle::Block { blocks: Blocks::Samples(4), window: 2 };
    vec![
        Case {
            paths: vec![path("a.idv"), path("b.idv")],
            columns: idv,
            bytes: vec!["text".into()],
            sampler: block.into(),
        },
        Case {
            paths: vec![path("c.tbf")],
            columns: tbf.clone(),
            bytes: vec!["text".into()],
            sampler: Shuffle::Full.into(),
        },
        Case { paths: vec![path("c.tbf")], columns: tbf, bytes: vec![], sampler: twice },
    ]
}

#[test]
fn resuming_on_other_ranks_concatenates_to_the_whole_epoch() {
    let root = tempfile::tempdir().unwrap();
    for case in cases(&root) {
        let samples = 23 * case.sampler.repeat as usize;
        for tail in [Tail::Drop, Tail::Pad, Tail::Uneven] {
            let whole = case.elastic(&[1], 100, tail);
            let expected = match tail {
                Tail::Drop => samples / 6 * 6,
                Tail::Pad => samples.div_ceil(6) * 6,
                Tail::Uneven => samples,
            };
            assert_eq!(whole.len(), expected);
            for (worlds, every) in [(&[1][..], 1), (&[3], 1), (&[1, 3], 1), (&[3, 2], 2)] {
                let parts = case.elastic(worlds, every, tail);
                assert!(parts == whole, "{worlds:?} every {every}, {tail:?}");
            }
        }
    }
}

/// A row that comes twice in an epoch has other neighbours each time.
#[test]
fn neighbours_are_drawn_anew_in_every_repetition_and_epoch() {
    let root = tempfile::tempdir().unwrap();
    let case = cases(&root).pop().unwrap();
    let rows = case.elastic(&[1], 100, Tail::Uneven);
    let twice = (0..23).filter(|&index| {
        let mut both = rows.iter().filter(|row| row.0 == index).map(|row| &row.3);
        both.next() != both.next()
    });
    assert!(twice.count() > 4);
}

#[test]
fn states_of_another_table_or_of_other_columns_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let [mut case, _, tbf] = <[Case; 3]>::try_from(cases(&root)).ok().unwrap();
    let state = case.ranks(1, 1, Tail::Pad)[0].epoch(2).state().unwrap();
    let refused = |case: &Case| {
        let error = case.ranks(1, 1, Tail::Pad)[0].resume(&state).unwrap_err();
        let PipelineError::StateMismatch { what, .. } = error else { panic!("{error}") };
        what
    };
    assert_eq!(refused(&tbf), "data set");
    // The same columns and as many rows, but others.
    write_idv(&case.paths[0], 1..10, Compression::Deflate);
    assert_eq!(refused(&case), "data set");
    // The same rows, stored otherwise.
    write_idv(&case.paths[0], 0..9, Compression::None);
    assert!(case.ranks(1, 1, Tail::Pad)[0].resume(&state).is_ok());
    case.columns.block_bytes = 0;
    assert!(case.ranks(1, 1, Tail::Pad)[0].resume(&state).is_ok());
    case.columns.features.pop();
    assert_eq!(refused(&case), "recipe");
    case.paths.swap(0, 1);
    assert_eq!(refused(&case), "data set");
}
