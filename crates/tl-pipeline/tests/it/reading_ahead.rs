//! The report on readers: their lead over workers, the cost of waiting for them, and the verdict
//! when they are too few.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tbl_format::SampleFormat;
use tbl_io::PageCache;
use tl_pipeline::{Dataset, Limit, Loader, LoaderConfig, Readers, Report, Stage, Work};
use tl_transform::op::{CenterCrop, UserTransform};
use tl_transform::{Dtype, Layout, OutputSpec, Recipe, Rng, UserError, UserTransforms};

use crate::containers::containers;
use crate::memory::{bmps, config, dataset, loader, sample, train, watched};

/// The time of a read.
const READ: Duration = Duration::from_millis(4);

/// The time of a sample's transform.
const WORK: Duration = Duration::from_millis(1);

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

struct Heavy;

impl tl_transform::UserTransform for Heavy {
    fn apply(&self, _: &mut [u8], _: (u32, u32), _: &mut Rng, _: &Value) -> Result<(), UserError> {
        sleep(WORK);
        Ok(())
    }
}

/// The report on an epoch of 96 samples, by two workers, from a slow disk: with a lock, one read at
/// a time.
fn report(disk: Option<Mutex<()>>, readers: Readers, read_ahead_bytes: u64) -> Report {
    let samples = (0..96).map(|number| sample(number, SampleFormat::Bmp)).collect();
    let on_read = move || {
        let _turn = disk.as_ref().map(|disk| disk.lock().unwrap());
        sleep(READ);
    };
    let dataset = watched(samples, on_read, || ());
    let heavy = UserTransform::new("heavy", json!({}));
    let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
    let recipe = Recipe::new(vec![CenterCrop::new(4).into(), heavy.into()], output).unwrap();
    let mut user_transforms = UserTransforms::new();
    user_transforms.insert("heavy", Heavy);
    let config = config(Work::Images(recipe));
    let prefetch_next_epoch = false;
    let config =
        LoaderConfig { readers, read_ahead_bytes, user_transforms, prefetch_next_epoch, ..config };
    let loader = loader(dataset, config);
    loader.epoch(0).for_each(|batch| drop(batch.unwrap()));
    loader.report()
}

#[test]
fn too_few_readers_are_named_and_not_the_workers_that_wait_for_them() {
    let few = report(None, Readers::Threads(1), 0);
    assert_eq!(few.limit(), Some(Limit::Readers), "{few}");
    let verdict = few.verdict();
    assert!(verdict.starts_with("Limited by the readers: "), "{verdict}");
    assert!(verdict.ends_with("so it takes more of them, or a disk that gives more."), "{verdict}");
    assert!(few.reader_use() > 0.8 && few.per_read() >= READ, "{few}");
    let stats = few.stats();
    assert_eq!((stats.readers.readers, stats.readers.samples + stats.readers.late), (1, 96));
    // Workers do not read the samples that they wait for.
    let late = READ * u32::try_from(stats.readers.late).unwrap();
    assert!(stats.stages[Stage::Read] >= late && stats.readers.late_time >= late, "{few}");
    assert!(stats.readers.wait > Duration::ZERO && few.read_ahead() < 1.0, "{few}");
    let total: f64 = Stage::ALL.into_iter().map(|stage| few.share(stage)).sum();
    assert!((total + few.reader_wait() + few.worker_wait() - 1.0).abs() < 1e-6, "{few}");

    let many = report(None, Readers::Threads(16), 0);
    assert_eq!(many.limit(), Some(Limit::Stage(Stage::Transform)), "{many}");
    assert!(many.rate() > few.rate(), "{few}\n{many}");
}

#[test]
fn a_disk_that_gives_no_more_to_several_readers_stays_the_limit() {
    let one_at_a_time = report(Some(Mutex::default()), Readers::Threads(16), 0);
    assert_eq!(one_at_a_time.limit(), Some(Limit::Readers), "{one_at_a_time}");
    assert!(one_at_a_time.rate() <= 1.0 / READ.as_secs_f64(), "{one_at_a_time}");
    // Each of them waits for the others' reads as well.
    assert!(one_at_a_time.per_read() > 4 * READ, "{one_at_a_time}");
    // The same disk without readers is named as what the workers do.
    let workers = report(Some(Mutex::default()), Readers::Workers, 0);
    assert_eq!(workers.limit(), Some(Limit::Stage(Stage::Read)), "{workers}");
    assert_eq!(workers.stats().readers, Default::default());
}

#[test]
fn readers_without_room_are_told_from_busy_ones() {
    let narrow = report(None, Readers::Threads(16), 1);
    assert_eq!(narrow.limit(), Some(Limit::Readers), "{narrow}");
    assert!(narrow.reader_use() < 0.2, "{narrow}");
    let end = "so they lack room to read ahead, or processors.";
    assert!(narrow.verdict().ends_with(end), "{narrow}");
}

#[test]
fn what_is_read_ahead_is_counted_until_it_is_gone() {
    let samples = || (0..48).map(|number| sample(number, SampleFormat::Bmp)).collect();
    let config = LoaderConfig { readers: Readers::Threads(2), ..config(train()) };
    let loader = loader(dataset(samples()), LoaderConfig { prefetch_next_epoch: false, ..config });
    let (order, batch_size) = (loader.order(0), loader.config().batch_size as u64);
    let mut epoch = loader.epoch(0);
    drop(epoch.next().unwrap().unwrap());
    let bytes = |position| {
        let index = order.sample_at(position).unwrap();
        sample(u32::try_from(index).unwrap(), SampleFormat::Bmp).bytes.len() as u64
    };
    // All of it is read, and the workers are as far ahead as they may be.
    let taken = (1 + loader.config().prefetch as u64) * batch_size;
    let ready = (48 - taken, (taken..48).map(bytes).sum::<u64>());
    let deadline = Instant::now() + PATIENCE;
    loop {
        let readers = loader.stats().readers;
        let all = readers.samples + readers.late;
        if (readers.reading, all) == (0, 48) && (readers.ready, readers.bytes) == ready {
            break;
        }
        assert!(Instant::now() < deadline, "{readers:?}, {ready:?}");
        yield_now();
    }
    drop(epoch);
    let after = loader.stats().readers;
    assert_eq!((after.reading, after.ready, after.bytes), (0, 0, 0));
}

/// The lanes of a trace, by the names of their threads: what happened there, from when to when.
fn lanes(loader: &Loader) -> BTreeMap<String, Vec<(String, f64, f64)>> {
    let mut bytes = Vec::new();
    loader.write_trace(&mut bytes).unwrap();
    let trace: Value = serde_json::from_slice(&bytes).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = events.iter().filter(|event| event["name"] == "thread_name");
    let name_of = |event: &Value| event["args"]["name"].as_str().unwrap().to_owned();
    let names: BTreeMap<_, _> =
        named.map(|event| (event["tid"].as_u64().unwrap(), name_of(event))).collect();
    let mut lanes: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (start, time) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let lane = lanes.entry(names[&event["tid"].as_u64().unwrap()].clone()).or_default();
        lane.push((event["name"].as_str().unwrap().to_owned(), start, start + time));
    }
    lanes
}

#[test]
fn a_trace_has_every_read_and_every_wait_for_one() {
    let root = tempfile::tempdir().unwrap();
    let paths = containers(root.path());
    let uring = Readers::Uring { depth: 4, page_cache: PageCache::Used };
    for readers in [Readers::Threads(3), uring] {
        let config = LoaderConfig { readers, trace: 10_000, ..config(train()) };
        let config = LoaderConfig { prefetch_next_epoch: false, ..config };
        let loader = loader(Dataset::open(&[&paths[1]]).unwrap(), config);
        let start = Instant::now();
        // Workers on a busy machine may be through before a reader has begun.
        for epoch in 0.. {
            loader.epoch(epoch).for_each(|batch| drop(batch.unwrap()));
            if loader.stats().readers.samples > 0 || start.elapsed() > PATIENCE {
                break;
            }
        }
        let stats = loader.stats().readers;
        let (mut reads, mut waited) = (0, 0.0);
        for (name, events) in lanes(&loader) {
            for pair in events.windows(2) {
                let [(_, _, end), (_, start, _)] = pair else { unreachable!("windows of two") };
                // A nanosecond for the rounding of the sum.
                assert!(start + 0.001 >= *end, "{readers:?} {name}: {pair:?}");
            }
            let waits = events.iter().filter(|event| event.0 == "wait for reader");
            waited += waits.map(|(_, start, end)| end - start).sum::<f64>();
            if name.starts_with("reader ") {
                assert!(events.iter().all(|event| event.0 == "read"), "{name}: {events:?}");
                reads += events.len() as u64;
            }
        }
        assert!(reads > 0 && reads == stats.samples, "{readers:?}: {reads} of {stats:?}");
        assert!((waited - stats.wait.as_secs_f64() * 1e6).abs() < 1.0, "{readers:?} {waited}");
    }
}

#[test]
fn nothing_is_said_of_readers_where_there_are_none() {
    let loader = loader(bmps(9), config(train()));
    loader.epoch(0).for_each(|batch| drop(batch.unwrap()));
    assert!(!loader.report().to_string().contains("readers"));
}
