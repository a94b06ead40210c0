//! Objects of stores as sources.

use std::sync::Arc;

use tbl_io::{
    Mapped, NewSample, Pin, RangeFault, Ranges, ReadError, ReadOptions, SampleSource, Source,
    StreamWriter, TblFile, WriteOptions,
};

/// An object of a store: bytes that are read, not mapped.
#[derive(Debug)]
struct Object(Vec<u8>, Pin);

impl Ranges for Object {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn pin(&self) -> &Pin {
        &self.1
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
        Ok(())
    }
}

fn source(bytes: &[u8], pin: Pin) -> Source {
    Source::from_ranges("mem://a", Arc::new(Object(bytes.to_vec(), pin)))
}

#[test]
fn only_ranges_inside_an_object_are_asked_for() {
    let source = source(b"abcdef", Pin::Unknown);
    let mut bytes = [0; 3];
    source.read_exact_at(3, &mut bytes).unwrap();
    assert_eq!((&bytes, source.len()), (b"def", 6));
    let error = source.read_exact_at(4, &mut bytes).unwrap_err();
    assert!(matches!(error, ReadError::ChangedWhileOpen { offset: 4, expected: 3, .. }), "{error}");
    assert_eq!(error.location().url(), Some("mem://a"));
}

#[test]
fn an_object_is_read_where_a_file_is_mapped() {
    let source = source(b"abcdef", Pin::Unknown);
    assert!(!source.is_mappable());
    let refused = Mapped::new(&source, 0, 6).unwrap_err();
    assert!(matches!(refused, ReadError::NotMapped { .. }), "{refused}");
    let copy = source.to_mappable().unwrap();
    assert_eq!(copy.location(), source.location());
    let read = Mapped::new(&copy, 2, 3).unwrap();
    assert_eq!(read.slice(3, 2).unwrap(), b"de");
    assert!(read.slice(1, 2).is_err() && read.slice(4, 2).is_err());
}

#[test]
fn the_version_of_an_object_tells_its_content() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.tbl");
    let mut writer = StreamWriter::create(&path, WriteOptions::default()).unwrap();
    writer.write_sample(&NewSample::new(b"bytes")).unwrap();
    writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let id = |pin: Pin| {
        let mut id = Vec::new();
        let file = TblFile::from_source(source(&bytes, pin), ReadOptions::default()).unwrap();
        (file.content_id(0, &mut id).unwrap(), id)
    };
    let version = |name: &str| Pin::Version(name.into());
    assert_eq!(id(version("1")), id(version("1")));
    assert_ne!(id(version("1")), id(version("2")));
    assert!(id(version("1")).0);
    assert!(id(Pin::Weak("1".into())).0, "the sample has a checksum");
    assert!(!id(Pin::Unknown).0);
}
