//! Shard indexes that lie: about names, lengths and the fronts of their shards.

use std::io;
use std::sync::Arc;

use tbl_format::checksum::crc32c;
use tbl_format::shard_index::{Header, Shard, ShardKind, VersionKind, push_number};
use tbl_format::v2;
use tbl_io::{
    Location, Object, Pin, RangeFault, Ranges, ReadError, SampleSource, Source, Storage, Stores,
};

/// A store with an index. Its other objects have no bytes, whatever length an index claims.
#[derive(Debug)]
struct Store(Vec<u8>);

#[derive(Debug)]
struct Claimant(u64);

impl Ranges for Claimant {
    fn len(&self) -> u64 {
        self.0
    }

    fn pin(&self) -> &Pin {
        &Pin::Unknown
    }

    fn read_exact_at(&self, _: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        assert!(bytes.len() <= 32 << 20, "{} bytes at once", bytes.len());
        Err(RangeFault::Short { received: 0 })
    }
}

impl Storage for Store {
    fn open(&self, object: &Location, listed: Option<&Object>) -> Result<Source, ReadError> {
        match listed {
            _ if object.extension() == Some("tlidx".as_ref()) => {
                Ok(Source::from_bytes(object, self.0.clone()))
            }
            Some(listed) => Ok(Source::from_ranges(object, Arc::new(Claimant(listed.len)))),
            None => {
                let source = io::ErrorKind::NotFound.into();
                Err(ReadError::Io { location: object.clone(), source })
            }
        }
    }

    fn list(&self, _: &Location) -> Result<Vec<Object>, ReadError> {
        Ok(Vec::new())
    }
}

/// An index with one shard, and the part of it.
fn index(shard: &Shard<'_>, part: &[u8]) -> Vec<u8> {
    let entry = |start: u64| {
        let mut directory = Vec::new();
        let shard = Shard {
            part: start..start + part.len() as u64,
            unpacked_bytes: u32::try_from(part.len()).unwrap(),
            part_crc32c: crc32c(part),
            ..shard.clone()
        };
        shard.push_to(&mut directory).unwrap();
        directory
    };
    let directory = entry((Header::SIZE + entry(0).len()) as u64);
    [&Header::new(1, shard.samples, &directory).to_bytes(), &directory[..], part].concat()
}

fn shard(kind: ShardKind, name: &[u8]) -> Shard<'_> {
    Shard {
        kind,
        name,
        bytes: 1 << 60,
        version_kind: VersionKind::Strong,
        version: b"1",
        samples: 0,
        part: 0..0,
        unpacked_bytes: 0,
        part_crc32c: 0,
    }
}

fn open(scheme: &str, index: Vec<u8>) -> Result<Box<dyn SampleSource>, ReadError> {
    let stores = Stores::new().with(scheme, Arc::new(Store(index)));
    tbl_io::open_in(&stores, format!("{scheme}://b/a/b.tlidx"))
}

/// The part of a TBL file that has its header alone.
fn front(sample_count: u64) -> Vec<u8> {
    let header = v2::FileHeader::new(sample_count, 0..0, v2::FileFlags::default()).unwrap();
    let mut part = Vec::new();
    push_number(&mut part, 1);
    push_number(&mut part, 0);
    push_number(&mut part, v2::FileHeader::SIZE as u64);
    part.extend_from_slice(&header.to_bytes());
    part
}

#[test]
fn a_front_without_its_index_is_damage_and_takes_no_memory() {
    let shard = shard(ShardKind::Tbl, b"a.tbl");
    let error = open("mem", index(&shard, &front(1 << 27))).unwrap_err();
    assert!(error.is_damage(), "{error}");
    let error = error.to_string();
    assert!(error.starts_with("mem://b/a/b.tlidx: at byte "), "{error}");
    assert!(
        error.ends_with("front of a TBL file cannot be read: it is damaged or of a later version"),
        "{error}"
    );
    assert_eq!(open("mem", index(&shard, &front(0))).unwrap().sample_count(), 0);
}

#[test]
fn a_length_that_a_server_claims_takes_no_memory() {
    let header = v2::FileHeader::new(1 << 27, 0..0, v2::FileFlags::default()).unwrap().to_bytes();

    #[derive(Debug)]
    struct Front([u8; v2::FileHeader::SIZE], Claimant);

    impl Ranges for Front {
        fn len(&self) -> u64 {
            self.1.len()
        }

        fn pin(&self) -> &Pin {
            self.1.pin()
        }

        fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
            if offset > 0 {
                return self.1.read_exact_at(offset, bytes);
            }
            bytes.copy_from_slice(&self.0[..bytes.len()]);
            Ok(())
        }
    }

    let source = Source::from_ranges("mem://a", Arc::new(Front(header, Claimant(1 << 60))));
    let error = tbl_io::open_source(source).unwrap_err().to_string();
    assert_eq!(error, "mem://a: at byte 64: expected 33554432 bytes: received 0 bytes");
}

#[test]
fn a_name_that_leads_elsewhere_in_a_url_is_refused() {
    let names = [&b"%2e%2e/a.tbl"[..], b"a/.%2E/../b.tbl", b"..\\a.tbl", b".\t./a", b"a?b", b"a#b"];
    for name in names {
        let index = index(&shard(ShardKind::Tbl, name), &front(0));
        let error = open("https", index).unwrap_err().to_string();
        assert!(error.contains("name of a shard"), "{}: {error}", name.escape_ascii());
    }
    // Buckets have keys, which have no escapes.
    for (scheme, name) in [("mem", "%2e%2e/a?b#c"), ("https", "a%20b.tbl")] {
        let index = index(&shard(ShardKind::Tbl, name.as_bytes()), &front(0));
        let opened = open(scheme, index).unwrap();
        assert_eq!(opened.location().url(), Some(&*format!("{scheme}://b/a/{name}")));
    }
    for scheme in ["mem", "https"] {
        let local = Shard { version_kind: VersionKind::Modified, ..shard(ShardKind::Tbl, b"\xff") };
        let error = open(scheme, index(&local, &front(0))).unwrap_err().to_string();
        assert!(error.contains("name of a shard: it is not UTF-8"), "{error}");
    }
    let folder = index(&shard(ShardKind::Folder, b"a"), b"\0\0");
    let error = open("https", folder).unwrap_err().to_string();
    assert!(
        error.ends_with("kind of a shard cannot be read: it is damaged or of a later version"),
        "{error}"
    );
}
