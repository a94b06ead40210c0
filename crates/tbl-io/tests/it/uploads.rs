//! Files that are written to a store have the bytes of local ones.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tbl_io::{
    AsStored, Compression, ConvertOptions, Field, IndexOptions, Labels, Location, NewSample,
    Object, Placement, ReadError, Selection, Source, Storage, Stores, StreamWriter, TarOptions,
    TarWriter, Target, TblVersion, Upload, WriteOptions, convert, convert_in, index_shards,
    open_in,
};

/// Objects in memory by URL.
#[derive(Clone, Debug, Default)]
struct Store(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl Store {
    fn stores(&self) -> Stores {
        Stores::new().with("mem", Arc::new(self.clone()))
    }

    fn get(&self, url: &str) -> Option<Vec<u8>> {
        self.0.lock().unwrap().get(url).cloned()
    }
}

impl Storage for Store {
    fn open(&self, object: &Location, _: Option<&Object>) -> Result<Source, ReadError> {
        let missing =
            || ReadError::Io { location: object.clone(), source: io::ErrorKind::NotFound.into() };
        let bytes = self.get(object.url().unwrap()).ok_or_else(missing)?;
        Ok(Source::from_bytes(object.as_os_str(), bytes))
    }

    fn list(&self, _: &Location) -> Result<Vec<Object>, ReadError> {
        Ok(Vec::new())
    }

    fn create(&self, object: &Location, overwrite: bool) -> io::Result<Box<dyn Upload>> {
        let url = object.url().unwrap().to_owned();
        if !overwrite && self.get(&url).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(Box::new(Growing { store: self.clone(), url, bytes: Vec::new() }))
    }
}

/// An object of which each byte is written once.
#[derive(Debug)]
struct Growing {
    store: Store,
    url: String,
    bytes: Vec<Option<u8>>,
}

impl Upload for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend(bytes.iter().copied().map(Some));
        Ok(())
    }

    fn skip_to(&mut self, position: u64) -> io::Result<()> {
        assert!(position >= self.bytes.len() as u64, "objects do not shrink");
        self.bytes.resize(position as usize, None);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        for (place, byte) in self.bytes[offset as usize..][..bytes.len()].iter_mut().zip(bytes) {
            assert!(place.replace(*byte).is_none(), "written twice");
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let bytes = self.bytes.into_iter().map(|byte| byte.expect("each byte is written"));
        self.store.0.lock().unwrap().insert(self.url, bytes.collect());
        Ok(())
    }
}

/// Writes samples with all that a file can have of them.
fn fill(mut writer: StreamWriter, count: usize) {
    writer.set_class_names(&["cat".to_owned(), "dog".to_owned()]);
    for number in 0..count {
        let key = format!("{number}.jpg");
        let bytes = vec![number.to_le_bytes()[0]; number * 700];
        let fields = [Field { extension: b"txt".to_vec(), bytes: vec![b'x'; number % 9] }];
        let sample =
            NewSample { key: Some(key.as_bytes()), fields: &fields, ..NewSample::new(&bytes) };
        writer.write_sample(&NewSample { label: Some((number % 2) as i64), ..sample }).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn tbl_files_are_those_of_the_local_system() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("local.tbl");
    for version in [TblVersion::V1, TblVersion::V2] {
        for (count, announced) in
            [(0, None), (0, Some(0)), (0, Some(9)), (40, None), (40, Some(40)), (40, Some(300))]
        {
            let sample_count = announced;
            let options =
                WriteOptions { version, sample_count, overwrite: true, ..WriteOptions::default() };
            let store = Store::default();
            let url = Location::new("mem://b/a.tbl");
            fill(StreamWriter::create_in(&store.stores(), &url, options).unwrap(), count);
            fill(StreamWriter::create(&path, options).unwrap(), count);
            let local = std::fs::read(&path).unwrap();
            let uploaded = store.get("mem://b/a.tbl").unwrap();
            assert!(uploaded == local, "{version:?} {count} {announced:?}");
        }
    }
}

#[test]
fn conversions_and_indexes_are_those_of_the_local_system() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = WriteOptions::default();
    fill(StreamWriter::create(&at("source.tbl"), options).unwrap(), 30);
    let store = Store::default();
    let stores = store.stores();
    let sources = [tbl_io::open(at("source.tbl")).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let mut on_event = |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    for (name, target) in [
        ("a.tbl", Target::Tbl2(Compression::Lz4)),
        ("b.tbl", Target::Tbl2(Compression::AsStored)),
        ("1.tbl", Target::Tbl1),
        ("c.tar", Target::Tar),
    ] {
        let options = ConvertOptions::new(target);
        convert(&selection, &at(name), &options, AsStored::default, &mut on_event).unwrap();
        let url = format!("mem://b/x/{name}");
        let to = Location::new(&url);
        let new_prepare = AsStored::default;
        convert_in(&stores, &selection, &to, &options, new_prepare, &mut on_event).unwrap();
        assert!(store.get(&url) == Some(std::fs::read(at(name)).unwrap()), "{name}");
        let exists = convert_in(&stores, &selection, &to, &options, new_prepare, &mut on_event);
        let text = exists.unwrap_err().to_string();
        assert_eq!(text, format!("{url}: entity already exists"));
    }
    let shards = ["mem://b/x/a.tbl", "mem://b/x/c.tar"];
    let options = IndexOptions::default();
    let summary = index_shards(&stores, &shards, "mem://b/all.tlidx", options).unwrap();
    assert_eq!((summary.samples, summary.folder), (60, None));
    let opened = open_in(&stores, "mem://b/x/a.tbl").unwrap();
    assert_eq!(opened.sample_count(), 30);
    let update = IndexOptions { update: true, ..options };
    let summary = index_shards(&stores, &shards, "mem://b/all.tlidx", update).unwrap();
    assert_eq!(summary.shards, 2);
    let outside = index_shards(&stores, &shards, "mem://b/y/all.tlidx", options).unwrap_err();
    assert!(outside.to_string().contains("lies outside of mem://b/y/"), "{outside}");
}

#[test]
fn nothing_is_there_before_the_end() {
    let store = Store::default();
    let to = Location::new("mem://b/a.tar");
    let mut writer = TarWriter::create_in(&store.stores(), &to, TarOptions::default()).unwrap();
    writer.append(b"a.jpg", b"1").unwrap();
    drop(writer);
    assert_eq!(store.get("mem://b/a.tar"), None);
}

#[test]
fn urls_without_a_store_are_refused() {
    let placement = Placement { overwrite: false, sync: false };
    let refused = StreamWriter::create(Path::new("s3://b/k?sig=x"), WriteOptions::default());
    let text = refused.unwrap_err().to_string();
    assert_eq!(text, "s3://b/k?...: only local files are written here, expected a path");
    let local = tbl_io::AtomicFile::create(Path::new("s3://b/k"), placement).unwrap_err();
    assert_eq!(local.to_string(), "only local files are written here, expected a path");
}
