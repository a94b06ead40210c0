//! Batches of images of different sizes, grouped and padded.

use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tbl_format::SampleFormat;
use tbl_io::{NewSample, ReadError, StreamWriter, WriteOptions};
use tl_decode::{DecodeOptions, Exif};
use tl_pipeline::{
    Batch, Batching, Buckets, CacheConfig, CacheKind, Dataset, Loader, LoaderConfig, MemoryCache,
    OnError, Outcome, PaddingStats, PipelineError, Readers, Renderer, SampleFault, Sampler, Shard,
    Shuffle, Tail, Work,
};
use tl_transform::op::{RandomHorizontalFlip, RandomShortestSize, ToFloat};
use tl_transform::{Draw, Dtype, Interpolation, Layout, Op, OutputSpec, Recipe};

use crate::memory::{Stored, bmps, config, dataset, indexed, loader, pixels, sample};

const SAMPLES: u32 = 61;

/// The shorter side is drawn from three, the aspect stays: the size depends on sample and epoch.
pub(crate) fn recipe(dtype: Dtype, layout: Layout) -> Recipe {
    let resize = RandomShortestSize {
        min_size: vec![12, 16, 24],
        max_size: None,
        interpolation: Interpolation::Bilinear,
        antialias: true,
    };
    let mut ops: Vec<Op> = vec![resize.into(), RandomHorizontalFlip::default().into()];
    ops.extend((dtype != Dtype::U8).then(|| Op::from(ToFloat {})));
    Recipe::new(ops, OutputSpec { dtype, layout }).unwrap()
}

fn buckets(window: u32, multiple: u32) -> LoaderConfig {
    let batching = Batching::Buckets(Buckets { window, multiple });
    LoaderConfig { batching, ..config(Work::Images(recipe(Dtype::U8, Layout::Hwc))) }
}

/// Sample `index` of epoch `epoch` by itself.
fn alone(recipe: &Recipe, epoch: u32, index: u64) -> ((u32, u32), Vec<u8>) {
    let (width, height, pixels) = pixels(u32::try_from(index).unwrap());
    let plan = recipe.plan(width, height, Draw { seed: 42, epoch, sample: index }).unwrap();
    let mut renderer = Renderer::new(recipe);
    let mut image = vec![0; renderer.output_bytes(plan.output_size())];
    renderer.render(&plan, &pixels, width, height, &mut image).unwrap();
    (plan.output_size(), image)
}

/// The numbers of row `row` inside the image, the rest of which has to be zero.
pub(crate) fn cut(batch: &Batch, row: usize) -> Vec<u8> {
    let spec = batch.spec().unwrap();
    let [height, width] = batch.sizes()[row].map(|side| side as usize);
    let (outer_width, outer_height) = (spec.width as usize, spec.height as usize);
    let bytes = spec.output.dtype.bytes();
    let (planes, pixel) =
        if spec.output.layout == Layout::Chw { (3, bytes) } else { (1, 3 * bytes) };
    let row_bytes = outer_width * outer_height * 3 * bytes;
    let image = &batch.images()[row * row_bytes..][..row_bytes];
    let mut inside = Vec::new();
    for (place, number) in image.chunks_exact(pixel).enumerate() {
        let (y, x) = (place / outer_width % outer_height, place % outer_width);
        if x < width && y < height {
            inside.extend_from_slice(number);
        } else {
            assert!(number.iter().all(|&byte| byte == 0), "padding at {x}, {y}");
        }
    }
    assert_eq!(inside.len(), planes * width * height * pixel);
    inside
}

fn received(loader: &Loader, epoch: u32) -> Vec<Batch> {
    loader.epoch(epoch).map(Result::unwrap).collect()
}

#[test]
fn every_image_is_the_one_it_is_alone_with_zeros_around_it() {
    for (dtype, layout) in
        [(Dtype::F32, Layout::Chw), (Dtype::F16, Layout::Hwc), (Dtype::U8, Layout::Chw)]
    {
        let recipe = recipe(dtype, layout);
        let work = Work::Images(recipe.clone());
        let loader = loader(bmps(SAMPLES), LoaderConfig { work, ..buckets(4, 8) });
        let (mut indices, mut shapes) = (Vec::new(), Vec::new());
        for batch in received(&loader, 2) {
            let spec = batch.spec().unwrap();
            assert!(spec.width % 8 == 0 && spec.height % 8 == 0, "{spec:?}");
            for (row, &index) in batch.indices().iter().enumerate() {
                let ((width, height), image) = alone(&recipe, 2, index);
                assert_eq!(batch.sizes()[row], [height, width]);
                assert!(cut(&batch, row) == image, "sample {index}");
            }
            indices.extend_from_slice(batch.indices());
            shapes.push((spec.width, spec.height));
        }
        indices.sort_unstable();
        assert!(indices.iter().copied().eq(0..SAMPLES.into()), "each once");
        shapes.dedup();
        assert!(shapes.len() > 3, "{shapes:?}");
    }
}

#[test]
fn samples_that_come_again_have_the_size_they_have_then() {
    let sampler = Sampler { repeat: 3, ..Shuffle::Full.into() };
    let loader = loader(bmps(20), LoaderConfig { sampler, ..buckets(3, 1) });
    let mut rows = 0;
    for batch in received(&loader, 0) {
        // With the seed of another of its three times some would have another size, and no room.
        rows += batch.len();
        let [width, height] = batch.spec().map(|spec| [spec.width, spec.height]).unwrap();
        let largest = |side: usize| batch.sizes().iter().map(|size| size[side]).max();
        assert_eq!((largest(1), largest(0)), (Some(width), Some(height)));
    }
    assert_eq!(rows, 60);
}

#[test]
fn batches_do_not_depend_on_workers_prefetch_or_how_they_are_reached() {
    let of = |workers, prefetch| {
        loader(bmps(SAMPLES), LoaderConfig { workers, prefetch, ..buckets(4, 1) })
    };
    let bytes = |batch: &Batch| (batch.indices().to_vec(), batch.spec(), batch.images().to_vec());
    let expected: Vec<_> = received(&of(1, 1), 1).iter().map(bytes).collect();
    for (workers, prefetch) in [(1, 3), (2, 2), (5, 1), (3, 20)] {
        let loader = of(workers, prefetch);
        let before: Vec<_> = received(&loader, 0).iter().map(bytes).collect();
        assert_ne!(before, expected);
        let batches: Vec<_> = received(&loader, 1).iter().map(bytes).collect();
        assert!(batches == expected, "{workers} workers, {prefetch} ahead");
        for number in [0, 7, 15] {
            let batch = loader.batch(1, number).unwrap();
            assert!(bytes(&batch) == expected[usize::try_from(number).unwrap()], "{number}");
        }
    }
}

/// The rows that all ranks receive together, resumed after every step on another number of ranks:
/// the sample, its validity, and its image without padding.
fn elastic(worlds: &[u32], tail: Tail) -> Vec<(u64, bool, Vec<u8>)> {
    let (mut rows, mut state) = (Vec::new(), None);
    for &world in worlds.iter().cycle() {
        let rank = |rank| {
            let shard = Shard { rank, world, tail: Some(tail) };
            let batch_size = 12 / world as usize;
            loader(
                bmps(SAMPLES),
                LoaderConfig { shard, batch_size, mixing_group: 1, ..buckets(2, 1) },
            )
        };
        let ranks: Vec<Loader> = (0..world).map(rank).collect();
        let mut epochs: Vec<_> = ranks
            .iter()
            .map(|rank| state.map_or_else(|| rank.epoch(3), |state| rank.resume(&state).unwrap()))
            .collect();
        for batch in epochs.iter_mut().filter_map(Iterator::next).map(Result::unwrap) {
            let row = |(row, &index)| (index, batch.valid()[row], cut(&batch, row));
            rows.extend(batch.indices().iter().enumerate().map(row));
        }
        if epochs.iter().all(|epoch| epoch.remaining() == 0) {
            return rows;
        }
        state = Some(epochs[0].state().unwrap());
    }
    unreachable!("worlds go round")
}

#[test]
fn any_number_of_ranks_goes_on_with_the_same_rows() {
    for tail in [Tail::Drop, Tail::Pad, Tail::Uneven] {
        let whole = elastic(&[1], tail);
        let count = match tail {
            Tail::Drop => 60,
            Tail::Pad => 72,
            Tail::Uneven => 61,
        };
        assert_eq!(whole.len(), count);
        for worlds in [&[2][..], &[3, 1], &[4, 2, 12]] {
            assert!(elastic(worlds, tail) == whole, "{worlds:?} {tail:?}");
        }
        // The padding of the last batch comes from the start of the order, and stays at the end.
        assert!(whole.iter().take(60).all(|(_, valid, _)| *valid));
        let valid = whole.iter().filter(|(_, valid, _)| *valid);
        let samples: BTreeSet<_> = valid.clone().map(|(sample, ..)| sample).collect();
        assert_eq!((valid.count(), samples.len()), (count.min(61), count.min(61)));
    }
}

#[test]
fn what_is_saved_is_what_the_shapes_say() {
    let config = |batching| LoaderConfig { batching, ..buckets(1, 1) };
    let grouped =
        loader(bmps(SAMPLES), config(Batching::Buckets(Buckets { window: 8, multiple: 1 })));
    let mut by_shapes = PaddingStats::default();
    for batch in received(&grouped, 0) {
        let spec = batch.spec().unwrap();
        let pixels = |[height, width]: [u32; 2]| u64::from(height) * u64::from(width);
        by_shapes.image_pixels += batch.sizes().iter().copied().map(pixels).sum::<u64>();
        by_shapes.padded_pixels += pixels([spec.height, spec.width]) * batch.len() as u64;
    }
    // Windows of one global batch change nothing, for one rank.
    let in_order =
        loader(bmps(SAMPLES), config(Batching::Buckets(Buckets { window: 1, multiple: 1 })));
    received(&in_order, 0);
    let ungrouped = in_order.stats().padding;
    assert_eq!(ungrouped.padded_pixels, ungrouped.unbucketed_pixels);
    by_shapes.unbucketed_pixels = ungrouped.padded_pixels;
    let stats = grouped.stats().padding;
    assert_eq!(stats, by_shapes);
    assert!(ungrouped.saved() == 0.0 && stats.saved() > 0.4, "{stats:?} {}", stats.saved());
}

#[test]
fn the_order_within_a_window_is_a_permutation_of_it() {
    let loader = loader(bmps(SAMPLES), buckets(2, 1));
    let order = loader.order(0);
    let place: HashMap<u64, u64> =
        (0..SAMPLES.into()).map(|place| (order.sample_at(place).unwrap(), place / 8)).collect();
    for batch in received(&loader, 0) {
        for index in batch.indices() {
            assert_eq!(place[index], batch.number() / 2, "sample {index}");
        }
    }
}

#[test]
fn an_index_that_is_wrong_is_the_samples_error() {
    let mut samples: Vec<_> = (0..12).map(|number| sample(number, SampleFormat::Bmp)).collect();
    // One that is larger than it says, one that says nothing, one that is smaller.
    samples[3].size = (2, 2);
    samples[5].size = (0, 7);
    samples[8].size = (500, 400);
    let config = LoaderConfig { on_error: OnError::Skip, ..buckets(1, 1) };
    let work = Work::Images(Recipe::decode());
    let loader = loader(dataset(samples), LoaderConfig { work, batch_size: 1, ..config });
    let mut rows = 0;
    for batch in received(&loader, 0) {
        rows += batch.len();
        for (row, &index) in batch.indices().iter().enumerate() {
            let (width, height, pixels) = pixels(u32::try_from(index).unwrap());
            assert_eq!((batch.sizes()[row], cut(&batch, row)), ([height, width], pixels));
        }
    }
    let mut skipped: Vec<u64> = loader
        .audit()
        .iter()
        .map(|skipped| {
            let fault = &skipped.error.fault;
            assert!(matches!(fault, SampleFault::BeyondBatch { .. }), "{fault}");
            skipped.error.index
        })
        .collect();
    skipped.sort_unstable();
    assert_eq!((rows, skipped), (10, vec![3, 5]));
}

/// One of two ranks cannot look up one sample once. Guessing a size would give the others of its
/// window places that the other rank does not know of.
#[test]
fn a_size_that_is_missing_for_a_moment_ends_the_epoch_and_moves_no_sample() {
    const BAD: u64 = 17;
    for panics in [false, true] {
        let mut rows = Vec::new();
        for rank in 0..2 {
            let fails = Arc::new(AtomicBool::new(false));
            let armed = Arc::clone(&fails);
            let samples = (0..64).map(|number| sample(number, SampleFormat::Bmp)).collect();
            let dataset = indexed(samples, move |index| {
                if index != BAD || !fails.swap(false, Ordering::Relaxed) {
                    return Ok(());
                }
                assert!(!panics, "injected");
                let (location, source) = ("index".into(), ErrorKind::TimedOut.into());
                Err(ReadError::Io { location, source }.for_sample(index, None))
            });
            let shard = Shard { rank, world: 2, tail: None };
            let sampler = Shuffle::None.into();
            let on_error = OnError::Skip;
            let config = LoaderConfig { shard, sampler, on_error, workers: 1, ..buckets(4, 1) };
            let loader = loader(dataset, config);
            armed.store(rank == 0, Ordering::Relaxed);
            if rank == 0 {
                let mut epoch = loader.epoch(0);
                let error = epoch.next().unwrap().unwrap_err();
                let PipelineError::SizeUnknown(sample) = &error else { panic!("{error}") };
                assert_eq!(sample.index, BAD);
                assert_eq!(matches!(sample.fault, SampleFault::Panicked { .. }), panics);
                assert!(epoch.next().is_none());
            }
            rows.extend(received(&loader, 0).iter().flat_map(|batch| batch.indices().to_vec()));
            assert!(loader.audit().is_empty());
        }
        rows.sort_unstable();
        assert!(rows.into_iter().eq(0..64), "{panics}");
    }
}

/// Also where many windows are in use at once: each sample's size is asked for once more than
/// without them.
#[test]
fn every_window_is_made_once() {
    let looks = |batching, readers| {
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        let samples = (0..SAMPLES).map(|number| sample(number, SampleFormat::Bmp)).collect();
        let dataset = indexed(samples, move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        // Six batches of one window each, and a reader or a hint rows on.
        let work = Work::Images(Recipe::decode());
        let config = LoaderConfig { batching, readers, work, workers: 2, ..buckets(1, 1) };
        let config = LoaderConfig { batch_size: 4, prefetch: 6, ..config };
        let loader = loader(dataset, LoaderConfig { prefetch_next_epoch: false, ..config });
        asked.store(0, Ordering::Relaxed);
        let rows: usize = received(&loader, 0).iter().map(Batch::len).sum();
        assert_eq!(rows, SAMPLES as usize);
        asked.load(Ordering::Relaxed)
    };
    let (windows, samples) = (Buckets { window: 1, multiple: 1 }, u64::from(SAMPLES));
    assert_eq!(looks(Batching::InOrder, Readers::Workers), samples);
    assert_eq!(looks(Batching::Buckets(windows), Readers::Workers), 2 * samples);
    // A reader looks where samples are that it reads.
    let looks = looks(Batching::Buckets(windows), Readers::Threads(2));
    assert!((2 * samples..=3 * samples).contains(&looks), "{looks} looks");
}

#[test]
fn what_cannot_be_grouped_is_refused_by_name() {
    let refused = |config: LoaderConfig| Loader::new(bmps(8), config).unwrap_err();
    let bytes = refused(LoaderConfig { work: Work::Bytes, ..buckets(1, 1) });
    assert!(bytes.to_string().ends_with("this loader produces bytes"), "{bytes}");
    let work = Work::Images(Recipe::imagenet_train(16).unwrap());
    let fixed = refused(LoaderConfig { work, ..buckets(1, 1) });
    assert!(fixed.to_string().contains("RandomResizedCrop"), "{fixed}");
    let decode = DecodeOptions { exif: Exif::Apply, ..DecodeOptions::default() };
    let turned = refused(LoaderConfig { decode, ..buckets(1, 1) });
    assert!(turned.to_string().contains("are not rotated yet"), "{turned}");
    for (window, multiple) in [(0, 1), (1 << 24, 1), (1, 0), (1, 65_536)] {
        let setting = refused(buckets(window, multiple));
        assert!(matches!(setting, PipelineError::Setting { .. }), "{setting}");
    }
    let mut unknown = sample(0, SampleFormat::Bmp);
    unknown.size = (0, 0);
    let error = Loader::new(dataset(vec![unknown]), buckets(1, 1)).unwrap_err();
    assert!(error.to_string().starts_with("in memory: buckets need image sizes"), "{error}");
}

#[test]
fn another_window_is_another_order() {
    let state = loader(bmps(SAMPLES), buckets(4, 1)).epoch(0).state().unwrap();
    for (window, multiple) in [(8, 1), (4, 2)] {
        let other = loader(bmps(SAMPLES), buckets(window, multiple));
        let error = other.resume(&state).unwrap_err();
        assert!(matches!(error, PipelineError::StateMismatch { what: "recipe", .. }), "{error}");
    }
}

/// The replacement has room in the padded batch, also where the others are tiny.
#[test]
fn a_replacement_comes_from_its_padded_batch() {
    let bad = [3, 20, 33];
    let mut received = Vec::new();
    for workers in [1, 3, 7] {
        let samples = (0..SAMPLES).map(|number| {
            let mut sample = sample(number, SampleFormat::Bmp);
            if bad.contains(&number) {
                sample.bytes.truncate(60);
            }
            sample
        });
        let config = LoaderConfig { on_error: OnError::Replace, workers, ..buckets(4, 1) };
        let loader = loader(dataset(samples.collect()), config);
        let mut rows = Vec::new();
        for batch in self::received(&loader, 1) {
            let indices = batch.indices();
            for (row, &index) in indices.iter().enumerate() {
                assert!(!bad.map(u64::from).contains(&index));
                assert_eq!(cut(&batch, row), alone(&recipe(Dtype::U8, Layout::Hwc), 1, index).1);
                rows.push(index);
            }
        }
        assert_eq!(rows.len(), SAMPLES as usize);
        let outcomes: Vec<_> = loader.audit().iter().map(|entry| entry.outcome).collect();
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Replaced { .. })));
        assert_eq!(outcomes.len(), bad.len());
        received.push((rows, outcomes));
    }
    assert!(received.iter().all(|one| *one == received[0]));
}

/// Buckets give a sample to either rank, so neither knows which it needs again: what came first
/// stays, and is found whenever its rank gets it.
#[test]
fn a_cache_of_one_rank_of_several_keeps_what_came_first() {
    // Raw images of one size in bytes and four in shape.
    let sample = |number: u32| {
        let side = [2, 4, 12, 24][number as usize % 4];
        let (size, bytes) = ((side, 48 / side), number.to_le_bytes().repeat(36));
        Stored { size, bytes, ..sample(number, SampleFormat::RawU8) }
    };
    let kept = 12usize;
    for rank in 0..2 {
        let memory = MemoryCache { kind: CacheKind::Encoded, bytes: kept as u64 * (144 + 192) };
        let config = LoaderConfig {
            shard: Shard { rank, world: 2, tail: None },
            cache: CacheConfig { memory: Some(memory), disk: None },
            prefetch_next_epoch: false,
            workers: 1,
            ..buckets(4, 1)
        };
        let loader = loader(dataset((0..64).map(sample).collect()), config);
        let seen = |epoch| -> Vec<u64> {
            let batches = received(&loader, epoch);
            batches.iter().flat_map(|batch| batch.indices().to_vec()).collect()
        };
        let first: Vec<u64> = seen(0).into_iter().take(kept).collect();
        let mut hits = 0;
        for epoch in 1..6 {
            hits += seen(epoch).iter().filter(|sample| first.contains(sample)).count() as u64;
            assert_eq!(loader.cache_stats().memory.hits, hits, "rank {rank}, epoch {epoch}");
        }
        assert!(hits > kept as u64, "{hits}");
    }
}

/// A TBL file has no size of an image that it could not decode: that is the sample's error, also of
/// the first one.
#[test]
fn a_file_whose_first_sample_is_damaged_has_sizes() {
    let root = tempfile::tempdir().unwrap();
    let write = |bad: &dyn Fn(u32) -> bool| {
        let path = root.path().join("a.tbl");
        let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
        let mut writer = StreamWriter::create(&path, options).unwrap();
        for number in 0..20 {
            let format = SampleFormat::Bmp;
            let Stored { bytes, size: (width, height), .. } = sample(number, format);
            let image = NewSample { format, width, height, ..NewSample::new(&bytes) };
            let damaged = NewSample { format, ..NewSample::new(&bytes[..60]) };
            writer.write_sample(if bad(number) { &damaged } else { &image }).unwrap();
        }
        writer.finish().unwrap();
        Dataset::open(&[path]).unwrap()
    };
    let skipping = || LoaderConfig { on_error: OnError::Skip, ..buckets(2, 1) };
    for first in [0, 7] {
        let loader = loader(write(&|number| number == first), skipping());
        assert_eq!(received(&loader, 0).iter().map(Batch::len).sum::<usize>(), 19);
        assert_eq!(loader.audit()[0].error.index, u64::from(first));
    }
    let error = Loader::new(write(&|_| true), skipping()).unwrap_err();
    assert!(matches!(error, PipelineError::UnknownSizes { .. }), "{error}");
}
