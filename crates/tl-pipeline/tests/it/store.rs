//! A store in memory with latency: a data set there makes the batches that it makes on the local
//! disk, and errors name the URL.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use idv_format::Compression;
use tbf_format::BuildOptions;
use tbl_io::{
    BackgroundReads, Location, NewSample, Object, Part, PartFault, PartReceiver, Pin, RangeFault,
    Ranges, ReadError, Source, Storage, Stores, StreamWriter, TarOptions, TarWriter, TblVersion,
    UnderWay, WriteOptions,
};
use tl_pipeline::{
    Blocks, CacheKind, Columns, Dataset, Fields, Loader, LoaderConfig, OnError, PipelineError,
    Readers, Shuffle, Work,
};

use crate::arrow_files::write_arrow;
use crate::caches::{disk, memory};
use crate::memory::{bmp, config, pixels, train};
use crate::parquet_files::{Form, Row, write_parquet};
use crate::tables::files::{write_idv, write_tbf};

pub(crate) const SAMPLES: u32 = 14;

/// Objects by URL, each with the number of its version.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryStore(Arc<Shared>);

/// The number of an object's version, and its bytes.
type Version = (u64, Arc<[u8]>);

#[derive(Debug, Default)]
struct Shared {
    /// Whether objects are asked for with credentials.
    is_secret: bool,
    objects: Mutex<BTreeMap<String, Version>>,
    /// True if objects have a local copy.
    has_copies: bool,
    /// True if listings have no versions.
    lists_no_versions: bool,
    /// The time that every round trip takes.
    latency: Duration,
    /// Round trips that brought bytes.
    reads: AtomicU64,
    /// Bytes that reads brought.
    received: AtomicU64,
    /// Reads that were started in the background.
    started: AtomicU64,
    /// The URL, and a position in it whose reads are refused.
    refused: Mutex<Option<(String, u64)>>,
}

impl MemoryStore {
    pub(crate) fn with_credentials() -> Self {
        Self(Arc::new(Shared { is_secret: true, ..Shared::default() }))
    }

    pub(crate) fn with_latency(latency: Duration) -> Self {
        Self(Arc::new(Shared { latency, ..Shared::default() }))
    }

    /// Copies a local file, or all files of a folder.
    pub(crate) fn upload(&self, path: &Path, url: &str) {
        if path.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                self.upload(&entry.path(), &format!("{url}/{name}"));
            }
        } else {
            self.put(url, fs::read(path).unwrap());
        }
    }

    pub(crate) fn put(&self, url: &str, bytes: Vec<u8>) {
        let mut objects = self.0.objects.lock().unwrap();
        let version = objects.get(url).map_or(1, |(version, _)| version + 1);
        objects.insert(url.to_owned(), (version, bytes.into()));
    }

    pub(crate) fn get(&self, url: &str) -> Vec<u8> {
        self.0.objects.lock().unwrap()[url].1.to_vec()
    }

    pub(crate) fn reads(&self) -> u64 {
        self.0.reads.swap(0, Ordering::Relaxed)
    }

    pub(crate) fn received(&self) -> u64 {
        self.0.received.swap(0, Ordering::Relaxed)
    }

    /// Refuses reads of a position of an object, or none.
    pub(crate) fn refuse(&self, read: Option<(String, u64)>) {
        *self.0.refused.lock().unwrap() = read;
    }

    pub(crate) fn stores(&self) -> Stores {
        tl_pipeline::stores().with("mem", Arc::new(self.clone()))
    }

    pub(crate) fn open_all(&self, urls: &[&str]) -> Dataset {
        Dataset::open_in(&self.stores(), urls).unwrap()
    }
}

/// `numbers` in the byte order of MNIST's files.
fn big_endian(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

#[test]
fn files_next_to_an_object_are_found_in_its_store() {
    let store = MemoryStore::default();
    store.put("mem://m/x-images-idx3-ubyte", [big_endian(&[0x803, 2, 1, 1]), vec![5, 6]].concat());
    store.put("mem://m/x-labels-idx1-ubyte", [big_endian(&[0x801, 2]), vec![7, 3]].concat());
    let digits = store.open_all(&["mem://m/x-images-idx3-ubyte"]);
    let labels = [0, 1].map(|index| digits.entry(index).unwrap().label);
    assert_eq!(labels, [Some(7), Some(3)]);

    let record = [vec![4], vec![9; 3072]].concat();
    let names: String = (0..10).map(|number| format!("class {number}\n")).collect();
    store.put("mem://c/batch.bin", record);
    store.put("mem://c/batches.meta.txt", names.into_bytes());
    let pictures = store.open_all(&["mem://c/batch.bin"]);
    assert_eq!(pictures.class_names()[4], "class 4");

    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("x.bin");
    let mut writer = TarWriter::create(&archive, TarOptions::default()).unwrap();
    writer.append(b"1.jpg", b"bytes").unwrap();
    writer.finish().unwrap();
    store.upload(&archive, "mem://t/x.bin");
    assert_eq!(store.open_all(&["mem://t/x.bin"]).len(), 1);
}

fn pin(version: u64) -> Pin {
    Pin::Version(version.to_string().into())
}

impl Storage for MemoryStore {
    fn open(&self, object: &Location, listed: Option<&Object>) -> Result<Source, ReadError> {
        let url = object.url().unwrap();
        let objects = self.0.objects.lock().unwrap();
        let Some((version, bytes)) = objects.get(url) else {
            let source = io::ErrorKind::NotFound.into();
            return Err(ReadError::Io { location: object.clone(), source });
        };
        let (len, pin) = match listed.filter(|listed| listed.pin != Pin::Unknown) {
            Some(Object { len, pin, .. }) => (*len, pin.clone()),
            None => (bytes.len() as u64, pin(*version)),
        };
        let object = StoredObject { shared: Arc::clone(&self.0), url: url.to_owned(), len, pin };
        Ok(Source::from_ranges(url, Arc::new(object)))
    }

    fn list(&self, folder: &Location) -> Result<Vec<Object>, ReadError> {
        let prefix = folder.url().unwrap();
        let objects = self.0.objects.lock().unwrap();
        let below = objects.iter().filter_map(|(url, (version, bytes))| {
            let name = url.strip_prefix(prefix)?.as_bytes().to_vec();
            let pin = if self.0.lists_no_versions { Pin::Unknown } else { pin(*version) };
            Some(Object { name, len: bytes.len() as u64, pin })
        });
        // Not in order, which is not asked for.
        Ok(below.rev().collect())
    }
}

/// A version of an object.
#[derive(Clone, Debug)]
struct StoredObject {
    shared: Arc<Shared>,
    url: String,
    len: u64,
    pin: Pin,
}

impl StoredObject {
    fn copy(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        let refused = self.shared.refused.lock().unwrap();
        let end = offset + bytes.len() as u64;
        if refused.as_ref().is_some_and(|(url, at)| *url == self.url && (offset..end).contains(at))
        {
            let elapsed = Duration::from_millis(1_250);
            return Err(RangeFault::Refused { status: 503, code: None, tries: 10, elapsed });
        }
        let objects = self.shared.objects.lock().unwrap();
        let (version, stored) = &objects[&self.url];
        if pin(*version) != self.pin {
            return Err(RangeFault::Changed { found: pin(*version) });
        }
        let start = usize::try_from(offset).unwrap().min(stored.len());
        let found = &stored[start..][..bytes.len().min(stored.len() - start)];
        bytes[..found.len()].copy_from_slice(found);
        let received = found.len() as u64;
        self.shared.received.fetch_add(received, Ordering::Relaxed);
        if found.len() < bytes.len() { Err(RangeFault::Short { received }) } else { Ok(()) }
    }

    fn round_trip(&self) {
        self.shared.reads.fetch_add(1, Ordering::Relaxed);
        thread::sleep(self.shared.latency);
    }
}

impl Ranges for StoredObject {
    fn len(&self) -> u64 {
        self.len
    }

    fn pin(&self) -> &Pin {
        &self.pin
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        self.round_trip();
        self.copy(offset, bytes)
    }

    fn read_parts(&self, parts: &mut [Part<'_>]) -> Result<(), PartFault> {
        self.round_trip();
        for (number, part) in parts.iter_mut().enumerate() {
            let copied = self.copy(part.offset, part.bytes);
            copied.map_err(|fault| PartFault { part: number, fault })?;
        }
        Ok(())
    }

    fn is_secret(&self) -> bool {
        self.shared.is_secret
    }

    fn local(&self) -> Option<Source> {
        let objects = self.shared.objects.lock().unwrap();
        let bytes = || objects[&self.url].1.to_vec();
        self.shared.has_copies.then(|| Source::from_bytes(&self.url, bytes()))
    }

    fn background(&self) -> Option<&dyn BackgroundReads> {
        Some(self)
    }
}

impl BackgroundReads for StoredObject {
    fn start(
        &self,
        parts: Vec<Range<u64>>,
        _: Option<Duration>,
        mut receiver: Box<dyn PartReceiver>,
    ) -> UnderWay {
        let object = self.clone();
        object.shared.started.fetch_add(1, Ordering::Relaxed);
        // Counted here: the thread may run when the loader that asked is gone.
        object.shared.reads.fetch_add(1, Ordering::Relaxed);
        thread::spawn(move || {
            thread::sleep(object.shared.latency);
            for part in parts {
                let len = usize::try_from(part.end - part.start).unwrap();
                let mut bytes = receiver.buffer(len);
                bytes.resize(len, 0);
                // The rest is missing where a part is refused.
                let Ok(()) = object.copy(part.start, &mut bytes) else { return };
                receiver.receive(bytes);
            }
        });
        UnderWay::new(())
    }
}

/// The files of sample `number`: name and content.
fn files(number: u32) -> Vec<(String, Vec<u8>)> {
    let (width, height, pixels) = pixels(number);
    let name = format!("{}/{number:03}", ["ant", "bee"][number as usize % 2]);
    vec![
        (format!("{name}.bmp"), bmp(width, height, &pixels)),
        (format!("{name}.cls"), (number % 3).to_string().into_bytes()),
        (format!("{name}.txt"), format!("caption {number}").into_bytes()),
    ]
}

/// All files of samples, in the order of their names.
fn all_files() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = (0..SAMPLES).flat_map(files).collect();
    all.sort();
    all
}

pub(crate) fn write_folder(root: &Path) -> PathBuf {
    let root = root.join("folder");
    for (name, bytes) in all_files() {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    fs::write(root.join(".hidden.bmp"), "").unwrap();
    root
}

pub(crate) fn write_tar(root: &Path) -> PathBuf {
    let path = root.join("a.tar");
    let mut writer = TarWriter::create(&path, TarOptions::default()).unwrap();
    for (name, bytes) in all_files() {
        writer.append(name.as_bytes(), &bytes).unwrap();
    }
    writer.finish().unwrap();
    path
}

pub(crate) fn write_tbl(root: &Path, name: &str, options: WriteOptions) -> PathBuf {
    let path = root.join(name);
    let has_names = options.version == TblVersion::V2;
    let mut writer = StreamWriter::create(&path, options).unwrap();
    for number in 0..SAMPLES {
        let [(key, image), (_, label), (_, text)] = files(number).try_into().unwrap();
        let label = String::from_utf8(label).unwrap().parse().unwrap();
        let fields = [tbl_io::Field { extension: b"txt".into(), bytes: text }];
        let (width, height, _) = pixels(number);
        let sample = NewSample { format: tbl_format::SampleFormat::Bmp, ..NewSample::new(&image) };
        let sample = if has_names {
            let (key, label) = (Some(key.as_bytes()), Some(label));
            NewSample { key, label, width, height, fields: &fields, ..sample }
        } else {
            sample
        };
        writer.write_sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// Data sets of samples, of each kind.
pub(crate) fn containers(root: &Path) -> Vec<PathBuf> {
    let v1 = WriteOptions { version: TblVersion::V1, ..WriteOptions::default() };
    let lz4 = WriteOptions { compression: tbl_io::Compression::Lz4, ..WriteOptions::default() };
    vec![
        write_folder(root),
        write_tar(root),
        write_tbl(root, "v1.tbl", v1),
        write_tbl(root, "v2.tbl", WriteOptions::default()),
        write_tbl(root, "lz4.tbl", lz4),
    ]
}

/// The samples as Parquet and Arrow files.
fn files_of_rows(root: &Path) -> Vec<PathBuf> {
    let row = |number| {
        let [(name, image), (_, label), (_, caption)] = files(number).try_into().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Row { name, image, label: text(label), text: text(caption) }
    };
    let rows: Vec<Row> = (0..SAMPLES).map(row).collect();
    let files = [("plain.parquet", Form::Plain), ("packed.parquet", Form::Packed)];
    let write = |(name, form)| {
        let path = root.join(name);
        write_parquet(&path, form, &rows);
        path
    };
    let arrow = [("plain.arrow", Form::Plain), ("packed.arrow", Form::Packed)];
    let write_arrow = |(name, form)| {
        let path = root.join(name);
        write_arrow(&path, form, &rows);
        path
    };
    files.into_iter().map(write).chain(arrow.into_iter().map(write_arrow)).collect()
}

/// Everything that the batches of an epoch hold, row by row.
pub(crate) fn rows(dataset: Dataset, config: LoaderConfig) -> Vec<Vec<u8>> {
    let loader = Loader::new(dataset, config).unwrap();
    let mut rows = Vec::new();
    for batch in loader.epoch(1) {
        let batch = batch.unwrap();
        let images = batch.images().len() / batch.len();
        for row in 0..batch.len() {
            let mut bytes = [batch.indices()[row].to_le_bytes(), batch.labels()[row].to_le_bytes()]
                .as_flattened()
                .to_vec();
            bytes.extend_from_slice(batch.key(row).unwrap_or_default());
            bytes.extend_from_slice(batch.bytes(0, row).unwrap_or_default());
            bytes.extend_from_slice(&batch.images()[row * images..][..images]);
            bytes.extend_from_slice(batch.sample(row).map_or(&[], |sample| sample.bytes));
            for column in batch.columns() {
                let width = column.bytes.len() / batch.len();
                bytes.extend_from_slice(&column.bytes[row * width..][..width]);
            }
            rows.push(bytes);
        }
    }
    rows
}

/// The URL of a local data set, with a final slash for a folder.
pub(crate) fn url(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    format!("mem://bucket/{name}{}", if path.is_dir() { "/" } else { "" })
}

pub(crate) fn upload(store: &MemoryStore, path: &Path) -> String {
    let url = url(path);
    store.upload(path, url.trim_end_matches('/'));
    url
}

#[test]
fn samples_of_a_store_make_the_batches_of_local_ones() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let fields = Fields { keys: true, bytes: vec!["txt".to_owned()], ..Fields::default() };
    for path in containers(root.path()).into_iter().chain(files_of_rows(root.path())) {
        let url = upload(&store, &path);
        let (local, stored) = (Dataset::open(&[&path]).unwrap(), store.open_all(&[&url]));
        assert_eq!(local.len(), u64::from(SAMPLES));
        assert_eq!(local.fingerprint().unwrap(), stored.fingerprint().unwrap(), "{url}");
        assert_eq!(local.class_names(), stored.class_names());
        assert_eq!(stored.shards()[0].location(), &Location::new(&url));
        let has_fields = !path.ends_with("v1.tbl");
        let fields = if has_fields { fields.clone() } else { Fields::default() };
        for work in [Work::Bytes, Work::Views, train()] {
            let config = LoaderConfig { fields: fields.clone(), ..config(work) };
            let expected = rows(Dataset::open(&[&path]).unwrap(), config.clone());
            assert_eq!(expected.len(), SAMPLES as usize);
            for (readers, kind) in [
                (Readers::Workers, None),
                (Readers::Threads(2), None),
                (Readers::Workers, Some(CacheKind::Encoded)),
            ] {
                let cache = kind.map_or_else(Default::default, |kind| memory(kind, 1 << 20));
                let config = LoaderConfig { readers, cache, ..config.clone() };
                assert!(rows(store.open_all(&[&url]), config) == expected, "{url}, {readers:?}");
            }
        }
    }
}

#[test]
fn tables_of_a_store_make_the_batches_of_local_ones() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    write_idv(&at("plain.idv"), 0..40, Compression::None);
    write_idv(&at("packed.idv"), 0..40, Compression::Deflate);
    write_tbf(&at("graph.tbf"), 30, BuildOptions::default());
    let store = MemoryStore::default();
    for name in ["plain.idv", "packed.idv", "graph.tbf"] {
        let url = upload(&store, &at(name));
        let config = || config(Work::Columns(Columns::default()));
        let expected = rows(Dataset::open(&[at(name)]).unwrap(), config());
        assert!(!expected.is_empty());
        let stored = store.open_all(&[&url]);
        let local = Dataset::open(&[at(name)]).unwrap();
        assert_eq!(local.fingerprint().unwrap(), stored.fingerprint().unwrap(), "{url}");
        assert!(rows(stored, config()) == expected, "{url}");
    }
}

#[test]
fn a_local_file_and_one_of_a_store_are_one_data_set() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::with_latency(Duration::from_micros(200));
    let (tar, tbl) =
        (write_tar(root.path()), write_tbl(root.path(), "a.tbl", WriteOptions::default()));
    let url = upload(&store, &tbl);
    let joined = || Dataset::open_in(&store.stores(), &[tar.to_str().unwrap(), &url]).unwrap();
    assert_eq!(joined().len(), 2 * u64::from(SAMPLES));
    for readers in [Readers::Workers, Readers::Threads(3)] {
        let config = LoaderConfig { readers, ..config(train()) };
        let expected = rows(Dataset::open(&[&tar, &tbl]).unwrap(), config.clone());
        assert!(rows(joined(), config) == expected);
    }
}

#[test]
fn neighbours_that_are_needed_soon_come_together() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::with_latency(Duration::from_millis(1));
    let url = upload(&store, &write_tar(root.path()));
    for (shuffle, most) in [
        // The first batch comes alone.
        (Shuffle::None, 2),
        (Shuffle::Block { blocks: Blocks::Samples(7), window: 1 }, 4),
    ] {
        let dataset = store.open_all(&[&url]);
        store.reads();
        let sampler = shuffle.into();
        let prefetch_next_epoch = false;
        let config = LoaderConfig { sampler, prefetch_next_epoch, ..config(Work::Bytes) };
        let loader = Loader::new(dataset, config).unwrap();
        let received: usize = loader.epoch(0).map(|batch| batch.unwrap().len()).sum();
        assert_eq!(received, SAMPLES as usize);
        let reads = store.reads();
        let stats = loader.stats().readers;
        assert_eq!(stats.samples + stats.late, u64::from(SAMPLES));
        assert!(reads <= most + stats.late, "{shuffle}: {reads} round trips, {stats:?}");
    }
}

#[test]
fn later_epochs_are_requested_when_their_turn_comes() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::with_latency(Duration::from_millis(1));
    let url = upload(&store, &write_tar(root.path()));
    let config = LoaderConfig { batch_size: 1, prefetch: 1, ..config(Work::Bytes) };
    let loader = Loader::new(store.open_all(&[&url]), config).unwrap();
    let mut batches = loader.epoch(0);
    batches.next().unwrap().unwrap();
    let read = || {
        let stats = loader.stats().readers;
        stats.samples + stats.late
    };
    while read() < u64::from(SAMPLES) {
        thread::sleep(Duration::from_millis(1));
    }
    // Nothing else limits what is read ahead.
    thread::sleep(Duration::from_millis(20));
    assert_eq!(read(), u64::from(SAMPLES));
    assert_eq!(batches.count(), SAMPLES as usize - 1);
    for epoch in 1..4 {
        assert_eq!(loader.epoch(epoch).count(), SAMPLES as usize);
    }
    let stats = loader.stats().readers;
    assert!(stats.late < 2 * u64::from(SAMPLES), "{stats:?}");
}

#[test]
fn samples_of_a_folder_are_requested_one_by_one_in_the_background() {
    let root = tempfile::tempdir().unwrap();
    let path = write_folder(root.path());
    for lists_no_versions in [false, true] {
        let latency = Duration::from_millis(1);
        let store =
            MemoryStore(Arc::new(Shared { latency, lists_no_versions, ..Shared::default() }));
        let url = upload(&store, &path);
        for shuffle in
            [Shuffle::None, Shuffle::Full, Shuffle::Block { blocks: Blocks::Samples(7), window: 1 }]
        {
            let (sampler, prefetch_next_epoch) = (shuffle.into(), false);
            let config = LoaderConfig { sampler, prefetch_next_epoch, ..config(Work::Bytes) };
            let dataset = store.open_all(&[&url]);
            store.0.started.store(0, Ordering::Relaxed);
            store.reads();
            let loader = Loader::new(dataset, config).unwrap();
            let received: usize = loader.epoch(0).map(|batch| batch.unwrap().len()).sum();
            assert_eq!(received, SAMPLES as usize);
            let stats = loader.stats().readers;
            assert_eq!(stats.samples + stats.late, u64::from(SAMPLES));
            assert_eq!(store.reads(), u64::from(SAMPLES));
            let started = store.0.started.load(Ordering::Relaxed);
            // What is opened by a request would keep the next one waiting.
            assert_eq!(started, if lists_no_versions { 0 } else { stats.samples }, "{shuffle}");
        }
    }
}

#[test]
fn fields_of_a_sample_are_one_round_trip() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let dataset = store.open_all(&[&upload(&store, &write_tar(root.path()))]);
    store.reads();
    let mut fields = Vec::new();
    dataset.read_fields_where(3, &mut |_, _| true, &mut fields).unwrap();
    assert_eq!((fields.len(), store.reads()), (2, 1));
}

#[test]
fn a_cache_on_disk_keeps_the_versions_of_objects_apart() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    for path in
        [write_tbl(root.path(), "a.tbl", WriteOptions::default()), write_folder(root.path())]
    {
        let url = upload(&store, &path);
        let folder = tempfile::tempdir().unwrap();
        let config = || {
            let cache = disk(CacheKind::Encoded, folder.path(), 1 << 20);
            LoaderConfig { cache, ..config(Work::Bytes) }
        };
        let expected = rows(store.open_all(&[&url]), config());
        let dataset = store.open_all(&[&url]);
        store.reads();
        assert!(rows(dataset, config()) == expected);
        assert_eq!(store.reads(), 0, "{url}: all samples are in the cache");
    }
    let url = "mem://bucket/folder/";
    let folder = tempfile::tempdir().unwrap();
    let config = || {
        let cache = disk(CacheKind::Encoded, folder.path(), 1 << 20);
        LoaderConfig { cache, ..config(Work::Bytes) }
    };
    let before = rows(store.open_all(&[url]), config());
    let (_, other) = &files(1)[0];
    let len = files(0)[0].1.len();
    store.put("mem://bucket/folder/ant/000.bmp", other[..len.min(other.len())].to_vec());
    assert!(rows(store.open_all(&[url]), config()) != before);
}

#[test]
fn an_object_with_a_local_copy_is_mapped() {
    let root = tempfile::tempdir().unwrap();
    let path = write_tbl(root.path(), "a.tbl", WriteOptions::default());
    let store = MemoryStore(Arc::new(Shared { has_copies: true, ..Shared::default() }));
    let url = upload(&store, &path);
    let dataset = store.open_all(&[&url]);
    store.reads();
    let expected = rows(Dataset::open(&[&path]).unwrap(), config(Work::Views));
    assert!(rows(dataset, config(Work::Views)) == expected);
    assert_eq!(store.reads(), 0);
}

/// The error of an epoch over a data set that was opened before `damage`.
fn error_after(store: &MemoryStore, url: &str, damage: impl FnOnce()) -> String {
    let loaders =
        [OnError::Raise, OnError::Skip, OnError::Replace, OnError::Fill].map(|on_error| {
            let sampler = Shuffle::None.into();
            let config = LoaderConfig { sampler, on_error, ..config(Work::Bytes) };
            Loader::new(store.open_all(&[url]), config).unwrap()
        });
    damage();
    let errors = loaders.map(|loader| {
        let error = loader.epoch(0).find_map(Result::err).unwrap();
        assert!(matches!(error, PipelineError::Sample(_)), "{error}");
        error.to_string()
    });
    // No policy for bad samples covers a store.
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    errors[0].clone()
}

#[test]
fn stars_are_the_only_wildcards() {
    let store = MemoryStore::default();
    for name in ["a[1]-0.tar", "a[1]-1.tar", "a1-0.tar", "b?.tar", "b0.tar", "c/d/e.tar"] {
        store.put(&format!("mem://b/{name}"), Vec::new());
    }
    let expand = |name: &str| {
        let found = store.stores().expand(format!("mem://b/{name}"));
        let names = found.map(|found| {
            let name = |found: &Location| found.url().unwrap()["mem://b/".len()..].to_owned();
            found.iter().map(name).collect::<Vec<_>>()
        });
        names.map_err(|error| error.to_string())
    };
    let names = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    assert_eq!(expand("a[1]-*.tar"), names(&["a[1]-0.tar", "a[1]-1.tar"]));
    assert_eq!(expand("b?*.tar"), names(&["b?.tar"]));
    assert_eq!(expand("**/e.tar"), names(&["c/d/e.tar"]));
    assert_eq!(
        expand("{1..0}*.tar").unwrap_err(),
        "mem://b/1*.tar: no object matches this pattern"
    );
    assert_eq!(expand("a{1..2}-0.tar"), names(&["a1-0.tar", "a2-0.tar"]));
    assert_eq!(expand("a[{1..1}]-*"), names(&["a[1]-0.tar", "a[1]-1.tar"]));
}

#[test]
fn errors_name_url_sample_and_offset() {
    let root = tempfile::tempdir().unwrap();
    let path = write_tbl(root.path(), "a.tbl", WriteOptions::default());
    let store = MemoryStore::default();
    let url = upload(&store, &path);
    let bytes = fs::read(&path).unwrap();
    let local = Dataset::open(&[&path]).unwrap();
    let entry = local.entry(5).unwrap();
    let (offset, len) = (entry.offset, entry.stored_bytes);
    let at = format!("{url}: sample 5 (bee/005.bmp): at byte {offset}: ");
    let key = format!("{url}: sample 0 (ant/000.bmp) at byte");

    let refuse = || store.refuse(Some((url.clone(), offset)));
    let error = error_after(&store, &url, refuse);
    let expected = format!("{at}expected {len} bytes: status 503, 10 tries in 1.2 s");
    assert_eq!(error, expected);
    store.refuse(None);

    let cut = usize::try_from(offset).unwrap() + 7;
    let shorten = || store.0.objects.lock().unwrap().get_mut(&url).unwrap().1 = bytes[..cut].into();
    let error = error_after(&store, &url, shorten);
    assert_eq!(error, format!("{at}expected {len} bytes: received 7 bytes"));

    store.put(&url, bytes.clone());
    let error = error_after(&store, &url, || store.put(&url, bytes));
    assert!(error.starts_with(&key), "{error}");
    let replaced = "the object was replaced while it was open: expected version `2`, found `3`";
    assert!(error.ends_with(replaced), "{error}");
}

#[test]
fn an_object_of_a_folder_that_was_replaced_is_named() {
    let root = tempfile::tempdir().unwrap();
    let store = MemoryStore::default();
    let url = upload(&store, &write_folder(root.path()));
    let image = "mem://bucket/folder/ant/004.bmp";
    let error = error_after(&store, &url, || store.put(image, files(4)[0].1.clone()));
    let replaced = "the object was replaced while it was open: expected version `1`, found `2`";
    assert_eq!(error, format!("{url}: sample 2 (ant/004.bmp) at byte 0: {replaced}"));
}

#[test]
fn what_cannot_be_opened_is_named() {
    let store = MemoryStore::default();
    store.put("mem://bucket/bad/../up.jpg", Vec::new());
    let refused =
        |location: &str| Dataset::open_in(&store.stores(), &[location]).unwrap_err().to_string();
    assert_eq!(refused("mem://bucket/none.tbl"), "mem://bucket/none.tbl: entity not found");
    assert_eq!(
        refused("s3://b/a.tar"),
        "s3://b/a.tar: unknown URL scheme, expected a path or mem://"
    );
    let unsafe_name = refused("mem://bucket/bad/");
    assert!(unsafe_name.starts_with("mem://bucket/bad/: unsafe name ../up.jpg: "), "{unsafe_name}");
    let none = Dataset::open(&["s3://b/a.tar"]).unwrap_err().to_string();
    assert_eq!(none, "s3://b/a.tar: unknown URL scheme, expected a path");
}
