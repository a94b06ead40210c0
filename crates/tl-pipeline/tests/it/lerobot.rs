//! Data sets of LeRobot: every frame and number against those that FFmpeg and the maker of the files
//! have, and folders that are not whole.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sha2::{Digest, Sha256};
use tbl_io::Stores;
use tl_pipeline::{
    Batch, ClipSampling, ClipWork, Dataset, Deltas, Fault, Fields, LeRobot, LeRobotOptions, Loader,
    LoaderConfig, OnError, PipelineError, SampleFault, Shard, Shuffle, Tail, ValueField,
    ValueFormat, Work,
};
use tl_transform::op::{CenterCrop, Size};
use tl_transform::{Dtype, Layout, OutputSpec, Recipe};

use crate::content::{Record, record, record_rest};
use crate::store::{MemoryStore, upload};

const TOP: &str = "observation.images.top";
const WRIST: &str = "observation.images.wrist";

/// First rows of the episodes, and the row after the last.
const STARTS: [u64; 4] = [0, 5, 13, 19];

/// Bytes of a frame in batches.
const FRAME: usize = 48 * 32 * 3;

fn copied(root: &Path) -> std::path::PathBuf {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                copy(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let folder = root.join("robot");
    copy(&tl_testdata::shipped!("lerobot"), &folder);
    folder
}

fn options(deltas: &[(&str, &[f64])]) -> LeRobotOptions {
    let deltas = deltas.iter().map(|(feature, seconds)| Deltas {
        feature: (*feature).to_owned(),
        seconds: seconds.to_vec(),
    });
    LeRobotOptions { deltas: deltas.collect(), ..LeRobotOptions::default() }
}

fn config(sampling: ClipSampling) -> LoaderConfig {
    let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
    let crop = CenterCrop { size: Size::Exact([32, 48]) };
    let recipe = Recipe::new(vec![crop.into()], output).unwrap();
    let work = Work::Clips(ClipWork::new(recipe, sampling));
    LoaderConfig { batch_size: 4, workers: 2, ..LoaderConfig::new(work) }
}

fn load(root: &Path, options: &LeRobotOptions, change: impl Fn(&mut LoaderConfig)) -> Loader {
    loader_of(LeRobot::open(&Stores::new(), root, options).unwrap(), change)
}

fn loader_of(rows: LeRobot, change: impl Fn(&mut LoaderConfig)) -> Loader {
    let mut config = config(rows.sampling());
    config.sampler = Shuffle::None.into();
    let values = rows.fields().map(|name| ValueField::new(name, name, ValueFormat::Npy));
    config.fields = Fields { values: values.collect(), ..Fields::default() };
    change(&mut config);
    Loader::new(Dataset::from_sources(vec![Box::new(rows)]).unwrap(), config).unwrap()
}

fn read_rows(path: &Path) -> RecordBatch {
    let file = File::open(path).unwrap();
    let mut batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    batches.next().unwrap().unwrap()
}

fn write_rows(path: &Path, rows: &RecordBatch) {
    let mut writer =
        ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), None).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// The rows with another number in one place.
fn with_number(rows: &RecordBatch, column: &str, row: usize, number: i64) -> RecordBatch {
    let place = rows.schema().index_of(column).unwrap();
    let mut columns = rows.columns().to_vec();
    let numbers = columns[place].as_any().downcast_ref::<Int64Array>().unwrap();
    let mut numbers = numbers.values().to_vec();
    numbers[row] = number;
    columns[place] = Arc::new(Int64Array::from(numbers)) as ArrayRef;
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

fn replace_in(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

/// The row at a distance, within the episode, and whether that is another than was asked for.
fn clamped(row: u64, delta: i64) -> (u64, bool) {
    let episode = STARTS.windows(2).find(|ends| row < ends[1]).unwrap();
    let wanted = row as i64 + delta;
    let inside = wanted.clamp(episode[0] as i64, episode[1] as i64 - 1);
    (inside.cast_unsigned(), inside != wanted)
}

fn place_of(row: u64) -> usize {
    usize::try_from(row).unwrap()
}

fn expected_hashes() -> BTreeMap<String, Vec<String>> {
    serde_json::from_str(tl_testdata::shipped_text!("lerobot/expected.json")).unwrap()
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn numbers<N: tl_pipeline::ColumnNumber + Copy>(batch: &Batch, name: &str) -> Vec<N> {
    batch.column_named(name).unwrap().numbers().unwrap().to_vec()
}

#[test]
fn rows_have_the_frames_of_ffmpeg_and_the_numbers_of_the_files() {
    let deltas: [(&str, &[f64]); 3] =
        [(TOP, &[-0.2, 0.0, 0.1]), ("action", &[0.0, 0.3]), ("observation.state", &[-0.1])];
    let loader = load(&tl_testdata::shipped!("lerobot"), &options(&deltas), |_| {});
    let expected = expected_hashes();
    let mut rows = 0;
    for batch in loader.epoch(0) {
        let batch = batch.unwrap();
        assert_eq!(batch.shape().as_deref(), Some(&[batch.len(), 2, 3, 32, 48, 3][..]));
        for (place, &row) in batch.indices().iter().enumerate() {
            let frames = &batch.images()[place * 6 * FRAME..][..6 * FRAME];
            for (frame, delta) in frames.chunks_exact(FRAME).zip([-2, 0, 1]) {
                assert_eq!(hash(frame), expected[TOP][place_of(clamped(row, delta).0)], "{row}");
            }
            assert_eq!(hash(&frames[3 * FRAME..4 * FRAME]), expected[WRIST][place_of(row)]);
            let pads: Vec<bool> = [-2, 0, 1].map(|delta| clamped(row, delta).1).to_vec();
            let is_pad = numbers::<u8>(&batch, "observation.images.top_is_pad");
            let is_pad: Vec<bool> = is_pad[place * 3..][..3].iter().map(|&pad| pad == 1).collect();
            assert_eq!(is_pad, pads);
            // The first number of an action is the row.
            let action = &numbers::<f32>(&batch, "action")[place * 6..][..6];
            assert_eq!([action[0], action[3]], [row as f32, clamped(row, 3).0 as f32]);
            let episode = STARTS.iter().rposition(|start| *start <= row).unwrap();
            let (before, is_pad) = clamped(row, -1);
            let state = &numbers::<f32>(&batch, "observation.state")[place * 2..][..2];
            let number = (before - STARTS[episode]) as f32;
            assert_eq!(state, [STARTS[episode] as f32 + number / 8.0, -number]);
            let pads = numbers::<u8>(&batch, "observation.state_is_pad");
            assert_eq!(pads[place] == 1, is_pad);
            assert_eq!(numbers::<i64>(&batch, "episode_index")[place], episode as i64);
            assert_eq!(
                numbers::<u8>(&batch, "next.done")[place] == 1,
                STARTS[1..].contains(&(row + 1))
            );
            rows += 1;
        }
    }
    assert_eq!(rows, 19);
}

#[test]
fn threads_ranks_and_resumption_make_no_difference() {
    let root = tl_testdata::shipped!("lerobot");
    let deltas = options(&[(WRIST, &[-0.1, 0.0])]);
    let shuffled = |config: &mut LoaderConfig| config.sampler = Shuffle::Full.into();
    let expected = record(&load(&root, &deltas, shuffled), 1);
    for workers in [1, 3, 7] {
        let other = load(&root, &deltas, |config| {
            shuffled(config);
            config.workers = workers;
        });
        assert!(record(&other, 1) == expected, "{workers}");
    }
    let mut broken = load(&root, &deltas, shuffled).epoch(1);
    broken.next().unwrap().unwrap();
    let state = broken.state().unwrap();
    let rest = load(&root, &deltas, shuffled).resume(&state).unwrap();
    assert!(record_rest(rest) == expected[1..]);
    let rows = |records: &[Record]| {
        let mut rows = BTreeMap::new();
        for Record { indices, bytes, .. } in records {
            let row = bytes.len() / indices.len();
            rows.extend(indices.iter().copied().zip(bytes.chunks(row).map(<[u8]>::to_vec)));
        }
        rows
    };
    let mut together = BTreeMap::new();
    for rank in 0..3 {
        let part = load(&root, &deltas, |config| {
            shuffled(config);
            config.shard = Shard { rank, world: 3, tail: Some(Tail::Uneven) };
        });
        together.extend(rows(&record(&part, 1)));
    }
    assert!(together == rows(&expected));
    // States go with the distances.
    let other = load(&root, &options(&[(WRIST, &[0.0, 0.1])]), shuffled);
    let error = other.resume(&state).err().unwrap().to_string();
    assert!(error.contains("the state's data set"), "{error}");
}

#[test]
fn folders_that_are_not_whole_are_refused_by_file_and_row() {
    type Change<'a> = (&'a str, &'a dyn Fn(&Path), &'a str);
    let replace = |path: &'static str, from: &'static str, to: &'static str| {
        move |root: &Path| replace_in(&root.join(path), from, to)
    };
    const INFO: &str = "meta/info.json";
    let changes: [Change<'_>; 7] = [
        (
            "a video",
            &|root| {
                let file = root.join("videos").join(TOP).join("chunk-000/file-001.mp4");
                std::fs::remove_file(file).unwrap();
            },
            "observation.images.top/chunk-000/file-001.mp4: the video of episode 2 and \
             `observation.images.top` does not exist",
        ),
        (
            "rows",
            &|root| {
                let folder = root.join("data/chunk-000");
                std::fs::copy(folder.join("file-000.parquet"), folder.join("file-001.parquet"))
                    .unwrap();
            },
            "data/chunk-000/file-001.parquet: 13 rows, its episodes have 6",
        ),
        (
            "episodes",
            &|root| std::fs::remove_dir_all(root.join("meta/episodes/chunk-000")).unwrap(),
            "meta/episodes: no Parquet file of episodes",
        ),
        (
            "version",
            &replace(INFO, "\"v3.0\"", "\"v2.1\""),
            "meta/info.json: version `v2.1` of the format, expected v3.0 or a later v3",
        ),
        ("shape", &replace(INFO, "\"action\"", "\"motion\""), "motion"),
        ("paths", &replace(INFO, "\"data/chunk", "\"../data/chunk"), "is not one below the folder"),
        ("images", &replace(INFO, "\"video\"", "\"image\""), "is of type `image`, expected"),
    ];
    for (what, change, expected) in changes {
        let root = tempfile::tempdir().unwrap();
        let folder = copied(root.path());
        change(&folder);
        let error = LeRobot::open(&Stores::new(), &folder, &LeRobotOptions::default());
        let error = error.err().unwrap().to_string();
        assert!(error.contains(expected), "{what}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn a_folder_without_its_last_episodes_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let folder = copied(root.path());
    let open = || LeRobot::open(&Stores::new(), &folder, &LeRobotOptions::default());
    let files = [0, 1]
        .map(|number| folder.join(format!("meta/episodes/chunk-000/file-00{number}.parquet")));
    let rows = read_rows(&files[0]);
    write_rows(&files[0], &rows.slice(0, 2));
    write_rows(&files[1], &rows.slice(2, 1));
    assert_eq!(open().unwrap().episode_rows(2), Some(13..19));

    std::fs::remove_file(&files[1]).unwrap();
    let error = open().err().unwrap();
    let expected = "meta/episodes: 2 episodes, meta/info.json states 3";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert_eq!(error.kind(), tbl_io::ErrorKind::Data);
    let info = folder.join("meta/info.json");
    replace_in(&info, "\"total_episodes\": 3", "\"total_episodes\": 2");
    let error = open().err().unwrap().to_string();
    assert!(error.ends_with("meta/episodes: 13 rows, meta/info.json states 19"), "{error}");
    replace_in(&info, "\"total_frames\": 19", "\"total_frames\": -1");
    let error = open().err().unwrap().to_string();
    assert!(error.ends_with("`/total_frames` is missing or not a whole number from 0"), "{error}");
    // Both numbers may be absent.
    replace_in(&info, "\"total_frames\": -1,", "");
    replace_in(&info, "\"total_episodes\": 2,", "");
    assert_eq!(open().unwrap().episode_rows(1), Some(5..13));
}

#[test]
fn numbers_of_episodes_that_are_too_small_are_named() {
    const FILE_INDEX: &str = "videos/observation.images.wrist/file_index";
    let root = tempfile::tempdir().unwrap();
    let folder = copied(root.path());
    let path = folder.join("meta/episodes/chunk-000/file-000.parquet");
    let rows = read_rows(&path);
    for (column, row, number, least) in [
        ("data/chunk_index", 0, -1, 0),
        ("data/file_index", 2, -7, 0),
        (FILE_INDEX, 1, -1, 0),
        ("dataset_to_index", 1, 3, 5),
    ] {
        write_rows(&path, &with_number(&rows, column, row, number));
        let error = LeRobot::open(&Stores::new(), &folder, &LeRobotOptions::default());
        let error = error.err().unwrap().to_string();
        let expected = format!("row {row}: `{column}` is {number}, expected at least {least}");
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn rows_of_a_store_are_those_of_a_folder_and_its_failures_end_the_epoch() {
    let shipped = tl_testdata::shipped!("lerobot");
    let store = MemoryStore::default();
    let url = upload(&store, &shipped);
    let url = url.trim_end_matches('/');
    let deltas = options(&[(TOP, &[-0.1, 0.0]), ("action", &[0.0, 0.3])]);
    let open = || LeRobot::open(&store.stores(), url, &deltas).unwrap();
    let expected = record(&load(&shipped, &deltas, |_| {}), 0);
    assert!(record(&loader_of(open(), |_| {}), 0) == expected);

    let video = format!("{url}/videos/{TOP}/chunk-000/file-001.mp4");
    for on_error in [OnError::Raise, OnError::Skip, OnError::Fill, OnError::Replace] {
        let error = |fail: &dyn Fn()| {
            let loader = loader_of(open(), |config| {
                config.on_error = on_error;
                config.workers = 1;
            });
            fail();
            let error = loader.epoch(0).find_map(Result::err).unwrap();
            assert!(matches!(error, PipelineError::Sample(_)), "{error}");
            error.to_string()
        };
        let refused = error(&|| store.refuse(Some((video.clone(), 0))));
        let row = format!("{video}: row 13: ");
        assert!(refused.contains(&row) && refused.contains("status 503"), "{refused}");
        store.refuse(None);
        let replaced = error(&|| store.put(&video, store.get(&video)));
        let was_replaced = "the object was replaced while it was open";
        assert!(replaced.contains(&row) && replaced.contains(was_replaced), "{replaced}");
    }
}

#[test]
fn distances_and_episodes_are_checked() {
    let root = tl_testdata::shipped!("lerobot");
    let open = |options: &LeRobotOptions| LeRobot::open(&Stores::new(), &root, options);
    for (options, expected) in [
        (options(&[("action", &[0.0, 0.15])]), "a delta of 0.15 s of `action` is 1.5 frames"),
        (options(&[("action", &[f64::NAN])]), "a delta of NaN s"),
        (options(&[("action", &[])]), "0 deltas of `action`, expected 1 to"),
        (options(&[("motion", &[0.0])]), "no feature `motion`, the features are"),
        (LeRobotOptions { tolerance: -1.0, ..LeRobotOptions::default() }, "the tolerance is -1 s"),
        (
            LeRobotOptions { episodes: Some(vec![1, 3]), ..LeRobotOptions::default() },
            "no episode 3, there are 3",
        ),
    ] {
        let error = open(&options).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.kind(), tbl_io::ErrorKind::Setting);
    }
    let rows = open(&LeRobotOptions::default()).unwrap();
    assert_eq!((rows.episode_rows(1), rows.episode_rows(3)), (Some(5..13), None));
    // Episodes that are not asked for may be without their videos.
    let copy = tempfile::tempdir().unwrap();
    let folder = copied(copy.path());
    let file = folder.join("videos").join(TOP).join("chunk-000/file-001.mp4");
    std::fs::remove_file(file).unwrap();
    let options = LeRobotOptions { episodes: Some(vec![0, 1]), ..LeRobotOptions::default() };
    LeRobot::open(&Stores::new(), &folder, &options).unwrap();
}

#[test]
fn frames_at_other_times_are_faults_of_their_rows() {
    let change = |from: &str, to: &str| {
        let root = tempfile::tempdir().unwrap();
        let folder = copied(root.path());
        let info = folder.join("meta/info.json");
        let text = std::fs::read_to_string(&info).unwrap();
        std::fs::write(&info, text.replace(from, to)).unwrap();
        let loader = load(&folder, &LeRobotOptions::default(), |config| {
            config.on_error = OnError::Raise;
            config.workers = 1;
        });
        loader.epoch(0).find_map(Result::err).unwrap().to_string()
    };
    let error = change("\"fps\": 10", "\"fps\": 20");
    let expected = "file-000.mp4: row 1: the video has 10 frames a second, its rows expect 20";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("sample 1 (episode-000000-frame-000001)"), "{error}");
    // The video of the third episode is shorter than that of all.
    let root = tempfile::tempdir().unwrap();
    let folder = copied(root.path());
    let file = |camera: &str, name: &str| folder.join("videos").join(camera).join(name);
    std::fs::copy(file(TOP, "chunk-000/file-001.mp4"), file(WRIST, "chunk-000/file-000.mp4"))
        .unwrap();
    let loader = load(&folder, &LeRobotOptions::default(), |config| config.workers = 1);
    let error = loader.epoch(0).find_map(Result::err).unwrap().to_string();
    let expected = "observation.images.wrist/chunk-000/file-000.mp4: row 6: no frame is on display \
                    at 0.6 s, the video shows frames from 0 s to 0.6 s";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_cause_of_a_row_with_a_cut_video_is_the_video() {
    let root = tempfile::tempdir().unwrap();
    let folder = copied(root.path());
    let file = folder.join("videos").join(TOP).join("chunk-000/file-001.mp4");
    File::options().write(true).open(&file).unwrap().set_len(900).unwrap();
    let loader = load(&folder, &LeRobotOptions::default(), |config| config.workers = 1);
    let error = loader.epoch(0).find_map(Result::err).unwrap();
    let PipelineError::Sample(error) = error else { panic!("{error}") };
    assert!(matches!(error.fault, SampleFault::RowVideo { row: 13, .. }), "{error}");
    assert!(matches!(error.fault.cause(), SampleFault::Video { .. }), "{error}");
}

#[test]
fn other_work_on_rows_is_refused() {
    let root = tl_testdata::shipped!("lerobot");
    let dataset = || {
        let rows = LeRobot::open(&Stores::new(), &root, &LeRobotOptions::default()).unwrap();
        Dataset::from_sources(vec![Box::new(rows)]).unwrap()
    };
    let sampling = ClipSampling::default();
    for config in [config(sampling), LoaderConfig::new(Work::Bytes)] {
        let error = Loader::new(dataset(), config).err().unwrap().to_string();
        assert!(error.contains("rows of LeRobot name their frames"), "{error}");
    }
    let rows = ClipSampling { start: tl_pipeline::ClipStart::Rows, ..sampling };
    let videos = Dataset::open(&[tl_testdata::shipped!("video/h264_b.mp4")]).unwrap();
    let error = Loader::new(videos, config(rows)).err().unwrap().to_string();
    assert!(error.contains("need a data set of LeRobot"), "{error}");
}
