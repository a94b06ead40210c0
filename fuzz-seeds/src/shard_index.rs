//! Shard indexes: whatever a part says, its shard opens with values or errors.

use std::io;
use std::sync::Arc;

use tbl_format::FormatError;
use tbl_format::checksum::crc32c;
use tbl_format::shard_index::{Header, Shard, ShardKind, VersionKind};
use tbl_io::{
    Location, Object, Pin, RangeFault, Ranges, ReadError, SampleSource, Source, Storage, Stores,
};

use crate::format::read_samples;

/// Bytes of each shard.
const SHARD_BYTES: u64 = 1 << 20;

/// A store whose objects are zeros, except for one index.
#[derive(Debug)]
struct Store(Vec<u8>);

#[derive(Debug)]
struct Zeros {
    len: u64,
    pin: Pin,
}

impl Ranges for Zeros {
    fn len(&self) -> u64 {
        self.len
    }

    fn pin(&self) -> &Pin {
        &self.pin
    }

    fn read_exact_at(&self, _: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        bytes.fill(0);
        Ok(())
    }
}

impl Storage for Store {
    fn open(&self, object: &Location, listed: Option<&Object>) -> Result<Source, ReadError> {
        if object.extension() == Some("tlidx".as_ref()) {
            return Ok(Source::from_bytes(object, self.0.clone()));
        }
        let (len, pin) =
            listed.map_or((SHARD_BYTES, Pin::Unknown), |listed| (listed.len, listed.pin.clone()));
        // Samples as long as a reader allows would take the time of a whole run.
        if len > SHARD_BYTES {
            let source = io::ErrorKind::NotFound.into();
            return Err(ReadError::Io { location: object.clone(), source });
        }
        Ok(Source::from_ranges(object, Arc::new(Zeros { len, pin })))
    }

    fn list(&self, _: &Location) -> Result<Vec<Object>, ReadError> {
        Ok(Vec::new())
    }
}

/// Opens `data` as a shard index, or as the part of a shard in one: the first byte decides. Reads
/// every sample.
pub fn shard_index(data: &[u8]) {
    let Some((&kind, part)) = data.split_first() else { return };
    let kind = match kind % 4 {
        1 => ShardKind::Tar,
        2 => ShardKind::Tbl,
        3 => ShardKind::Folder,
        _ => return drop(open(part.to_vec())),
    };
    let opened = open(index(kind, part, 0));
    // The directory says how many samples the part has.
    if let Err(ReadError::Format { source: FormatError::Count { found, .. }, .. }) = opened
        && let Ok(sources) = open(index(kind, part, found))
    {
        let [source] = &sources[..] else { panic!("{} sources of one shard", sources.len()) };
        assert_eq!(source.sample_count(), found);
        read_samples(&**source);
        drop(source.notes());
    }
}

fn open(index: Vec<u8>) -> Result<Vec<Box<dyn SampleSource>>, ReadError> {
    let stores = Stores::new().with("mem", Arc::new(Store(index)));
    tbl_io::open_all_in(&stores, &["mem://b/a.tlidx"])
}

/// The index of one shard with this part.
fn index(kind: ShardKind, part: &[u8], samples: u64) -> Vec<u8> {
    let entry = |start: u64| {
        let mut directory = Vec::new();
        let shard = Shard {
            kind,
            name: b"a",
            bytes: SHARD_BYTES,
            version_kind: VersionKind::Strong,
            version: b"1",
            samples,
            part: start..start + part.len() as u64,
            unpacked_bytes: u32::try_from(part.len()).expect("a short input"),
            part_crc32c: crc32c(part),
        };
        shard.push_to(&mut directory).expect("short fields");
        directory
    };
    let front = Header::SIZE + entry(0).len();
    let directory = entry(front as u64);
    [&Header::new(1, samples, &directory).to_bytes(), &directory[..], part].concat()
}
