//! Reads that fail for a reason that may pass: repeated within the bound they change nothing, and
//! beyond it the error says how often was tried.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tbl_format::SampleFormat;
use tbl_io::{
    Entry, Location, ReadError, RetryPolicy, SampleSource, SourceKind, StoredBytes, StoredSamples,
};
use tl_pipeline::{
    Batching, Buckets, Dataset, Loader, LoaderConfig, OnError, PipelineError, Readers, RetryStats,
    SampleFault, Work,
};
use tl_transform::{Layout, Recipe};

use crate::content::record;
use crate::memory::{Memory, config, loader, sample, train};

const SAMPLES: u32 = 13;

/// The numbers of EIO, EAGAIN, ESTALE, ETIMEDOUT and EREMOTEIO on Linux; elsewhere all are EIO's.
const TRANSIENT: [i32; 5] = if cfg!(target_os = "linux") { [5, 11, 116, 110, 121] } else { [5; 5] };

/// The wait that tests have time for.
const POLICY: RetryPolicy = RetryPolicy {
    attempts: 4,
    first_delay: Duration::from_micros(1),
    longest_delay: Duration::from_micros(10),
    deadline: Duration::from_secs(600),
};

/// A source whose calls for a sample fail as a script says, one after the other.
#[derive(Debug)]
struct Flaky {
    inner: Memory,
    /// By sample: the errors of the calls to come, 0 for a call that succeeds.
    scripts: Mutex<Vec<VecDeque<i32>>>,
    /// Opening is not what is tested.
    is_armed: Arc<AtomicBool>,
}

impl Flaky {
    fn ask(&self, index: u64) -> Result<&Memory, ReadError> {
        let place = usize::try_from(index).unwrap();
        let mut scripts = self.scripts.lock().unwrap();
        let is_armed = self.is_armed.load(Ordering::Relaxed);
        let next = scripts.get_mut(place).filter(|_| is_armed).and_then(VecDeque::pop_front);
        match next {
            Some(number) if number != 0 => {
                let location = self.location().clone();
                Err(ReadError::Io { location, source: io::Error::from_raw_os_error(number) })
            }
            Some(_) | None => Ok(&self.inner),
        }
    }
}

impl SampleSource for Flaky {
    fn location(&self) -> &Location {
        self.inner.location()
    }

    fn kind(&self) -> SourceKind {
        self.inner.kind()
    }

    fn sample_count(&self) -> u64 {
        self.inner.sample_count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        self.ask(index)?.entry(index)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.ask(index)?.read_into(index, bytes)
    }
}

fn samples() -> Memory {
    Memory { samples: (0..SAMPLES).map(|index| sample(index, SampleFormat::Bmp)).collect() }
}

/// A loader of samples whose calls fail as `scripts` say.
fn flaky(scripts: Vec<VecDeque<i32>>, settings: LoaderConfig) -> Loader {
    let is_armed = Arc::new(AtomicBool::new(false));
    let source =
        Flaky { inner: samples(), scripts: Mutex::new(scripts), is_armed: Arc::clone(&is_armed) };
    let dataset = Dataset::from_sources(vec![Box::new(source)]).unwrap();
    let loader = loader(dataset, LoaderConfig { retry: POLICY, ..settings });
    is_armed.store(true, Ordering::Relaxed);
    loader
}

fn sound(settings: LoaderConfig) -> Loader {
    loader(Dataset::from_sources(vec![Box::new(samples())]).unwrap(), settings)
}

/// Settings of every kind of work that reads samples one by one, and of buckets, which ask for sizes.
fn settings(kind: u8, workers: usize, readers: usize) -> LoaderConfig {
    let readers = if readers == 0 { Readers::Workers } else { Readers::Threads(readers) };
    let pixels = Recipe::decode().into_pixels(Layout::Chw);
    let base = match kind {
        0 => config(Work::Bytes),
        1 => config(train()),
        2 => config(Work::Images(Recipe::decode())),
        _ => LoaderConfig {
            batching: Batching::Buckets(Buckets { window: 2, ..Buckets::default() }),
            ..config(Work::Images(pixels))
        },
    };
    LoaderConfig { workers, readers, ..base }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn faults_below_the_bound_change_no_batch(
        scripts in prop::collection::vec(
            prop::collection::vec((0_usize..8).prop_map(|kind| TRANSIENT.get(kind).copied().unwrap_or(0)), 0..12),
            SAMPLES as usize,
        ),
        kind in 0_u8..4,
        workers in 1_usize..4,
        readers in 0_usize..3,
    ) {
        let settings = settings(kind, workers, readers);
        let below = |script: Vec<i32>| {
            let mut faults = 0;
            let allowed = |number: &i32| {
                faults += u32::from(*number != 0);
                faults < POLICY.attempts
            };
            script.into_iter().take_while(allowed).collect::<VecDeque<_>>()
        };
        let scripts: Vec<_> = scripts.into_iter().map(below).collect();
        let expected = record(&sound(settings.clone()), 0);
        let loader = flaky(scripts, settings);
        prop_assert!(record(&loader, 0) == expected);
        prop_assert!(record(&loader, 1) == record(&sound(loader_settings(&loader)), 1));
        prop_assert_eq!(loader.stats().retries.given_up, 0);
        prop_assert!(loader.audit().is_empty());
    }
}

fn loader_settings(loader: &Loader) -> LoaderConfig {
    loader.config().clone()
}

#[test]
fn the_error_beyond_the_bound_says_how_often_was_tried() {
    for number in TRANSIENT {
        let mut scripts = vec![VecDeque::new(); SAMPLES as usize];
        scripts[5] = VecDeque::from([number; 100]);
        for workers in [1, 3] {
            let loader = flaky(scripts.clone(), settings(1, workers, 0));
            let error = loader.epoch(0).find_map(Result::err).unwrap();
            let PipelineError::Sample(sample) = &error else { panic!("{error}") };
            assert_eq!((sample.index, sample.attempts), (5, POLICY.attempts));
            assert!(matches!(sample.fault, SampleFault::Read(ReadError::Io { .. })), "{error}");
            assert!(error.to_string().ends_with("(after 4 attempts)"), "{error}");
            let RetryStats { repeated, given_up, .. } = loader.stats().retries;
            assert_eq!((repeated, given_up), (3, 1), "{number}");
            let text = loader.report().to_string();
            assert!(text.contains("repeated reads: 3 after errors that may pass"), "{text}");
        }
    }
}

#[test]
fn a_bad_sample_is_left_out_after_its_last_attempt_and_errors_that_last_are_not_repeated() {
    let mut scripts = vec![VecDeque::new(); SAMPLES as usize];
    scripts[5] = VecDeque::from([5; 100]);
    // EACCES.
    scripts[7] = VecDeque::from([13; 100]);
    let settings = LoaderConfig { on_error: OnError::Skip, ..settings(1, 2, 0) };
    let loader = flaky(scripts, settings);
    assert!(loader.epoch(0).all(|batch| batch.is_ok()));
    let mut attempts: Vec<_> =
        loader.audit().iter().map(|entry| (entry.error.index, entry.error.attempts)).collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [(5, POLICY.attempts), (7, 1)]);
}

#[test]
fn a_policy_of_one_attempt_repeats_nothing() {
    let mut scripts = vec![VecDeque::new(); SAMPLES as usize];
    scripts[5] = VecDeque::from([5; 100]);
    let dataset = flaky(scripts, config(train()));
    let settings = LoaderConfig { retry: RetryPolicy::NEVER, ..dataset.config().clone() };
    let loader = Loader::new(dataset.dataset().clone(), settings).unwrap();
    let error = loader.epoch(0).find_map(Result::err).unwrap();
    assert!(!error.to_string().contains("attempts"), "{error}");
    assert_eq!(loader.stats().retries.repeated, 0);
}

#[test]
fn buckets_end_with_the_attempts_at_a_size() {
    let mut scripts = vec![VecDeque::new(); SAMPLES as usize];
    scripts[5] = VecDeque::from([110; 1000]);
    let loader = flaky(scripts, settings(3, 2, 0));
    let error = loader.epoch(0).find_map(Result::err).unwrap();
    let PipelineError::SizeUnknown(sample) = &error else { panic!("{error}") };
    assert_eq!((sample.index, sample.attempts), (5, POLICY.attempts));
}

#[test]
fn a_wait_is_in_the_trace_and_ends_with_its_loader() {
    let mut scripts = vec![VecDeque::new(); SAMPLES as usize];
    scripts[5] = VecDeque::from([5]);
    let loader = flaky(scripts, LoaderConfig { trace: 10_000, ..settings(1, 1, 0) });
    assert!(loader.epoch(0).all(|batch| batch.is_ok()));
    let mut trace = Vec::new();
    loader.write_trace(&mut trace).unwrap();
    assert!(String::from_utf8(trace).unwrap().contains("\"failed read\""));
    let long = Duration::from_secs(300);
    let retry =
        RetryPolicy { attempts: 10, first_delay: long, longest_delay: long, deadline: 10 * long };
    let settings = LoaderConfig { retry, ..loader.config().clone() };
    let scripts = vec![VecDeque::from([5; 100]); SAMPLES as usize];
    let stuck = Loader::new(flaky(scripts, config(train())).dataset().clone(), settings).unwrap();
    let begun = std::time::Instant::now();
    drop(stuck.epoch(0));
    drop(stuck);
    assert!(begun.elapsed() < long / 3);
}

#[test]
fn a_policy_outside_its_range_is_refused() {
    let refused = |retry| {
        let dataset = Dataset::from_sources(vec![Box::new(samples())]).unwrap();
        let settings = LoaderConfig { retry, ..config(Work::Bytes) };
        Loader::new(dataset, settings).err().map(|error| error.to_string())
    };
    let found = refused(RetryPolicy { attempts: 0, ..POLICY });
    assert_eq!(found.as_deref(), Some("retry.attempts is 0, expected 1 to 100"));
    let found = refused(RetryPolicy { deadline: Duration::from_secs(4000), ..POLICY });
    assert_eq!(found.as_deref(), Some("retry.deadline is 4000, expected at most 3600 seconds"));
}

/// A mapped file, of which a page fails while the first sample is copied: from then on the mapping
/// has zeros, and says so. The file itself can be read.
#[derive(Debug)]
struct LostMapping {
    inner: Memory,
    zeros: Vec<u8>,
    is_lost: AtomicBool,
}

impl SampleSource for LostMapping {
    fn location(&self) -> &Location {
        self.inner.location()
    }

    fn kind(&self) -> SourceKind {
        self.inner.kind()
    }

    fn sample_count(&self) -> u64 {
        self.inner.sample_count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        self.inner.entry(index)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.inner.read_into(index, bytes)
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }
}

impl StoredSamples for LostMapping {
    fn stored(&self, _: u64) -> Result<Option<StoredBytes>, ReadError> {
        Ok(None)
    }

    fn unpack(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let mut expected = Vec::new();
        self.inner.read_into(index, &mut expected)?;
        let location = self.location().clone();
        let is_sound = *bytes == expected;
        is_sound.then_some(()).ok_or(ReadError::ChangedWhileOpen {
            location,
            offset: 0,
            expected: 0,
        })
    }

    fn view(&self, _: u64) -> Result<Option<&[u8]>, ReadError> {
        if self.is_lost.swap(true, Ordering::Relaxed) {
            let location = self.location().clone();
            return Err(ReadError::Io { location, source: io::Error::from_raw_os_error(5) });
        }
        Ok(Some(&self.zeros))
    }
}

#[test]
fn a_page_that_fails_while_it_is_copied_is_not_damage() {
    let expected = record(&sound(config(Work::Bytes)), 0);
    let lost = LostMapping { inner: samples(), zeros: vec![0; 100], is_lost: false.into() };
    let dataset = Dataset::from_sources(vec![Box::new(lost)]).unwrap();
    let loader = loader(dataset, LoaderConfig { retry: POLICY, ..config(Work::Bytes) });
    assert!(record(&loader, 0) == expected);
}
