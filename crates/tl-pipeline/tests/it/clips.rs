//! Clips: batches against frames that are decoded one by one, for any threads, ranks, containers and
//! resumption, and with damaged videos.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tbl_io::{
    Compression, NewSample, StreamWriter, TarOptions, TarWriter, WriteOptions, ZstdLevel,
};
use tl_pipeline::{
    Beyond, CacheConfig, CacheKind, ClipSampling, ClipStart, ClipWork, Dataset, Loader,
    LoaderConfig, MemoryCache, OnError, Outcome, PipelineError, Readers, Renderer, Shard, Shuffle,
    Spacing, Tail, Work,
};
use tl_transform::op::{
    CenterCrop, RandomHorizontalFlip, RandomResizedCrop, RandomRotation, Resize, Size,
};
use tl_transform::{Draw, Dtype, Layout, Op, OutputSpec, Recipe, Rng};
use tl_video::{FrameDecoder, Limits, Parity, Picture, Region, VideoIndex};

use crate::content::{Record, record, record_rest};
use crate::parquet_files::{Form, Row, write_parquet};
use crate::store::{MemoryStore, upload};

const SEED: u64 = 42;

/// Clips in the order of their names: AV1, H.264 with B pictures, open groups, edits, and one turned, and
/// VP9 with hidden pictures.
const CLIPS: [&str; 11] = [
    "av1.mp4",
    "av1_10_bits.mkv",
    "h264.mkv",
    "h264_b.mp4",
    "h264_edit.mp4",
    "h264_edits.mp4",
    "h264_open.mp4",
    "h264_opendml.avi",
    "h264_rate.mp4",
    "h264_rotated.mov",
    "vp9_hidden.webm",
];

fn stored(name: &str) -> Vec<u8> {
    let folder = tl_testdata::shipped!("video");
    std::fs::read(folder.join(name)).unwrap()
}

/// A folder with these clips, in two classes.
fn folder(root: &Path, names: &[&str]) -> PathBuf {
    let root = root.join("folder");
    for (number, name) in names.iter().enumerate() {
        let path = root.join(["run", "walk"][number % 2]).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, stored(name)).unwrap();
    }
    root
}

fn recipe(ops: Vec<Op>) -> Recipe {
    Recipe::new(ops, OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc }).unwrap()
}

/// A recipe with something random about place, direction and pixels.
fn train(side: u32) -> Recipe {
    recipe(vec![
        RandomResizedCrop::new(side).into(),
        RandomHorizontalFlip { p: 0.5 }.into(),
        RandomRotation::new(20.0).into(),
    ])
}

fn config(recipe: Recipe, sampling: ClipSampling) -> LoaderConfig {
    let work = Work::Clips(ClipWork::new(recipe, sampling));
    let sampler = Shuffle::Full.into();
    LoaderConfig { sampler, seed: SEED, batch_size: 3, workers: 2, ..LoaderConfig::new(work) }
}

fn load(path: &Path, config: LoaderConfig) -> Loader {
    Loader::new(Dataset::open(&[path]).unwrap(), config).unwrap()
}

/// The bytes of each sample of an epoch.
fn rows(records: &[Record]) -> BTreeMap<u64, Vec<u8>> {
    let mut rows = BTreeMap::new();
    for Record { indices, bytes, .. } in records {
        let row = bytes.len() / indices.len();
        rows.extend(indices.iter().copied().zip(bytes.chunks_exact(row).map(<[u8]>::to_vec)));
    }
    rows
}

/// Reads every frame of a clip as it is displayed: RGB, width and height.
fn displayed(bytes: &[u8]) -> (Vec<Vec<u8>>, u32, u32) {
    let index = VideoIndex::open(bytes, &Limits::default()).unwrap();
    let mut decoder = FrameDecoder::new(&index, &Limits::default()).unwrap();
    let mut frames = Vec::new();
    let mut size = (0, 0);
    for frame in 0..index.frame_count() {
        let plan = index.cost(&[frame]).unwrap();
        let mut sink = |_, picture: Picture| {
            let (width, height) = (picture.width as usize, picture.height as usize);
            let mut pixels = vec![[0; 3]; width * height];
            let whole = Region::whole(&picture);
            picture.rgb(whole, Parity::Ffmpeg, pixels.as_flattened_mut()).unwrap();
            let turned: Vec<[u8; 3]> = if index.info().rotation == 0 {
                pixels
            } else {
                assert_eq!(index.info().rotation, 270);
                // Column `x` from the right of the picture is row `x`.
                (0..width)
                    .flat_map(|y| (0..height).map(move |x| x * width + width - 1 - y))
                    .map(|place| pixels[place])
                    .collect()
            };
            let is_turned = index.info().rotation != 0;
            size = if is_turned { (height, width) } else { (width, height) };
            frames.push(turned.into_flattened());
        };
        decoder.decode(&index, &plan, bytes, &mut sink).unwrap();
    }
    (frames, u32::try_from(size.0).unwrap(), u32::try_from(size.1).unwrap())
}

#[test]
fn a_clip_has_the_frames_of_its_draw_with_one_plan() {
    let root = tempfile::tempdir().unwrap();
    let mut names = CLIPS.to_vec();
    if cfg!(feature = "hevc") {
        names.extend(["hevc.mp4", "hevc_10_bits.mkv", "hevc_open.avi"]);
    }
    let path = folder(root.path(), &names);
    let sampling = ClipSampling {
        frames: 4,
        clips: 2,
        spacing: Spacing::Frames(3),
        ..ClipSampling::default()
    };
    let recipe = train(24);
    let loader = load(&path, config(recipe.clone(), sampling));
    let of_clips = recipe.with_draws(2).unwrap();
    let mut renderer = Renderer::new(&of_clips);
    let mut seen = 0;
    for batch in loader.epoch(1) {
        let batch = batch.unwrap();
        assert_eq!(batch.shape().as_deref(), Some(&[batch.len(), 2, 4, 24, 24, 3][..]));
        let of_sample = batch.images().len() / batch.len();
        for (row, &sample) in batch.images().chunks_exact(of_sample).zip(batch.indices()) {
            let entry = loader.dataset().entry(sample).unwrap();
            let name = String::from_utf8(entry.key.unwrap().into_owned()).unwrap();
            let label = i64::from(name.starts_with("walk"));
            assert_eq!(loader.dataset().label(sample), Some(label));
            let (frames, width, height) = displayed(&stored(name.split_once('/').unwrap().1));
            let draw = Draw { seed: SEED, epoch: 1, sample };
            let mut rng = Rng::new(SEED, 1, sample, 255);
            for (number, clip) in (0..).zip(row.chunks_exact(of_sample / 2)) {
                let start = rng.below(u32::try_from(frames.len() - 9).unwrap()) as usize;
                let mut plan = of_clips.plan(width, height, draw).unwrap();
                of_clips.plan_view_into((width, height), draw, number, &mut plan).unwrap();
                for (number, found) in clip.chunks_exact(of_sample / 8).enumerate() {
                    let mut expected = vec![0; found.len()];
                    let pixels = &frames[start + 3 * number];
                    renderer.render(&plan, pixels, width, height, &mut expected).unwrap();
                    assert!(found == expected, "{name}, frame {number} from {start}");
                }
            }
            seen += 1;
        }
    }
    assert_eq!(seen, names.len());
}

#[test]
fn batches_have_the_form_of_the_recipe() {
    let root = tempfile::tempdir().unwrap();
    let path = folder(root.path(), &CLIPS[..3]);
    let sampling = ClipSampling { frames: 5, ..ClipSampling::default() };
    for dtype in [Dtype::U8, Dtype::F32, Dtype::F16, Dtype::Bf16] {
        for layout in [Layout::Chw, Layout::Hwc] {
            let recipe = Recipe::imagenet_train(16).unwrap();
            let recipe = if dtype == Dtype::U8 {
                recipe.into_pixels(layout)
            } else {
                recipe.with_output(OutputSpec { dtype, layout }).unwrap()
            };
            let loader = load(&path, config(recipe, sampling));
            let batch = loader.epoch(0).next().unwrap().unwrap();
            let shape = match layout {
                Layout::Chw => [3, 5, 3, 16, 16],
                Layout::Hwc => [3, 5, 16, 16, 3],
            };
            assert_eq!(batch.shape().as_deref(), Some(&shape[..]));
            assert_eq!(batch.images().len(), 3 * 5 * 768 * dtype.bytes());
            assert_eq!(batch.sizes(), [[16, 16]; 3]);
        }
    }
}

fn tar(root: &Path) -> PathBuf {
    let path = root.join("clips.tar");
    let mut writer = TarWriter::create(&path, TarOptions::default()).unwrap();
    for name in CLIPS {
        writer.append(name.as_bytes(), &stored(name)).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn tbl(root: &Path, name: &str, compression: Compression) -> PathBuf {
    let path = root.join(name);
    let options = WriteOptions { compression, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&path, options).unwrap();
    for name in CLIPS {
        let bytes = stored(name);
        writer
            .write_sample(&NewSample { key: Some(name.as_bytes()), ..NewSample::new(&bytes) })
            .unwrap();
    }
    writer.finish().unwrap();
    path
}

fn parquet(root: &Path, name: &str, form: Form) -> PathBuf {
    let path = root.join(name);
    let row = |name: &&str| Row {
        name: (*name).to_owned(),
        image: stored(name),
        label: String::new(),
        text: String::new(),
    };
    write_parquet(&path, form, &CLIPS.iter().map(row).collect::<Vec<_>>());
    path
}

#[test]
fn containers_make_no_difference() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let flat = root.join("flat");
    std::fs::create_dir(&flat).unwrap();
    CLIPS.iter().for_each(|name| std::fs::write(flat.join(name), stored(name)).unwrap());
    let sampling = ClipSampling { frames: 3, spacing: Spacing::Fps(12.0), ..Default::default() };
    let config = config(train(16), sampling);
    let bytes = |records: Vec<Record>| rows(&records);
    let expected = bytes(record(&load(&flat, config.clone()), 2));
    assert_eq!(expected.len(), CLIPS.len());
    let zstd = Compression::Zstd(ZstdLevel::DEFAULT);
    let paths = [
        tar(root),
        tbl(root, "plain.tbl", Compression::None),
        tbl(root, "packed.tbl", zstd),
        parquet(root, "plain.parquet", Form::Plain),
        parquet(root, "packed.parquet", Form::Packed),
    ];
    for path in &paths {
        assert!(bytes(record(&load(path, config.clone()), 2)) == expected, "{path:?}");
    }
    let store = MemoryStore::default();
    let urls = [upload(&store, &paths[0]), upload(&store, &flat)];
    for url in &urls {
        let loader = Loader::new(store.open_all(&[url]), config.clone()).unwrap();
        assert!(bytes(record(&loader, 2)) == expected, "{url}");
    }
}

#[test]
fn files_are_named_one_by_one() {
    let root = tempfile::tempdir().unwrap();
    let path = folder(root.path(), &CLIPS);
    let files: Vec<PathBuf> = [path.join("walk/h264_b.mp4"), path.join("run/h264.mkv")].into();
    let config = config(train(16), ClipSampling::default());
    let loader = Loader::new(Dataset::open(&files).unwrap(), config).unwrap();
    assert_eq!(rows(&record(&loader, 0)).len(), 2);
}

/// The number of random runs.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    asked.unwrap_or(48)
}

fn samplings() -> impl Strategy<Value = ClipSampling> {
    let spacing = prop_oneof![
        (1_u32..4).prop_map(Spacing::Frames),
        (0.01..0.3).prop_map(Spacing::Seconds),
        (3.0..40.0).prop_map(Spacing::Fps),
    ];
    let start = prop_oneof![
        3 => Just(ClipStart::Random),
        1 => Just(ClipStart::Uniform),
        1 => Just(ClipStart::Center),
        1 => (0.35..0.45).prop_map(ClipStart::At),
    ];
    let beyond = prop_oneof![Just(Beyond::RepeatLast), Just(Beyond::Wrap)];
    (1_u32..6, 1_u32..4, spacing, start, beyond).prop_map(
        |(frames, clips, spacing, start, beyond)| ClipSampling {
            frames,
            // Several at one time would have the same frames, and are refused.
            clips: if matches!(start, ClipStart::At(_)) { 1 } else { clips },
            spacing,
            start,
            beyond,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// The contract: workers, ranks and resumption change no byte.
    #[test]
    fn workers_ranks_and_resumption_make_no_difference(
        sampling in samplings(),
        epoch in 0_u32..3,
        workers in proptest::sample::select(vec![1_usize, 2, 3, 7]),
        world in 1_u32..4,
        resumed_at in 0_usize..4,
        budget in proptest::option::weighted(0.3, Just(1_u64 << 30)),
    ) {
        let root = tempfile::tempdir().unwrap();
        let path = folder(root.path(), &CLIPS[..6]);
        let whole = LoaderConfig { workers: 1, ..config(train(8), sampling) };
        let expected = record(&load(&path, whole.clone()), epoch);
        let other = LoaderConfig { workers, memory_budget: budget, ..whole };
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
        let mut together = BTreeMap::new();
        for rank in 0..world {
            let shard = Shard { rank, world, tail: Some(Tail::Uneven) };
            let part = record(&load(&path, LoaderConfig { shard, ..other.clone() }), epoch);
            together.extend(rows(&part));
        }
        prop_assert!(together == rows(&expected));
    }
}

#[test]
fn states_go_with_the_choice_of_frames() {
    let root = tempfile::tempdir().unwrap();
    let path = folder(root.path(), &CLIPS[..3]);
    let sampling = ClipSampling::default();
    let state = load(&path, config(train(16), sampling)).state(0).unwrap();
    let others = [
        ClipSampling { frames: 8, ..sampling },
        ClipSampling { clips: 2, ..sampling },
        ClipSampling { spacing: Spacing::Frames(2), ..sampling },
        ClipSampling { spacing: Spacing::Seconds(1.0), ..sampling },
        ClipSampling { spacing: Spacing::Fps(1.0), ..sampling },
        ClipSampling { start: ClipStart::Center, ..sampling },
        ClipSampling { start: ClipStart::At(0.5), ..sampling },
        ClipSampling { beyond: Beyond::Wrap, ..sampling },
    ];
    for other in others {
        let error = load(&path, config(train(16), other)).check(&state).unwrap_err();
        assert!(matches!(error, PipelineError::StateMismatch { what: "recipe", .. }), "{error}");
    }
    let exact = ClipWork { parity: Parity::Exact, ..ClipWork::new(train(16), sampling) };
    let exact = LoaderConfig { work: Work::Clips(exact), ..config(train(16), sampling) };
    assert!(load(&path, exact).check(&state).is_err());
    load(&path, config(train(16), sampling)).check(&state).unwrap();
}

/// The clips, the second of which has a damaged picture in its middle.
fn damaged(root: &Path) -> PathBuf {
    let path = folder(root, &CLIPS);
    let file = path.join("walk/h264_b.mp4");
    let mut bytes = std::fs::read(&file).unwrap();
    let index = VideoIndex::open(&bytes[..], &Limits::default()).unwrap();
    let packet = index.packet(index.frame(15).unwrap().packet).unwrap();
    let start = usize::try_from(packet.offset).unwrap();
    bytes[start..start + usize::try_from(packet.bytes).unwrap()].fill(0xff);
    std::fs::write(file, bytes).unwrap();
    path
}

#[test]
fn damaged_videos_are_skipped_replaced_filled_or_named() {
    let root = tempfile::tempdir().unwrap();
    let path = damaged(root.path());
    let sampling =
        ClipSampling { frames: 20, spacing: Spacing::Frames(1), ..ClipSampling::default() };
    let sampling = ClipSampling { start: ClipStart::Uniform, ..sampling };
    let of = |on_error, workers| {
        load(&path, LoaderConfig { on_error, workers, ..config(train(16), sampling) })
    };
    let raised = of(OnError::Raise, 2);
    let error = raised.epoch(0).find_map(Result::err).unwrap().to_string();
    assert!(error.contains("h264_b.mp4") && error.contains("frame 15: packet "), "{error}");
    assert!(error.contains(" at byte ") && !error.contains('\n'), "{error}");
    for on_error in [OnError::Skip, OnError::Replace, OnError::Fill] {
        let expected = record(&of(on_error, 1), 0);
        for workers in [2, 3, 7] {
            let loader = of(on_error, workers);
            assert!(record(&loader, 0) == expected, "{on_error:?}, {workers} workers");
            let audit = loader.audit();
            assert_eq!(audit.len(), 1);
            let is_as_asked = matches!(
                (on_error, audit[0].outcome),
                (OnError::Skip, Outcome::Skipped)
                    | (OnError::Fill, Outcome::Filled)
                    | (OnError::Replace, Outcome::Replaced { .. })
            );
            assert!(is_as_asked, "{audit:?}");
        }
        let samples = expected.iter().map(|batch| batch.indices.len()).sum::<usize>();
        assert_eq!(samples, CLIPS.len() - usize::from(on_error == OnError::Skip));
    }
}

#[test]
fn a_damaged_frame_that_no_clip_needs_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let path = damaged(root.path());
    let sampling = ClipSampling { frames: 4, start: ClipStart::At(0.0), ..ClipSampling::default() };
    let mut config = config(train(16), sampling);
    let names = ["walk/h264_b.mp4", "run/h264.mkv"].map(|name| path.join(name));
    config.workers = 1;
    let loader = Loader::new(Dataset::open(&names).unwrap(), config).unwrap();
    assert_eq!(rows(&record(&loader, 0)).len(), 2);
}

fn refusal(change: impl FnOnce(&mut LoaderConfig)) -> String {
    let root = tempfile::tempdir().unwrap();
    let path = folder(root.path(), &CLIPS[..2]);
    let mut config = config(train(16), ClipSampling::default());
    change(&mut config);
    Loader::new(Dataset::open(&[path]).unwrap(), config).unwrap_err().to_string()
}

fn of_recipe(recipe: Recipe) -> String {
    refusal(|config| {
        config.work = Work::Clips(ClipWork::new(recipe, ClipSampling::default()));
    })
}

fn of_sampling(sampling: ClipSampling) -> String {
    refusal(|config| config.work = Work::Clips(ClipWork::new(train(16), sampling)))
}

#[test]
fn settings_that_make_no_clips_are_refused_by_name() {
    let check = |error: String, expected: &str| assert!(error.contains(expected), "{error}");
    check(of_recipe(recipe(vec![Resize::new(16).into()])), "keeps the sizes of videos");
    let two = train(16).with_draws(2).unwrap();
    check(of_recipe(two), "set the number of clips");
    let sampling = ClipSampling::default();
    check(of_sampling(ClipSampling { frames: 0, ..sampling }), "frames of a clip is 0");
    check(of_sampling(ClipSampling { clips: 257, ..sampling }), "clips of a video is 257");
    let spacing = Spacing::Frames(0);
    check(of_sampling(ClipSampling { spacing, ..sampling }), "spacing of frames is 0");
    let spacing = Spacing::Fps(f64::NAN);
    check(of_sampling(ClipSampling { spacing, ..sampling }), "frames a second of a clip are NaN");
    let start = ClipStart::At(f64::INFINITY);
    check(of_sampling(ClipSampling { start, ..sampling }), "clips start at inf seconds");
    let start = ClipStart::At(0.5);
    let several = ClipSampling { clips: 3, start, ..sampling };
    check(of_sampling(several), "3 clips of a video start at one time");
    check(refusal(|config| config.readers = Readers::Threads(2)), "readers bring whole samples");
    let memory = Some(MemoryCache { kind: CacheKind::Decoded, bytes: 1 << 20 });
    let cache = CacheConfig { memory, ..CacheConfig::default() };
    check(refusal(|config| config.cache = cache), "caches keep whole samples");
}

#[test]
fn an_image_beside_videos_is_named_as_the_reason() {
    let root = tempfile::tempdir().unwrap();
    let path = folder(root.path(), &CLIPS);
    std::fs::copy(tl_testdata::shipped!("jpeg/adobe_ycc.jpg"), path.join("cover.jpg")).unwrap();
    let error =
        Loader::new(Dataset::open(&[path]).unwrap(), config(train(16), ClipSampling::default()));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("clips need videos, and the first sample is an image"), "{error}");
}

#[test]
fn videos_without_the_clips_are_errors_of_their_samples() {
    let root = tempfile::tempdir().unwrap();
    let path = folder(root.path(), &["h264_opendml.avi"]);
    let error = |sampling| {
        let crop = recipe(vec![CenterCrop { size: Size::exact(16, 16) }.into()]);
        let loader = load(&path, config(crop, sampling));
        loader.epoch(0).find_map(Result::err).unwrap().to_string()
    };
    let sampling = ClipSampling { frames: 20, beyond: Beyond::Error, ..ClipSampling::default() };
    let short = error(sampling);
    assert!(
        short.ends_with("the clip from frame 0 on has 16 of 20 frames, the last one is 15"),
        "{short}"
    );
    let late = error(ClipSampling { start: ClipStart::At(9.0), ..ClipSampling::default() });
    assert!(
        late.contains("no frame is on display at 9 s, the video shows frames from 0 s to 0.64 s"),
        "{late}"
    );
    let mut refused = vec![("vp8.webm", "no decoder for VP8 (`V_VP8`)")];
    if cfg!(not(feature = "hevc")) {
        refused.push((
            "hevc.mp4",
            "no decoder for H.265 (`hev1`): builds with the feature `hevc` have one",
        ));
    }
    for (name, reason) in refused {
        let root = tempfile::tempdir().unwrap();
        let path = folder(root.path(), &[name]);
        let loader = load(&path, config(train(16), ClipSampling::default()));
        let error = loader.epoch(0).find_map(Result::err).unwrap().to_string();
        assert!(error.contains(name) && error.contains(reason), "{error}");
    }
}

/// A TBL file of one video, with this index.
fn indexed(path: &Path, video: &[u8], index: Option<&[u8]>) {
    let options = WriteOptions { sync: false, overwrite: true, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(path, options).unwrap();
    writer.write_sample(&NewSample { row_index: index, ..NewSample::new(video) }).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_stored_index_stands_for_the_tables_of_the_video() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("clip.tbl");
    let video = stored("h264_open.mp4");
    let index = VideoIndex::open(&video[..], &Limits::default()).unwrap();
    let stored_index = index.to_bytes(video.len() as u64);
    let clips = || -> Result<Vec<u8>, PipelineError> {
        let sampling = ClipSampling { frames: 4, ..ClipSampling::default() };
        let config = LoaderConfig { batch_size: 1, ..config(train(32), sampling) };
        let loader = load(&path, config);
        let batch = loader.epoch(0).next().unwrap()?;
        Ok(batch.images().to_vec())
    };
    indexed(&path, &video, None);
    let expected = clips().unwrap();
    indexed(&path, &video, Some(&stored_index));
    assert!(clips().unwrap() == expected);
    // Without `moov` it is the index alone that knows the packets.
    let mut cut = video.clone();
    let moov = cut.windows(4).position(|name| name == b"moov").unwrap();
    cut[moov..moov + 4].copy_from_slice(b"free");
    indexed(&path, &cut, Some(&stored_index));
    assert!(clips().unwrap() == expected);
    indexed(&path, &cut, None);
    assert!(clips().is_err());
    // Of a video of another length.
    let other = index.to_bytes(video.len() as u64 + 1);
    indexed(&path, &video, Some(&other));
    let error = clips().unwrap_err().to_string();
    assert!(error.contains("sample 0") && error.contains("video index: length of"), "{error}");
}
