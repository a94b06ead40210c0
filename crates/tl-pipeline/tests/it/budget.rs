//! The memory budget: what is refused, what is lowered, and what is an error.

mod held;
#[cfg(target_os = "linux")]
mod resident;

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, LazyLock, Mutex, mpsc};
use std::time::Duration;

use serde_json::Value;
use tbl_format::SampleFormat;
use tbl_io::{Entry, Field, Location, ReadError, SampleSource, SourceKind};
use tl_pipeline::{
    Batch, Batching, Buckets, Collate, Dataset, ErrorBudget, Fields, Loader, LoaderConfig, OnError,
    PipelineError, Readers, SampleFault, Shuffle, Work,
};
use tl_transform::op::{CenterCrop, UserTransform};
use tl_transform::{Dtype, Layout, OutputSpec, Recipe, Rng, UserError, UserTransforms};

use crate::memory::{Stored, bmps, config, dataset, loader, train};

const MIB: u64 = 1 << 20;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// Raw images made when they are read: most are small, one in 1000 has 512 x 512 pixels, and sixteen
/// in a row of 100 000 have six million.
#[derive(Debug)]
struct Generated {
    samples: u64,
    /// Width and height of each.
    side: fn(u64) -> u32,
    /// Bytes of each sidecar file, 0 without one.
    sidecar: usize,
}

fn side(index: u64) -> u32 {
    match index {
        _ if (777..793).contains(&(index % 100_000)) => 2_500,
        _ if index % 1_000 == 33 => 512,
        _ => 8 + u32::try_from(index % 9).unwrap(),
    }
}

static GENERATED: LazyLock<Location> = LazyLock::new(|| Location::new("generated"));

impl SampleSource for Generated {
    fn location(&self) -> &Location {
        &GENERATED
    }

    fn kind(&self) -> SourceKind {
        SourceKind::Folder
    }

    fn sample_count(&self) -> u64 {
        self.samples
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let side = (self.side)(index);
        let bytes = 3 * u64::from(side) * u64::from(side);
        Ok(Entry {
            key: Some(Cow::Borrowed(b"generated")),
            label: None,
            format: SampleFormat::RawU8,
            width: side,
            height: side,
            offset: 0,
            stored_bytes: bytes,
            bytes,
        })
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let side = (self.side)(index) as usize;
        bytes.clear();
        bytes.resize(3 * side * side, index.to_le_bytes()[0]);
        Ok(())
    }

    fn read_fields_where(
        &self,
        _: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        if self.sidecar > 0 && is_wanted(b"json", self.sidecar as u64) {
            fields.push(Field { extension: "json".into(), bytes: vec![b' '; self.sidecar] });
        }
        Ok(())
    }
}

fn generated(samples: u64) -> Dataset {
    source(Generated { samples, side, sidecar: 0 })
}

fn source(source: Generated) -> Dataset {
    Dataset::from_sources(vec![Box::new(source)]).unwrap()
}

const PIXELS: OutputSpec = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };

/// Batches of 8 x 8 pixels from the middle of each image.
fn small() -> Work {
    Work::Images(Recipe::new(vec![CenterCrop::new(8).into()], PIXELS).unwrap())
}

/// At a large image, waits until all workers have one, or lets others get as far.
struct Meet(Option<Barrier>);

impl tl_transform::UserTransform for Meet {
    fn apply(
        &self,
        pixels: &mut [u8],
        _: (u32, u32),
        _: &mut Rng,
        _: &Value,
    ) -> Result<(), UserError> {
        if pixels.len() > 1 << 20 {
            match &self.0 {
                Some(all) => drop(all.wait()),
                None => (0..1_000).for_each(|_| std::thread::yield_now()),
            }
        }
        Ok(())
    }
}

/// The whole image is gone through before the middle is cut out.
fn whole(all: Option<Barrier>) -> LoaderConfig {
    let step = UserTransform::new("meet", Value::Null);
    let recipe = Recipe::new(vec![step.into(), CenterCrop::new(8).into()], PIXELS).unwrap();
    let mut user_transforms = UserTransforms::new();
    user_transforms.insert("meet", Meet(all));
    LoaderConfig { user_transforms, ..config(Work::Images(recipe)) }
}

#[test]
fn a_budget_that_is_too_small_says_what_it_takes() {
    let config = |memory_budget| LoaderConfig { memory_budget, ..config(train()) };
    let error = Loader::new(bmps(1), config(Some(1))).unwrap_err();
    let PipelineError::MemoryBudget { budget: 1, required } = error else { panic!("{error}") };
    let loader = loader(bmps(40), config(Some(required)));
    assert_eq!(loader.config().prefetch, 1);
    assert_eq!(loader.epoch(0).filter(Result::is_ok).count(), 10);
    assert!(Loader::new(bmps(1), config(Some(required - 1))).is_err());
}

/// The same bytes with a budget as without one, whichever worker needed the reserve.
#[test]
fn a_budget_changes_no_byte() {
    let images = |memory_budget, workers| {
        let work = small();
        let readers = if workers > 1 { Readers::Threads(2) } else { Readers::Workers };
        let config = LoaderConfig {
            batch_size: 50,
            workers,
            memory_budget,
            readers,
            read_ahead_bytes: 1 << 20,
            ..config(work)
        };
        let loader = loader(generated(2_000), config);
        let images: Vec<_> =
            loader.epoch(3).map(|batch| batch.unwrap().images().to_vec()).collect();
        (images, loader.memory().large_samples)
    };
    let (expected, none) = images(None, 2);
    assert_eq!(none, 0);
    for workers in [1, 4] {
        let (images, large) = images(Some(340 * MIB), workers);
        assert!(images == expected);
        // A single worker has the memory of the largest sample for every sample.
        assert_eq!(large > 0, workers > 1);
    }
}

/// Bytes that are not decoded may be more than an image may have.
#[test]
fn bytes_are_held_to_no_limit_of_decoding() {
    let memory_budget = Some(512 * MIB);
    let mut config = LoaderConfig { memory_budget, ..config(Work::Bytes) };
    config.decode.limits.max_decoded_bytes = 1 << 20;
    let dataset = source(Generated { samples: 4, side: |_| 1_024, sidecar: 0 });
    let batch = loader(dataset, config).epoch(0).next().unwrap().unwrap();
    assert_eq!(batch.sample(3).unwrap().bytes.len(), 3 << 20);
}

/// The limits of a batch and a sample are the same on any machine.
#[test]
fn what_is_too_large_does_not_depend_on_workers() {
    let report = |workers, batch_size, readers| {
        let memory_budget = Some(4 << 30);
        let config =
            LoaderConfig { workers, batch_size, readers, memory_budget, ..config(small()) };
        let bytes = LoaderConfig { work: Work::Bytes, ..config.clone() };
        let [images, bytes] = [config, bytes].map(|config| loader(generated(1), config).memory());
        (images.reserve, bytes.batch_bytes)
    };
    for (batch_size, readers) in [(1, Readers::Workers), (64, Readers::Threads(2))] {
        let few = report(2, batch_size, readers);
        assert!(few.0 > 1 << 30 && few.1 > 32 << 20, "{few:?}");
        assert_eq!(report(16, batch_size, readers), few);
    }
}

#[test]
fn a_sample_larger_than_the_budget_leaves_is_an_error_by_name() {
    // Half of it for the largest sample, of which raw pixels may be an eighth at the most.
    let memory_budget = Some(64 * MIB);
    let on_error = OnError::Skip;
    let sampler = Shuffle::None.into();
    let config = LoaderConfig { workers: 1, on_error, memory_budget, sampler, ..config(small()) };
    let loader = loader(generated(1_000), config);
    assert_eq!(loader.epoch(0).map(|batch| batch.unwrap().len()).sum::<usize>(), 984);
    let audit = loader.audit();
    assert_eq!(audit[0].error.index, 777);
    let SampleFault::StoredSize { bytes: 18_750_000, limit } = audit[0].error.fault else {
        panic!("{}", audit[0])
    };
    assert!(limit < 18_750_000);
}

#[test]
fn sidecar_files_are_read_where_they_are_asked_for_and_fit() {
    let received = |columns: &[&str]| {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        let fields = Fields { bytes: columns, ..Fields::default() };
        let (memory_budget, on_error) = (Some(96 * MIB), OnError::Skip);
        let error_budget = ErrorBudget::UNLIMITED;
        let config = LoaderConfig { workers: 1, error_budget, ..config(small()) };
        let config = LoaderConfig { fields, on_error, memory_budget, ..config };
        let dataset = source(Generated { samples: 8, side: |_| 8, sidecar: 30 << 20 });
        let loader = loader(dataset, LoaderConfig { prefetch_next_epoch: false, ..config });
        let rows: usize = loader.epoch(0).map(|batch| batch.unwrap().len()).sum();
        let faults: Vec<_> = loader.audit().iter().map(|bad| bad.error.fault.to_string()).collect();
        (rows, faults, loader.stats().bytes_read)
    };
    let (rows, faults, _) = received(&["json"]);
    assert_eq!((rows, faults.len()), (0, 8));
    assert!(faults[0].starts_with("it has 31457280 bytes, the memory budget"), "{}", faults[0]);
    assert_eq!(received(&[]), (8, vec![], 8 * 3 * 8 * 8));
}

/// A panic in the reserve costs the worker no count and no event.
#[test]
fn a_panic_over_a_large_sample_leaves_the_worker_its_trace() {
    struct Panicking;
    impl tl_transform::UserTransform for Panicking {
        fn apply(
            &self,
            pixels: &mut [u8],
            _: (u32, u32),
            _: &mut Rng,
            _: &Value,
        ) -> Result<(), UserError> {
            assert!(pixels.len() < 1 << 20, "too large for me");
            Ok(())
        }
    }
    let mut config = LoaderConfig {
        workers: 2,
        memory_budget: Some(320 * MIB),
        on_error: OnError::Skip,
        trace: 100_000,
        // The workers end with the epoch, and their events are then in the trace.
        prefetch_next_epoch: false,
        sampler: Shuffle::None.into(),
        ..whole(None)
    };
    config.user_transforms = UserTransforms::new();
    config.user_transforms.insert("meet", Panicking);
    let loader = loader(generated(2_000), config);
    assert_eq!(loader.epoch(0).map(|batch| batch.unwrap().len()).sum::<usize>(), 1_984);
    assert!(loader.memory().large_samples >= 16, "{}", loader.memory());
    let mut trace = Vec::new();
    loader.write_trace(&mut trace).unwrap();
    let trace: Value = serde_json::from_slice(&trace).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let samples: BTreeSet<_> = events.iter().filter_map(|e| e["args"]["sample"].as_u64()).collect();
    let missing: Vec<_> = (0..2_000).filter(|sample| !samples.contains(sample)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Bytes of the slab's previous filling are not part of a row.
#[test]
fn a_row_that_is_left_out_holds_nothing() {
    let stored = |number: usize| Stored {
        key: number.to_string(),
        label: None,
        format: SampleFormat::RawU8,
        size: (0, 0),
        bytes: vec![7; [400_000, 400_000, 400_000, 400_000, 3_100_000][number / 4]],
    };
    let mut samples: Vec<_> = (0..18).map(stored).collect();
    // More than fits any sample.
    samples.extend((0..2).map(|_| Stored { bytes: vec![0; 60_000_000], ..stored(0) }));
    let config = LoaderConfig {
        workers: 1,
        prefetch: 1,
        on_error: OnError::Skip,
        memory_budget: Some(96 * MIB),
        sampler: Shuffle::None.into(),
        ..config(Work::Bytes)
    };
    let loader = loader(dataset(samples), config);
    assert_eq!(loader.batch(0, 4).unwrap().len(), 2);
    let lens: Vec<_> = loader.epoch(0).map(|batch| batch.unwrap().len()).collect();
    assert_eq!(lens, [4, 4, 4, 4, 2]);
}

#[test]
fn a_batch_that_holds_more_than_there_is_room_for_is_named() {
    // A batch of 64 images of 19 MB, of which one alone would fit.
    // The source has no views, so that they are copied.
    for work in [Work::Bytes, Work::Views, Work::Images(Recipe::decode())] {
        for workers in [1, 3] {
            let dataset = source(Generated { samples: 64, side: |_| 2_500, sidecar: 0 });
            let memory_budget = Some(512 * MIB);
            let work = work.clone();
            let config = LoaderConfig { batch_size: 64, workers, memory_budget, ..config(work) };
            let error = loader(dataset, config).epoch(0).next().unwrap().unwrap_err();
            let PipelineError::BatchMemory { epoch: 0, batch: 0, need, limit } = error else {
                panic!("{error}")
            };
            assert_eq!(need, 64 * 18_750_000);
            assert!(limit > 18_750_000 && limit < need, "{limit}");
        }
    }
}

/// The size of a padded batch is checked before its allocation.
#[test]
fn a_padded_batch_without_room_is_named() {
    let recipe = Recipe::new(vec![], PIXELS).unwrap();
    let batching = Batching::Buckets(Buckets::default());
    let settings = |workers| LoaderConfig {
        batching,
        workers,
        memory_budget: Some(512 * MIB),
        sampler: Shuffle::None.into(),
        ..config(Work::Images(recipe.clone()))
    };
    let first_error = |workers| {
        let loader = loader(generated(1_000), settings(workers));
        let ends = loader.epoch(0).enumerate();
        let (received, error) = ends.filter_map(|(at, batch)| Some((at, batch.err()?))).next()?;
        Some((received as u64, error))
    };
    for workers in [1, 2, 5] {
        let (received, error) = first_error(workers).unwrap();
        let PipelineError::BatchMemory { epoch: 0, batch, need, limit } = error else {
            panic!("{error}")
        };
        assert_eq!(received, batch, "all before it, {workers} workers");
        // Four images of 2500 x 2500, and what goes with the rows.
        assert!(need >= 75_000_000 && limit < need, "{need} {limit}");
    }
}

#[test]
fn prefetch_can_be_given_in_bytes() {
    let batches = |prefetch, prefetch_bytes| {
        let config = LoaderConfig { prefetch, prefetch_bytes, ..config(train()) };
        loader(bmps(1), config).config().prefetch
    };
    // A batch of 4 x 3 x 16 x 16 floats is 12 KiB and less than 3 KiB that goes with its rows.
    assert_eq!(batches(0, Some(50_000)), 3);
    assert_eq!(batches(0, Some(1 << 20)), 71);
    assert_eq!(batches(0, Some(1 << 30)), 256);
    assert_eq!(batches(0, None), 2);
    assert_eq!(batches(2, Some(50_000)), 2);
    assert_eq!(batches(9, Some(50_000)), 3);
    assert_eq!(batches(9, Some(1)), 1);
    assert_eq!(batches(9, None), 9);
}

/// If batches differ, one is begun when it fits next to the bytes of those before it, or the
/// consumer waits for it.
#[test]
fn prefetch_in_bytes_holds_back_batches_that_differ() {
    let padded = Batching::Buckets(Buckets::default());
    let work = Work::Images(Recipe::new(vec![], PIXELS).unwrap());
    for (work, batching) in [(Work::Bytes, Batching::InOrder), (work, padded)] {
        // Ten images of 8 to 16 pixels a side are 5 KB, and up to 8 KB when they are padded.
        for (prefetch_bytes, certain) in [(None, 20), (Some(20_000), 2), (Some(1), 1)] {
            let (asked, (finish, finished)) = (Arc::new(AtomicU64::new(0)), mpsc::channel());
            let seen = Arc::clone(&asked);
            let collate = Collate::new(move |batch: &Batch| {
                let early = batch.number() > seen.load(Ordering::SeqCst);
                assert!(!early || prefetch_bytes != Some(1), "{}", batch.number());
                finish.send(()).unwrap();
                Ok(())
            });
            let config = LoaderConfig {
                batch_size: 10,
                workers: 1,
                prefetch: 20,
                prefetch_bytes,
                prefetch_next_epoch: false,
                collate: Some(collate),
                batching,
                ..config(work.clone())
            };
            let loader = loader(generated(300), config);
            let mut epoch = loader.epoch(0);
            // So many are made though nobody asks for them.
            (0..certain).for_each(|_| finished.recv_timeout(PATIENCE).unwrap());
            for batch in 1..=30 {
                (0..100).for_each(|_| std::thread::yield_now());
                asked.store(batch, Ordering::SeqCst);
                epoch.next().unwrap().unwrap();
            }
        }
    }
}

#[test]
fn shuffled_native_images_keep_their_bytes_under_a_budget() {
    let digest = |memory_budget| {
        let work = Work::Images(Recipe::decode());
        let config = LoaderConfig { memory_budget, batch_size: 8, workers: 3, ..config(work) };
        let loader = loader(generated(3_000), config);
        let mut images = Vec::new();
        for batch in loader.epoch(0) {
            let batch = batch.unwrap();
            let rows = (0..batch.len()).filter_map(|row| batch.sample(row));
            images.extend(rows.map(|sample| (sample.width, sample.bytes.first().copied())));
        }
        images
    };
    assert!(digest(Some(512 * MIB)) == digest(None));
}
