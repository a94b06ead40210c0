//! The observability of a loader: counters, its limit, the trace, and replayed batches.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use tbl_format::SampleFormat;
use tl_pipeline::{Limit, Loader, LoaderConfig, Report, Stage, Work};
use tl_transform::op::{CenterCrop, UserTransform};
use tl_transform::{Dtype, Layout, OutputSpec, Recipe, Rng, UserError, UserTransforms};

use crate::memory::{bmps, config, loader, sample, train, watched};

/// Far above what the work on a test image takes, however busy the machine is.
const LONG: Duration = Duration::from_millis(4);

/// A transform that takes its time.
struct Heavy;

impl tl_transform::UserTransform for Heavy {
    fn apply(&self, _: &mut [u8], _: (u32, u32), _: &mut Rng, _: &Value) -> Result<(), UserError> {
        sleep(LONG);
        Ok(())
    }
}

/// The report on an epoch whose consumer takes so long for a batch, without its first batch: how
/// long the threads take to start says nothing of the rest.
fn report(loader: &Loader, step: Duration) -> Report {
    let mut epoch = loader.epoch(0);
    drop(epoch.next().unwrap().unwrap());
    let started = loader.stats();
    for batch in epoch {
        drop(batch.unwrap());
        sleep(step);
    }
    Report::new(loader.stats().since(&started))
}

fn check(report: &Report, expected: Limit, name: &str) {
    assert_eq!(report.limit(), Some(expected), "{report}");
    let text = report.to_string();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with(&format!("Limited by {name}: ")), "{last}");
    assert!(report.reachable() > report.rate(), "{report}");
}

#[test]
fn a_slow_disk_is_named() {
    let samples = (0..48).map(|number| sample(number, SampleFormat::Bmp)).collect();
    let dataset = watched(samples, || sleep(LONG), || ());
    let report = report(&loader(dataset, config(train())), Duration::ZERO);
    check(&report, Limit::Stage(Stage::Read), "read");
}

#[test]
fn a_heavy_transform_is_named() {
    let heavy = UserTransform::new("heavy", json!({}));
    let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
    let recipe = Recipe::new(vec![CenterCrop::new(4).into(), heavy.into()], output).unwrap();
    let mut user_transforms = UserTransforms::new();
    user_transforms.insert("heavy", Heavy);
    let config = LoaderConfig { user_transforms, ..config(Work::Images(recipe)) };
    let report = report(&loader(bmps(48), config), Duration::ZERO);
    check(&report, Limit::Stage(Stage::Transform), "transform");
}

#[test]
fn a_slow_consumer_is_named() {
    let report = report(&loader(bmps(48), config(train())), 4 * LONG);
    check(&report, Limit::Consumer, "the consumer");
    assert!(report.ready() > 0.5, "{report}");
}

#[test]
fn counts_are_exact_when_the_workers_have_ended() {
    let config = LoaderConfig { prefetch_next_epoch: false, ..config(train()) };
    let loader = loader(bmps(50), config);
    let before = loader.stats();
    assert_eq!((before.processed, before.workers, before.slabs_in_use), (0, 2, 0));
    let mut held = Vec::new();
    for batch in loader.epoch(0) {
        held = vec![batch.unwrap()];
    }
    let stats = loader.stats();
    assert_eq!((stats.batches, stats.samples, stats.processed), (13, 50, 50));
    let bytes: u64 =
        (0..50).map(|number| sample(number, SampleFormat::Bmp).bytes.len() as u64).sum();
    assert_eq!(stats.bytes_read, bytes);
    assert_eq!(stats.slabs_in_use, 1);
    drop(held);
    assert_eq!(loader.stats().slabs_in_use, 0);
    for stage in [Stage::Read, Stage::Decode, Stage::Write, Stage::Overhead] {
        assert!(stats.stages[stage] > Duration::ZERO, "{stage}");
    }
    // Crops and flips need no separate image.
    assert_eq!(stats.stages[Stage::Transform], Duration::ZERO);
    assert_eq!(loader.stats().since(&stats).samples, 0);
}

/// The trace of two epochs of 50 samples, in the order of its events.
fn traced(events: usize) -> Vec<Value> {
    let config = LoaderConfig { trace: events, prefetch_next_epoch: false, ..config(train()) };
    let loader = loader(bmps(50), config);
    for epoch in 0..2 {
        assert_eq!(loader.epoch(epoch).filter(Result::is_ok).count(), 13);
    }
    let mut bytes = Vec::new();
    loader.write_trace(&mut bytes).unwrap();
    let mut trace: Value = serde_json::from_slice(&bytes).unwrap();
    serde_json::from_value(trace["traceEvents"].take()).unwrap()
}

#[test]
fn a_trace_has_every_stage_of_every_sample() {
    let events = traced(10_000);
    let mut threads: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    let mut read = vec![0; 50];
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &events {
        let phase = event["ph"].as_str().unwrap();
        assert!(event["pid"].is_u64() && event["tid"].is_u64(), "{event}");
        *counts.entry(event["name"].as_str().unwrap()).or_default() += 1;
        if phase != "X" {
            assert!(["M", "C"].contains(&phase), "{event}");
            continue;
        }
        let (start, time) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        threads.entry(event["tid"].as_u64().unwrap()).or_default().push((start, start + time));
        if event["name"] == "read" {
            read[usize::try_from(event["args"]["sample"].as_u64().unwrap()).unwrap()] += 1;
        }
    }
    assert_eq!(read, [2; 50]);
    let count = |name| counts.get(name).copied().unwrap_or(0);
    assert_eq!((count("decode"), count("write"), count("finish")), (100, 100, 26));
    // The consumer asks for every batch, and works between two of an epoch.
    assert_eq!((count("ready batches"), count("wait for batch"), count("step")), (26, 26, 24));
    for (thread, spans) in threads {
        for pair in spans.windows(2) {
            let [(_, end), (start, _)] = pair else { unreachable!("windows of two") };
            // A nanosecond for the rounding of the sum.
            assert!(start + 0.001 >= *end, "thread {thread}: {pair:?}");
        }
    }
}

#[test]
fn a_trace_has_no_more_events_than_it_may() {
    let events = traced(64).into_iter().filter(|event| event["ph"] != "M").count();
    assert_eq!(events, 64);
    assert!(traced(0).into_iter().all(|event| event["ph"] == "M"));
}

#[test]
fn replayed_batches_are_those_of_the_epoch() {
    let loader = loader(bmps(50), config(train()));
    let images = |batch: tl_pipeline::Batch| batch.images().to_vec();
    let expected: Vec<_> = loader.epoch(3).take(3).map(|batch| images(batch.unwrap())).collect();
    let replayed: Vec<_> = loader.replay(3, 3).unwrap().take(7).map(images).collect();
    let again: Vec<_> = expected.iter().cycle().take(7).cloned().collect();
    assert_eq!(replayed, again);
    assert_eq!(loader.replay(0, 100).unwrap().take(100).count(), 100);
    assert!(loader.replay(0, 0).unwrap().next().is_none());
}
