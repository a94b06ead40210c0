//! Clips of parts of videos, and at times, that columns of a data set state: against the frames between
//! these times, counted here.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tl_pipeline::{
    ClipColumns, ClipSampling, ClipStart, ClipWork, Dataset, Loader, LoaderConfig, PipelineError,
    Shard, Shuffle, Spacing, Tail, Work,
};
use tl_transform::op::CenterCrop;
use tl_transform::{Dtype, Layout, OutputSpec, Recipe, Rng};
use tl_video::{FrameDecoder, Limits, Parity, Region, VideoIndex};

use crate::content::{Record, record, record_rest};
use crate::parquet_files::{Form, Row, write_parquet};

const SEED: u64 = 9;

/// Videos of 96x64 pixels: 25 frames a second, and a varying rate.
const VIDEOS: [&str; 2] = ["h264_b.mp4", "h264_rate.mp4"];

/// The side of the crop from the middle of frames.
const SIDE: u32 = 64;

/// A video with the time and the crop of each of its frames.
struct Shown {
    times: Vec<f64>,
    end: f64,
    frames: Vec<Vec<u8>>,
}

impl Shown {
    fn of(name: &str) -> Self {
        let bytes = std::fs::read(tl_testdata::shipped!("video").join(name)).unwrap();
        let index = VideoIndex::open(&bytes[..], &Limits::default()).unwrap();
        let numbers: Vec<u64> = (0..index.frame_count()).collect();
        let base = index.info().time_base;
        let times = numbers.iter().map(|number| base.seconds(index.frame(*number).unwrap().pts));
        let mut decoder = FrameDecoder::new(&index, &Limits::default()).unwrap();
        let mut frames = vec![Vec::new(); numbers.len()];
        let plan = index.cost(&numbers).unwrap();
        let region = Region { left: 16, top: 0, width: SIDE, height: SIDE };
        decoder
            .decode(&index, &plan, &bytes, &mut |number, picture| {
                let pixels = &mut frames[usize::try_from(number).unwrap()];
                pixels.resize(3 * 64 * 64, 0);
                picture.rgb(region, Parity::Ffmpeg, pixels).unwrap();
            })
            .unwrap();
        Self { times: times.collect(), end: base.seconds(index.end_pts()), frames }
    }

    /// The frames of a part: from the one on display at its beginning to the last before its end.
    fn part(&self, from: f64, to: f64) -> std::ops::Range<usize> {
        let first = self.times.iter().rposition(|time| *time <= from).unwrap();
        let end = self.times.iter().filter(|time| **time < to).count();
        first..end
    }
}

fn columns(from: Option<&str>, to: Option<&str>, at: Option<&str>) -> ClipColumns {
    let owned = |name: Option<&str>| name.map(str::to_owned);
    ClipColumns { from: owned(from), to: owned(to), at: owned(at) }
}

fn of_part() -> ClipColumns {
    columns(Some("from"), Some("to"), None)
}

fn config(sampling: ClipSampling, columns: ClipColumns) -> LoaderConfig {
    let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
    let recipe = Recipe::new(vec![CenterCrop::new(SIDE).into()], output).unwrap();
    let work = Work::Clips(ClipWork { columns, ..ClipWork::new(recipe, sampling) });
    LoaderConfig { seed: SEED, batch_size: 3, workers: 2, ..LoaderConfig::new(work) }
}

/// A manifest of these lines next to the videos.
fn manifest(root: &Path, lines: &str) -> PathBuf {
    for name in VIDEOS {
        std::fs::copy(tl_testdata::shipped!("video").join(name), root.join(name)).unwrap();
    }
    let path = root.join("parts.csv");
    std::fs::write(&path, lines).unwrap();
    path
}

fn load(path: &Path, config: LoaderConfig) -> Loader {
    Loader::new(Dataset::open(&[path]).unwrap(), config).unwrap()
}

/// The frames of each sample, in the order of the samples.
fn frames(records: &[Record]) -> Vec<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    for Record { indices, bytes, .. } in records {
        let row = bytes.len() / indices.len();
        for (sample, row) in indices.iter().zip(bytes.chunks_exact(row)) {
            let frames = row.chunks_exact(3 * 64 * 64).map(<[u8]>::to_vec).collect();
            found.push((*sample, frames));
        }
    }
    found.sort_unstable_by_key(|(sample, _): &(u64, Vec<Vec<u8>>)| *sample);
    found.into_iter().map(|(_, frames)| frames).collect()
}

#[test]
fn a_part_has_the_frames_from_its_beginning_up_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    // 25 frames a second: 0.4 s is where frame 10 begins, 0.41 s is within it.
    let lines = "path,from,to\nh264_b.mp4,0.4,0.8\nh264_b.mp4, 0.41 ,0.8\nh264_b.mp4,1.56,1.6\n\
                 h264_b.mp4,0,1.61\n";
    let path = manifest(root.path(), lines);
    let whole = Shown::of(VIDEOS[0]);
    let sampling = |start| ClipSampling { frames: 12, start, ..ClipSampling::default() };
    let found = frames(&record(&load(&path, config(sampling(ClipStart::At(0.0)), of_part())), 0));
    for (clip, [first, last]) in found.iter().zip([[10, 19], [10, 19], [39, 39], [0, 39]]) {
        for (number, frame) in clip.iter().enumerate() {
            assert!(*frame == whole.frames[(first + number).min(last)], "{first}, {number}");
        }
    }
    assert_eq!(found.len(), 4);
    // Ten frames: a clip of four starts at the third or the fourth, and at the second second.
    let four = |start| ClipSampling { frames: 4, ..sampling(start) };
    let path = manifest(root.path(), "path,from,to,time\nh264_b.mp4,0.4,0.8,0.5\n");
    for (start, first) in [(ClipStart::Center, 13), (ClipStart::At(0.2), 15)] {
        let found = frames(&record(&load(&path, config(four(start), of_part())), 0));
        assert!(found[0] == whole.frames[first..first + 4], "{start:?}");
    }
    let two = ClipSampling { clips: 2, ..four(ClipStart::Uniform) };
    let found = frames(&record(&load(&path, config(two, of_part())), 0));
    assert!(found[0] == [&whole.frames[10..14], &whole.frames[16..20]].concat());
    let at = columns(None, None, Some("time"));
    let found = frames(&record(&load(&path, config(four(ClipStart::Random), at)), 0));
    assert!(found[0] == whole.frames[12..16]);
    let fps = ClipSampling { spacing: Spacing::Fps(12.5), ..four(ClipStart::Random) };
    let all = columns(Some("from"), Some("to"), Some("time"));
    let found = frames(&record(&load(&path, config(fps, all)), 0));
    assert!(found[0] == [12, 14, 16, 18].map(|frame| whole.frames[frame].clone()));
}

#[test]
fn columns_of_parquet_and_json_lines_have_times_too() {
    let root = tempfile::tempdir().unwrap();
    let whole = Shown::of(VIDEOS[0]);
    let sampling = ClipSampling { frames: 5, ..ClipSampling::default() };
    let path = root.path().join("clips.parquet");
    let image = std::fs::read(tl_testdata::shipped!("video").join(VIDEOS[0])).unwrap();
    let name = VIDEOS[0].to_owned();
    write_parquet(
        &path,
        Form::Plain,
        &[Row { name, image, label: String::new(), text: "0.44".to_owned() }],
    );
    let lines = r#"{"path": "h264_b.mp4", "txt": 0.44}"#;
    let _videos = manifest(root.path(), "");
    let json = root.path().join("clips.jsonl");
    std::fs::write(&json, lines).unwrap();
    for path in [path, json] {
        let at = columns(None, None, Some("txt"));
        let found = frames(&record(&load(&path, config(sampling, at)), 0));
        assert!(found[0] == whole.frames[11..16], "{path:?}");
    }
}

fn message(lines: &str, columns: ClipColumns) -> String {
    let root = tempfile::tempdir().unwrap();
    let path = manifest(root.path(), lines);
    let loader = load(&path, config(ClipSampling::default(), columns));
    loader.epoch(0).find_map(Result::err).unwrap().to_string()
}

#[test]
fn times_that_make_no_part_are_errors_of_the_sample_by_name() {
    let cases = [
        ("0.8,0.4,0", "the part of the video is from 0.8 s to 0.4 s, expected an end after"),
        ("0.4,0.4,0", "the part of the video is from 0.4 s to 0.4 s, expected an end after"),
        ("NaN,0.4,0", "column `from` is `NaN`, expected seconds as a number"),
        ("0,inf,0", "column `to` is `inf`, expected seconds as a number"),
        ("0,,0", "column `to` is ``, expected seconds as a number"),
        ("soon,1,0", "column `from` is `soon`, expected seconds as a number"),
        ("0,1.7,0", "the part of the video ends at 1.7 s, the video at 1.6 s"),
        ("1.6,1.61,0", "no frame is on display at 1.6 s, the video shows frames from 0 s to 1.6 s"),
        ("-0.1,1,0", "no frame is on display at -0.1 s, the video shows frames from 0 s to 1.6 s"),
        ("0.4,0.8,0.3", "the clip begins at 0.3 s, its part of the video is from 0.4 s to 0.8 s"),
        ("0.4,0.8,0.8", "the clip begins at 0.8 s, its part of the video is from 0.4 s to 0.8 s"),
        ("0.4,0.8,2", "no frame is on display at 2 s, the video shows frames from 0 s to 1.6 s"),
    ];
    for (row, expected) in cases {
        let lines = format!("path,from,to,time\nh264_b.mp4,{row}\n");
        // Times of clips are read where they are asked for.
        let at = (!row.ends_with(",0")).then_some("time");
        let error = message(&lines, columns(Some("from"), Some("to"), at));
        assert!(error.contains(expected), "{row}: {error}");
        assert!(error.contains("h264_b.mp4") && !error.contains('\n'), "{error}");
    }
    let json = tempfile::tempdir().unwrap();
    let _videos = manifest(json.path(), "");
    let path = json.path().join("parts.jsonl");
    let lines = "{\"path\": \"h264_b.mp4\", \"from\": 0.4}\n{\"path\": \"h264_b.mp4\"}\n";
    std::fs::write(&path, lines).unwrap();
    let loader = load(&path, config(ClipSampling::default(), columns(Some("from"), None, None)));
    let error = loader.epoch(0).find_map(Result::err).unwrap().to_string();
    assert!(error.contains("no time in column `from`"), "{error}");
}

#[test]
fn settings_without_their_columns_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = manifest(root.path(), "path,from\nh264_b.mp4,0\n");
    let refusal = |sampling, columns| {
        let dataset = Dataset::open(&[&path]).unwrap();
        Loader::new(dataset, config(sampling, columns)).unwrap_err()
    };
    let sampling = ClipSampling::default();
    let error = refusal(sampling, columns(Some("from"), Some("until"), None));
    assert!(matches!(&error, PipelineError::UnknownField { name, .. } if name == "until"));
    let several = ClipSampling { clips: 2, ..sampling };
    let error = refusal(several, columns(None, None, Some("from"))).to_string();
    assert!(error.contains("2 clips of a sample start at the time in column `from`"), "{error}");
    let rows = ClipSampling { start: ClipStart::Rows, ..sampling };
    let error = refusal(rows, columns(None, None, Some("from"))).to_string();
    assert!(error.contains("leave out columns of times"), "{error}");
    let other = tempfile::tempdir().unwrap();
    let missing = manifest(other.path(), "path,from\nother.mp4,0\n");
    let error = Dataset::open(&[missing]).unwrap_err().to_string();
    assert!(error.contains("other.mp4"), "{error}");
    // States go with the columns.
    let state = load(&path, config(sampling, ClipColumns::default())).state(0).unwrap();
    let from = columns(Some("from"), None, None);
    let at = columns(None, None, Some("from"));
    for other in [from.clone(), at] {
        let error = load(&path, config(sampling, other)).check(&state).unwrap_err();
        assert!(matches!(error, PipelineError::StateMismatch { what: "recipe", .. }), "{error}");
    }
    let state = load(&path, config(sampling, from.clone())).state(0).unwrap();
    load(&path, config(sampling, from)).check(&state).unwrap();
}

/// Parts of videos, as the number of a video and two shares of its time.
fn parts() -> impl Strategy<Value = Vec<(usize, f64, f64)>> {
    proptest::collection::vec((0..VIDEOS.len(), 0.0..0.97, 0.03..1.0_f64), 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Random clips begin at the frame of their draw and stay within their parts, for any workers,
    /// ranks and resumption.
    #[test]
    fn clips_stay_within_their_parts_for_any_workers_ranks_and_resumption(
        parts in parts(),
        count in 1_u32..5,
        stride in 1_u32..4,
        epoch in 0_u32..3,
        workers in proptest::sample::select(vec![1_usize, 3, 7]),
        world in 1_u32..4,
        resumed_at in 0_usize..4,
    ) {
        let root = tempfile::tempdir().unwrap();
        let videos = VIDEOS.map(Shown::of);
        let mut lines = "path,from,to\n".to_owned();
        let mut ranges = Vec::new();
        for (video, from, length) in parts {
            let Shown { times, end, .. } = &videos[video];
            let from = times[0] + from * (end - times[0]);
            let to = (from + length * (end - from)).max(from + 1e-6);
            writeln!(lines, "{},{from},{to}", VIDEOS[video]).unwrap();
            ranges.push((video, videos[video].part(from, to)));
        }
        let path = manifest(root.path(), &lines);
        let spacing = Spacing::Frames(stride);
        let sampling = ClipSampling { frames: count, spacing, ..ClipSampling::default() };
        let sampler = Shuffle::Full.into();
        let one = LoaderConfig { workers: 1, sampler, ..config(sampling, of_part()) };
        let expected = record(&load(&path, one.clone()), epoch);
        let found = frames(&expected);
        prop_assert_eq!(found.len(), ranges.len());
        for ((sample, clip), (video, part)) in (0..).zip(&found).zip(&ranges) {
            let starts = part.len().saturating_sub(((count - 1) * stride) as usize).max(1);
            let mut rng = Rng::new(SEED, epoch, sample, 255);
            let start = part.start + rng.below(u32::try_from(starts).unwrap()) as usize;
            let mut last = start;
            for (number, frame) in (0..).zip(clip) {
                let wanted = start + number * stride as usize;
                last = if part.contains(&wanted) { wanted } else { last };
                prop_assert!(*frame == videos[*video].frames[last], "{sample} {number} {part:?}");
            }
        }
        let other = LoaderConfig { workers, ..one };
        let loader = load(&path, other.clone());
        prop_assert!(record(&loader, epoch) == expected);
        let mut broken = loader.epoch(epoch);
        let resumed_at = resumed_at.min(expected.len());
        for _ in 0..resumed_at {
            broken.next().unwrap().unwrap();
        }
        let state = broken.state().unwrap();
        drop(broken);
        let resumed = load(&path, other.clone());
        prop_assert!(record_rest(resumed.resume(&state).unwrap()) == expected[resumed_at..]);
        let mut together = Vec::new();
        for rank in 0..world {
            let shard = Shard { rank, world, tail: Some(Tail::Uneven) };
            together.extend(record(&load(&path, LoaderConfig { shard, ..other.clone() }), epoch));
        }
        prop_assert!(frames(&together) == found);
    }
}
