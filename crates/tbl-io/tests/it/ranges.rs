//! Objects of stores as sources.

use std::io::ErrorKind;
use std::sync::Arc;

use tbl_io::{
    Mapped, NewSample, Pin, RangeFault, Ranges, ReadError, ReadOptions, SampleSource, Source,
    StreamWriter, TblFile, WriteOptions, interruptible,
};

/// An object of a store: bytes that are read, not mapped.
#[derive(Debug)]
struct Object(Vec<u8>, Pin, &'static str);

impl Ranges for Object {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn pin(&self) -> &Pin {
        &self.1
    }

    fn hidden(&self) -> &str {
        self.2
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
        Ok(())
    }
}

fn source(bytes: &[u8], pin: Pin) -> Source {
    Source::from_ranges("mem://a", Arc::new(Object(bytes.to_vec(), pin, "")))
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
    let at = |hidden: &'static str| {
        let object = Object(bytes.clone(), version("1"), hidden);
        let source = Source::from_ranges("https://h/shard?...", Arc::new(object));
        let mut id = Vec::new();
        let file = TblFile::from_source(source, ReadOptions::default()).unwrap();
        file.content_id(0, &mut id).unwrap();
        id
    };
    assert_eq!(at("n=0"), at("n=0"));
    assert_ne!(at("n=0"), at("n=1"), "their locations are equal");
}

/// An object that has one byte, and claims a tebibyte.
#[derive(Debug)]
struct Claimant;

impl Ranges for Claimant {
    fn len(&self) -> u64 {
        1 << 40
    }

    fn pin(&self) -> &Pin {
        &Pin::Unknown
    }

    fn read_exact_at(&self, _: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        assert!(bytes.len() <= 32 << 20, "{} bytes at once", bytes.len());
        Err(RangeFault::Short { received: 1 })
    }
}

#[test]
fn a_claimed_length_takes_no_memory() {
    let source = Source::from_ranges("mem://claimed", Arc::new(Claimant));
    let error = source.to_mappable().unwrap_err().to_string();
    assert_eq!(error, "mem://claimed: at byte 0: expected 33554432 bytes: received 1 bytes");
}

#[test]
fn a_copy_of_several_blocks_is_the_object() {
    let bytes: Vec<u8> = (0..(33 << 20) + 5_u32).map(|number| (number >> 8) as u8).collect();
    let source = source(&bytes, Pin::Unknown);
    let copy = source.to_mappable().unwrap();
    let mapped = Mapped::new(&copy, 0, copy.len()).unwrap();
    assert!(mapped.with(0, copy.len(), |mapped| mapped == bytes).unwrap());
}

#[test]
fn an_interrupt_ends_reads_of_objects_and_the_pass_over_an_archive() {
    let object = source(b"abcdef", Pin::Unknown);
    let archive = Source::from_bytes("a.tar", vec![0; 1 << 20]);
    let read = |source: &Source| source.read_exact_at(0, &mut [0; 3]);
    interruptible(
        || true,
        || {
            let error = read(&object).unwrap_err();
            let fault = RangeFault::Interrupted.to_string();
            assert!(error.to_string().ends_with(&fault), "{error}");
            let error = tbl_io::open_source(archive.clone()).unwrap_err();
            let ReadError::Io { source, .. } = error else { panic!("{error}") };
            assert_eq!(source.kind(), ErrorKind::Interrupted);
            read(&archive).unwrap();
        },
    );
    read(&object).unwrap();
    tbl_io::open_source(archive).unwrap();
}
