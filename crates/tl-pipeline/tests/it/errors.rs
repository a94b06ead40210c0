//! Bad samples and bad settings: the error, its place, and the rest of the epoch.

use tbl_format::SampleFormat;
use tl_decode::{DecodeOptions, OnDamaged};
use tl_pipeline::{
    AuditEntry, Batch, CacheConfig, CacheKind, Dataset, ErrorBudget, Loader, LoaderConfig,
    MemoryCache, OnError, Outcome, PipelineError, Readers, SampleFault, Shard, Shuffle, Tail, Work,
};
use tl_transform::batch_op::CutMix;
use tl_transform::op::Resize;
use tl_transform::{DecodeMode, Dtype, Layout, Op, OutputSpec, Recipe};

use crate::memory::{PANIC, Stored, bmps, config, dataset, flat_jpeg, jpeg, loader, sample, train};

/// 40 samples of which 9 is cut short, 17 panics and 30 is empty.
fn damaged() -> Dataset {
    let mut samples: Vec<_> = (0..40).map(|number| sample(number, SampleFormat::Bmp)).collect();
    samples[9].bytes.truncate(60);
    samples[17].bytes = PANIC.to_vec();
    samples[30].bytes.clear();
    dataset(samples)
}

fn sequential(on_error: OnError) -> LoaderConfig {
    LoaderConfig { sampler: Shuffle::None.into(), on_error, ..config(train()) }
}

#[test]
fn raise_ends_the_epoch_at_the_first_bad_sample() {
    for workers in [1, 3] {
        let loader = loader(damaged(), LoaderConfig { workers, ..sequential(OnError::Raise) });
        let mut epoch = loader.epoch(0);
        assert!(epoch.by_ref().take(2).all(|batch| batch.is_ok()));
        let error = epoch.next().unwrap().unwrap_err();
        let PipelineError::Sample(sample) = &error else { panic!("{error}") };
        assert_eq!((sample.index, sample.offset), (9, Some(900)));
        assert_eq!(sample.key.as_deref(), Some(&b"0009.bmp"[..]));
        assert!(matches!(sample.fault, SampleFault::Decode(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("in memory: sample 9 (0009.bmp) at byte 900: malformed"),
            "{text}"
        );
        assert!(epoch.next().is_none());
    }
}

#[test]
fn skip_leaves_out_the_bad_and_moves_nothing_else() {
    for workers in [1, 2, 3, 7] {
        let loader = loader(damaged(), LoaderConfig { workers, ..sequential(OnError::Skip) });
        let clean = crate::memory::loader(bmps(40), sequential(OnError::Raise));
        for (batch, clean) in loader.epoch(0).zip(clean.epoch(0)) {
            let (batch, clean) = (batch.unwrap(), clean.unwrap());
            let good = |index: &u64| ![9, 17, 30].contains(index);
            let (mut indices, mut labels, mut images) = (vec![], vec![], vec![]);
            for (row, &index) in clean.indices().iter().enumerate().filter(|(_, i)| good(i)) {
                indices.push(index);
                labels.push(clean.labels()[row]);
                images.extend_from_slice(&clean.images()[row * 3_072..][..3_072]);
            }
            assert_eq!((batch.indices(), batch.labels()), (&indices[..], &labels[..]));
            assert_eq!(batch.images(), images);
        }
        let stats = loader.stats();
        assert_eq!((stats.batches, stats.samples, stats.skipped), (10, 37, 3));
        assert_eq!(outcomes(&loader), [9, 17, 30].map(|bad| (0, bad, bad, Outcome::Skipped)));
    }
}

/// Epoch, position, sample and outcome of everything listed.
fn outcomes(loader: &Loader) -> Vec<(u32, u64, u64, Outcome)> {
    let audit = loader.audit();
    let entry =
        |entry: &AuditEntry| (entry.epoch, entry.position, entry.error.index, entry.outcome);
    audit.iter().map(entry).collect()
}

/// Index, label, validity and image of a row.
type Row = (u64, i64, bool, Vec<u8>);

fn rows(loader: &Loader, epoch: u32) -> Vec<Row> {
    let row = |batch: &Batch, row: usize| {
        let image = batch.images()[row * 3_072..][..3_072].to_vec();
        (batch.indices()[row], batch.labels()[row], batch.valid()[row], image)
    };
    let batches = loader.epoch(epoch).map(Result::unwrap);
    batches.flat_map(|batch| (0..batch.len()).map(|n| row(&batch, n)).collect::<Vec<_>>()).collect()
}

/// A replacement is another sample of the epoch as it is elsewhere in it, the same for any number of
/// workers, and no other row changes.
#[test]
fn replace_puts_another_sample_of_the_epoch_in_the_row() {
    let shuffled = |workers, on_error| LoaderConfig { workers, on_error, ..config(train()) };
    let clean = rows(&loader(bmps(40), shuffled(2, OnError::Raise)), 1);
    let cache = MemoryCache { kind: CacheKind::Encoded, bytes: 1 << 20 };
    let of_sample = |index: u64| clean.iter().find(|row| row.0 == index).unwrap();
    for workers in [1, 2, 3, 7, 32] {
        let loader = loader(damaged(), shuffled(workers, OnError::Replace));
        let replaced = rows(&loader, 1);
        assert_eq!(replaced.len(), 40);
        let mut expected = Vec::new();
        for (position, (row, clean)) in (0..).zip(replaced.iter().zip(&clean)) {
            if [9, 17, 30].contains(&clean.0) {
                assert!(![9, 17, 30].contains(&row.0), "{}", row.0);
                assert_eq!(row, of_sample(row.0));
                expected.push((1, position, clean.0, Outcome::Replaced { by: row.0 }));
            } else {
                assert_eq!(row, clean);
            }
        }
        assert_eq!(outcomes(&loader), expected);
        assert_eq!((loader.stats().replaced, loader.stats().skipped), (3, 0));
        // Read ahead or kept, the same.
        let readers = LoaderConfig {
            readers: Readers::Threads(2),
            cache: CacheConfig { memory: Some(cache), ..CacheConfig::default() },
            ..shuffled(workers, OnError::Replace)
        };
        let ahead = self::loader(damaged(), readers);
        assert_eq!([rows(&ahead, 1), rows(&ahead, 1)], [replaced.clone(), replaced.clone()]);
        let other_epoch = rows(&loader, 2);
        assert_ne!(other_epoch, replaced);
        assert_eq!(rows(&loader, 1), replaced);
    }
}

#[test]
fn fill_makes_rows_of_zeros_that_do_not_count() {
    for workers in [1, 3] {
        let settings = |on_error| LoaderConfig { workers, ..sequential(on_error) };
        let clean = rows(&loader(bmps(40), settings(OnError::Raise)), 0);
        let loader = loader(damaged(), settings(OnError::Fill));
        let expected = clean.into_iter().map(|row| match row.0 {
            9 | 17 | 30 => (row.0, -1, false, vec![0; 3_072]),
            _ => row,
        });
        assert!(rows(&loader, 0).into_iter().eq(expected));
        assert_eq!(outcomes(&loader), [9, 17, 30].map(|bad| (0, bad, bad, Outcome::Filled)));
        assert_eq!(loader.stats().filled, 3);
    }
    // The earlier content of a row of its own size is gone.
    let work = Work::Images(Recipe::decode());
    let loader = loader(damaged(), LoaderConfig { on_error: OnError::Fill, ..config(work) });
    for batch in loader.epoch(0).map(Result::unwrap) {
        for row in 0..batch.len() {
            let sample = batch.sample(row).unwrap();
            assert_eq!(sample.bytes.is_empty(), !batch.valid()[row]);
            assert_eq!(sample.width == 0, !batch.valid()[row]);
        }
    }
}

#[test]
fn where_every_replacement_is_bad_the_sample_is_raised() {
    let mut samples: Vec<_> = (0..8).map(|number| sample(number, SampleFormat::Bmp)).collect();
    samples.iter_mut().for_each(|sample| sample.bytes.truncate(60));
    let loader = loader(dataset(samples), sequential(OnError::Replace));
    let error = loader.epoch(0).next().unwrap().unwrap_err();
    assert!(matches!(&error, PipelineError::Sample(sample) if sample.index == 0), "{error}");
    assert_eq!(outcomes(&loader), [(0, 0, 0, Outcome::Raised)]);
}

/// 9, 17 and 30 are bad, in batches 2, 4 and 7.
#[test]
fn an_error_budget_ends_the_epoch_at_the_same_batch_for_any_workers() {
    let count = |count| ErrorBudget { count: Some(count), rate: None };
    let rate = |rate| ErrorBudget { count: None, rate: Some(rate) };
    let check = |error_budget, workers, on_error, delivered| {
        let config = LoaderConfig { workers, error_budget, ..sequential(on_error) };
        let loader = loader(damaged(), config);
        for _ in 0..2 {
            let epoch: Vec<_> = loader.epoch(0).collect();
            let good = epoch.iter().filter(|batch| batch.is_ok()).count();
            assert_eq!(good, delivered, "{error_budget:?}");
            let Some(Err(error)) = epoch.last() else { continue };
            let PipelineError::ErrorBudget { errors, allowed, last, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(*errors, allowed + 1);
            assert!([9, 17, 30].contains(&last.index) && error.to_string().contains("last: "));
        }
    };
    for workers in [1, 3, 7] {
        for on_error in [OnError::Skip, OnError::Replace, OnError::Fill] {
            check(count(0), workers, on_error, 2);
            check(count(1), workers, on_error, 4);
            check(count(2), workers, on_error, 7);
            check(count(3), workers, on_error, 10);
            check(rate(0.05), workers, on_error, 7);
            check(rate(0.1), workers, on_error, 10);
        }
    }
    let none = LoaderConfig { error_budget: rate(1.5), ..sequential(OnError::Skip) };
    let error = Loader::new(bmps(1), none).unwrap_err();
    assert!(matches!(error, PipelineError::ErrorRate { .. }), "{error}");
}

#[test]
fn what_padding_repeats_is_listed_once() {
    let mut samples: Vec<_> = (0..5).map(|number| sample(number, SampleFormat::Bmp)).collect();
    samples[1].bytes.clear();
    let shard = Shard { tail: Some(Tail::Pad), ..Shard::default() };
    let loader = loader(dataset(samples), LoaderConfig { shard, ..sequential(OnError::Fill) });
    let valid: Vec<_> = loader.epoch(0).map(|batch| batch.unwrap().valid().to_vec()).collect();
    assert_eq!(valid, [[true, false, true, true], [true, false, false, false]]);
    assert_eq!(outcomes(&loader), [(0, 1, 1, Outcome::Filled)]);
}

#[test]
fn budgets_do_not_count_what_fills_up_the_last_batch() {
    let mut samples: Vec<_> = (0..5).map(|number| sample(number, SampleFormat::Bmp)).collect();
    samples[4].bytes.clear();
    let shard = Shard { tail: Some(Tail::Pad), ..Shard::default() };
    let error_budget = ErrorBudget { count: Some(0), rate: None };
    let config = LoaderConfig { shard, error_budget, ..sequential(OnError::Skip) };
    let error = loader(dataset(samples), config).epoch(0).find_map(Result::err).unwrap();
    let PipelineError::ErrorBudget { errors, received, .. } = error else { panic!("{error}") };
    assert_eq!((errors, received), (1, 5));
}

#[test]
#[cfg(target_os = "linux")]
fn workers_that_cannot_run_as_told_say_so() {
    let cpus = tl_pipeline::Cpus::new([tl_pipeline::Cpus::MOST - 1]).unwrap();
    let loader = loader(bmps(4), LoaderConfig { cpus, ..config(train()) });
    let error = loader.epoch(0).next().unwrap().unwrap_err();
    assert!(error.to_string().contains("processors 1023"), "{error}");
}

#[test]
fn a_panic_is_the_error_of_its_sample() {
    let loader = loader(damaged(), sequential(OnError::Skip));
    for epoch in 0..3 {
        assert_eq!(loader.epoch(epoch).filter(|batch| batch.is_ok()).count(), 10);
    }
    let skipped = loader.audit();
    assert_eq!(skipped.len(), 9);
    let text = skipped[1].error.to_string();
    assert!(text.starts_with("in memory: sample 17 (0017.bmp) at byte 1700: panicked: "), "{text}");
    assert!(text.contains("injected") && !text.contains('\n'), "{text}");
}

#[test]
fn damage_that_is_kept_is_counted_and_listed() {
    let whole = flat_jpeg(64);
    let cut = whole[..whole.len() - 20].to_vec();
    let samples = || {
        let mut samples: Vec<_> = (0..12).map(|number| sample(number, SampleFormat::Bmp)).collect();
        samples[3] = jpeg("whole.jpg", whole.clone());
        samples[5] = jpeg("cut.jpg", cut.clone());
        samples[7].bytes.truncate(60);
        // Behind the damage, and in the same batch.
        samples[6] = jpeg("whole.jpg", whole.clone());
        dataset(samples)
    };
    let eval = Recipe::imagenet_eval(16).unwrap();
    let decode = DecodeOptions { on_damaged: OnDamaged::Keep, ..DecodeOptions::default() };
    for recipe in [
        eval.clone().with_decode(DecodeMode::Exact).unwrap(),
        eval.with_decode(DecodeMode::Fast { decode_margin: 9.0 }).unwrap(),
        Recipe::decode(),
    ] {
        let work = Work::Images(recipe.clone());
        let settings =
            LoaderConfig { sampler: Shuffle::None.into(), on_error: OnError::Skip, ..config(work) };
        let strict = loader(samples(), settings.clone());
        assert_eq!(strict.epoch(0).filter(Result::is_ok).count(), 3);
        assert_eq!((strict.stats().skipped, strict.stats().damaged), (2, 0), "{recipe}");

        let keep = loader(samples(), LoaderConfig { decode, ..settings });
        for epoch in 0..2 {
            assert_eq!(keep.epoch(epoch).filter(Result::is_ok).count(), 3);
        }
        let stats = keep.stats();
        assert_eq!((stats.samples, stats.skipped, stats.damaged), (22, 2, 2), "{recipe}");
        let expected = [
            (0, 5, 5, Outcome::Kept),
            (0, 7, 7, Outcome::Skipped),
            (1, 5, 5, Outcome::Kept),
            (1, 7, 7, Outcome::Skipped),
        ];
        assert_eq!(outcomes(&keep), expected);
        let listed = keep.audit();
        // The same words as where damage is an error.
        let error = listed[0].error.to_string();
        assert_eq!(error, strict.audit()[0].error.to_string());
        assert!(error.starts_with("in memory: sample 5 (cut.jpg) at byte 500: "), "{error}");
    }
}

/// In a separate process, because every panic writes to the standard error of the process.
#[test]
fn panics_in_one_sample_of_a_hundred_cost_only_these() {
    const CHILD: &str = "TL_PIPELINE_PANICS";
    if std::env::var_os(CHILD).is_none() {
        let test = "errors::panics_in_one_sample_of_a_hundred_cost_only_these";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args([test, "--exact"]).env(CHILD, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let samples = (0..10_000).map(|number| {
        let bytes = if number % 100 == 7 { PANIC.to_vec() } else { vec![1; 8] };
        Stored { bytes, ..sample(number % 8, SampleFormat::Unknown) }
    });
    let on_error = OnError::Skip;
    let config = LoaderConfig { batch_size: 64, workers: 3, on_error, ..config(Work::Bytes) };
    let loader = loader(dataset(samples.collect()), config);
    let mut seen: Vec<u64> =
        loader.epoch(0).flat_map(|batch| batch.unwrap().indices().to_vec()).collect();
    seen.sort_unstable();
    assert!(seen.into_iter().eq((0..10_000).filter(|number| number % 100 != 7)));
    assert_eq!(loader.stats().skipped, 100);
}

#[test]
fn a_batch_that_loses_every_sample_is_not_received() {
    let samples = (0..4).map(|number| {
        let mut sample = sample(number, SampleFormat::Bmp);
        sample.bytes.clear();
        sample
    });
    let error_budget = ErrorBudget::UNLIMITED;
    let config = LoaderConfig { error_budget, ..sequential(OnError::Skip) };
    let loader = loader(dataset(samples.collect()), config);
    assert_eq!(loader.epoch(0).count(), 0);
    let batch = loader.batch(0, 0).unwrap();
    assert_eq!((batch.len(), batch.images()), (0, &[][..]));
    assert!(batch.is_empty());
}

#[test]
fn raw_samples_of_the_wrong_size_are_named() {
    let mut samples: Vec<_> = (0..2).map(|number| sample(number, SampleFormat::RawU8)).collect();
    samples[1].bytes.pop();
    let need = samples[1].bytes.len() as u64 + 1;
    let (width, height) = samples[1].size;
    let loader = loader(dataset(samples), sequential(OnError::Skip));
    assert_eq!(loader.epoch(0).next().unwrap().unwrap().len(), 1);
    let skipped = loader.audit();
    let SampleFault::RawSize { width: w, height: h, need: n, have } = skipped[0].error.fault else {
        panic!("{}", skipped[0].error)
    };
    assert_eq!((w, h, n, have), (width, height, need, need - 1));
}

/// Pixels in a row, resized to a shorter side of 3,000, would be 567 MB.
#[test]
fn results_beyond_the_limit_are_refused_before_they_are_allocated() {
    let resize = Op::from(Resize::new(3_000));
    let output = OutputSpec { dtype: Dtype::U8, layout: Layout::Hwc };
    let work = Work::Images(Recipe::new(vec![resize], output).unwrap());
    let bytes = vec![0; 21 * 3];
    let long = Stored { size: (21, 1), bytes, ..sample(0, SampleFormat::RawU8) };
    let error_budget = ErrorBudget::UNLIMITED;
    let skipping = LoaderConfig { on_error: OnError::Skip, error_budget, ..config(work) };
    let loader = loader(dataset(vec![long]), skipping);
    assert!(loader.epoch(0).next().is_none());
    let skipped = loader.audit();
    let SampleFault::OutputSize { bytes, limit } = skipped[0].error.fault else {
        panic!("{}", skipped[0].error)
    };
    assert_eq!((bytes, limit), (21 * 3_000 * 3_000 * 3, 512 << 20));
}

#[test]
fn unusable_settings_are_refused_at_once() {
    let refused = |config| Loader::new(bmps(1), config).unwrap_err();
    let none = LoaderConfig { batch_size: 0, ..config(train()) };
    assert!(matches!(refused(none), PipelineError::Setting { setting: "batch_size", .. }));
    let huge = LoaderConfig { batch_size: usize::MAX, ..config(train()) };
    assert!(matches!(refused(huge), PipelineError::Setting { setting: "batch_size", .. }));
    let mixing = Recipe::imagenet_train(16).unwrap();
    let cut_mix = CutMix { num_classes: Some(5), ..CutMix::default() };
    let mixing = mixing.with_batch_ops(vec![cut_mix.into()]).unwrap();
    let filled = LoaderConfig { on_error: OnError::Fill, ..config(Work::Images(mixing)) };
    assert!(refused(filled).to_string().contains("cannot be filled in: skip or replace"));
    let planar = Work::Images(Recipe::decode().into_pixels(Layout::Chw));
    assert!(
        refused(config(planar)).to_string().contains("channels first need one size: add Resize")
    );
}

#[test]
fn no_memory_for_a_batch_is_an_error_of_the_epoch() {
    // Fits the address space, and no machine: 2^40 rows of 3 KiB.
    let loader = loader(bmps(1), LoaderConfig { batch_size: 1 << 40, ..config(train()) });
    let error = loader.epoch(0).next().unwrap().unwrap_err();
    assert!(matches!(error, PipelineError::OutOfMemory { .. }), "{error}");
}
