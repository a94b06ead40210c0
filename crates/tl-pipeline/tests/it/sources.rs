//! Sources that are not ours: they panic wherever they are asked, and they are slow when nobody
//! waits any more.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use tbl_format::SampleFormat;
use tbl_io::{
    Entry, Facts, Field, Location, PageCache, ReadError, RowIndexes, SampleSource, SourceKind,
    StoredBytes, StoredSamples, TblFile,
};
use tl_pipeline::{
    Batching, Buckets, CacheConfig, CacheKind, Dataset, Fields, LoaderConfig, LoaderNote,
    MemoryCache, OnError, PipelineError, Readers, SampleFault, Shuffle, Work,
};
use tl_transform::Recipe;

use crate::caches::{disk, exact, tbl, tbl_with_fields};
use crate::memory::{Memory, config, loader, sample, train};

const SAMPLES: u32 = 48;

/// Far enough after the first sample to be announced.
const BAD: u64 = 40;

/// The requests to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Location,
    Entry,
    Facts,
    ContentId,
    Read,
    View,
    Stored,
    Unpack,
    RowIndex,
    WillNeed,
    Fields,
}

/// A source that panics when it is asked one thing of one sample, or for its location.
#[derive(Debug)]
struct Panicking {
    inner: TblFile,
    asked: Asked,
    /// Opening is not what is tested.
    is_armed: Arc<AtomicBool>,
}

impl Panicking {
    fn ask(&self, asked: Asked, index: u64) -> &TblFile {
        let is_armed = self.is_armed.load(Ordering::Relaxed);
        assert!(!is_armed || asked != self.asked || index != BAD, "injected\n{asked:?}");
        &self.inner
    }
}

impl SampleSource for Panicking {
    fn location(&self) -> &Location {
        self.ask(Asked::Location, BAD).location()
    }

    fn kind(&self) -> SourceKind {
        self.inner.kind()
    }

    fn sample_count(&self) -> u64 {
        self.inner.sample_count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        self.ask(Asked::Entry, index).entry(index)
    }

    fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        self.ask(Asked::Facts, index).facts(index)
    }

    fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        self.ask(Asked::ContentId, index).content_id(index, id)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.ask(Asked::Read, index).read_into(index, bytes)
    }

    fn will_need(&self, index: u64) {
        self.ask(Asked::WillNeed, index).will_need(index);
    }

    fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        self.ask(Asked::Fields, index).read_fields_where(index, is_wanted, fields)
    }

    fn class_names(&self) -> &[String] {
        self.inner.class_names()
    }

    fn stored_samples(&self) -> Option<&dyn StoredSamples> {
        Some(self)
    }

    fn row_indexes(&self) -> Option<&dyn RowIndexes> {
        Some(self)
    }
}

impl StoredSamples for Panicking {
    fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        self.ask(Asked::View, index).view(index)
    }

    fn stored(&self, index: u64) -> Result<Option<StoredBytes>, ReadError> {
        self.ask(Asked::Stored, index).stored(index)
    }

    fn unpack(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        self.ask(Asked::Unpack, index).unpack(index, bytes)
    }
}

impl RowIndexes for Panicking {
    fn row_index_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<bool, ReadError> {
        self.ask(Asked::RowIndex, index).row_index_into(index, bytes)
    }
}

/// The result of an epoch with a source that panics: the samples received, the bad ones, the notes.
fn epoch(path: &Path, asked: Asked, config: LoaderConfig) -> (Vec<u64>, Vec<String>, Vec<u64>) {
    let is_armed = Arc::new(AtomicBool::new(false));
    let inner = TblFile::open(path).unwrap();
    let source = Panicking { inner, asked, is_armed: Arc::clone(&is_armed) };
    let loader = loader(Dataset::from_sources(vec![Box::new(source)]).unwrap(), config);
    is_armed.store(true, Ordering::Relaxed);
    let mut received = Vec::new();
    for batch in loader.epoch(0) {
        match batch {
            Err(PipelineError::SizeUnknown(sample)) => {
                return (received, vec![sample.fault.to_string()], vec![]);
            }
            batch => received.extend_from_slice(batch.unwrap().indices()),
        }
    }
    received.sort_unstable();
    let said = loader.audit();
    assert!(said.iter().all(|entry| entry.error.index == BAD));
    let note = |note| {
        let LoaderNote::ReadAheadPanicked { sample, message } = note else { return None };
        assert!(message.starts_with(r"injected\x0a"), "{message}");
        Some(sample)
    };
    let noted = loader.notes().into_iter().filter_map(note).collect();
    (received, said.iter().map(|entry| entry.error.fault.to_string()).collect(), noted)
}

/// A panic costs at most its sample and is named, and every other sample is delivered.
#[test]
fn a_panic_of_a_source_is_its_samples_error_or_a_note() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbl");
    let field = Field { extension: b"json".to_vec(), bytes: b"{}".to_vec() };
    tbl_with_fields(&path, SAMPLES, SampleFormat::Bmp, &[field]);
    let uring = Readers::Uring { depth: 4, page_cache: PageCache::Used };
    let grouped = Batching::Buckets(Buckets { window: 2, multiple: 1 });
    let works = [
        (Work::Bytes, Batching::InOrder),
        (Work::Views, Batching::InOrder),
        (exact(), Batching::InOrder),
        (Work::Images(Recipe::decode()), grouped),
    ];
    let fields = Fields { keys: true, bytes: vec!["json".into()], ..Fields::default() };
    use Asked::{
        ContentId, Entry, Facts, Location, Read, RowIndex, Stored, Unpack, View, WillNeed,
    };
    for asked in [
        Location,
        Entry,
        Facts,
        ContentId,
        Read,
        View,
        Stored,
        Unpack,
        RowIndex,
        WillNeed,
        Asked::Fields,
    ] {
        for readers in [Readers::Workers, Readers::Threads(2), uring] {
            for (work, batching) in &works {
                for is_cached in [false, true] {
                    let folder = tempfile::tempdir().unwrap();
                    let kind = CacheKind::Encoded;
                    let memory = Some(MemoryCache { kind, bytes: 1 << 14 });
                    let cache = CacheConfig { memory, ..disk(kind, folder.path(), 1 << 16) };
                    let cache = if is_cached { cache } else { CacheConfig::default() };
                    let config = LoaderConfig {
                        sampler: Shuffle::None.into(),
                        on_error: OnError::Skip,
                        fields: fields.clone(),
                        batching: *batching,
                        readers,
                        cache,
                        ..config(work.clone())
                    };
                    let case = format!("{asked:?} {readers:?} {work:?} {batching:?} {is_cached}");
                    let (received, faults, noted) = epoch(&path, asked, config);
                    let text = format!(r"panicked: injected\x0a{asked:?}");
                    if asked == Facts && *batching == grouped {
                        // Its size decides where others stand.
                        assert_eq!(faults, [text], "{case}");
                        continue;
                    }
                    let is_missing = !received.contains(&BAD);
                    let expected = (0..SAMPLES.into()).filter(|&index| index != BAD || !is_missing);
                    assert!(received.into_iter().eq(expected), "{case}");
                    assert_eq!(faults.len(), usize::from(is_missing), "{case}");
                    assert!(faults.iter().all(|fault| *fault == text), "{case}");
                    // Workers always need it.
                    let by_workers = readers == Readers::Workers && !is_cached;
                    let is_image = matches!(work, Work::Images(_));
                    let is_needed = matches!(asked, Entry | Asked::Fields)
                        || asked == Facts && is_image
                        || asked == View && *work == Work::Views
                        || asked == Read && is_image && by_workers;
                    assert!(is_missing || !is_needed, "{case}");
                    // Readers may fall behind the workers, hints never do.
                    let is_noted = asked == WillNeed && by_workers;
                    assert!(noted == [BAD] || noted.is_empty() && !is_noted, "{case}: {noted:?}");
                }
            }
        }
    }
}

#[test]
fn a_panic_of_a_source_that_is_raised_names_its_sample() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbl");
    tbl(&path, SAMPLES, SampleFormat::Bmp);
    let is_armed = Arc::new(AtomicBool::new(false));
    let inner = TblFile::open(&path).unwrap();
    let source = Panicking { inner, asked: Asked::Facts, is_armed: Arc::clone(&is_armed) };
    let dataset = Dataset::from_sources(vec![Box::new(source)]).unwrap();
    let batching = Batching::Buckets(Buckets { window: 2, multiple: 1 });
    let work = Work::Images(Recipe::decode());
    let loader = loader(dataset, LoaderConfig { batching, ..config(work) });
    is_armed.store(true, Ordering::Relaxed);
    let error = loader.epoch(0).find_map(Result::err).unwrap();
    let PipelineError::SizeUnknown(sample) = error else { panic!("{error}") };
    assert_eq!(sample.index, BAD);
    assert!(matches!(&sample.fault, SampleFault::Panicked { .. }), "{sample}");
}

/// Samples that one reader reads, which does not come back before a worker has ended.
#[derive(Debug)]
struct Slow {
    memory: Memory,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    state: Mutex<State>,
    changed: Condvar,
    reads_of_workers: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    reader_reads: bool,
    worker_asks: bool,
    worker_ended: bool,
}

impl Progress {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, until: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !until(state)).unwrap());
    }
}

/// Says that its thread has ended.
struct End(Arc<Progress>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.set(|state| state.worker_ended = true);
    }
}

thread_local! {
    static END: RefCell<Option<End>> = const { RefCell::new(None) };
}

fn is_worker() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("tl-worker"))
}

impl SampleSource for Slow {
    fn location(&self) -> &Location {
        self.memory.location()
    }

    fn kind(&self) -> SourceKind {
        self.memory.kind()
    }

    fn sample_count(&self) -> u64 {
        self.memory.sample_count()
    }

    fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        // Workers ask for facts just before the bytes, which are on their way then.
        if is_worker() {
            self.progress.wait(|state| state.reader_reads);
            END.set(Some(End(Arc::clone(&self.progress))));
            self.progress.set(|state| state.worker_asks = true);
        }
        self.memory.entry(index)
    }

    fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        if is_worker() {
            self.progress.reads_of_workers.fetch_add(1, Ordering::Relaxed);
        } else {
            self.progress.set(|state| state.reader_reads = true);
            self.progress.wait(|state| state.worker_ended);
        }
        self.memory.read_into(index, bytes)
    }
}

#[test]
fn nothing_is_read_again_for_an_epoch_that_was_dropped() {
    for on_error in [OnError::Raise, OnError::Skip, OnError::Replace] {
        let progress = Arc::<Progress>::default();
        let samples = (0..8).map(|number| sample(number, SampleFormat::Bmp)).collect();
        let slow = Slow { memory: Memory { samples }, progress: Arc::clone(&progress) };
        let dataset = Dataset::from_sources(vec![Box::new(slow)]).unwrap();
        let readers = Readers::Threads(1);
        let loader =
            loader(dataset, LoaderConfig { readers, workers: 1, on_error, ..config(train()) });
        let epoch = loader.epoch(0);
        progress.wait(|state| state.reader_reads && state.worker_asks);
        drop(epoch);
        assert_eq!(progress.reads_of_workers.load(Ordering::Relaxed), 0, "{on_error:?}");
    }
}
