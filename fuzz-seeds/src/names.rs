//! Names of samples and fields: whatever a file stores, no name that a reader returns leads out of
//! the folder that it is joined to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use tbl_format::checksum::{crc32c, payload_crc16};
use tbl_format::extension::{ExtensionHeader, ExtensionKind, Integrity, NameTableBuilder};
use tbl_format::metadata::{BlockHeader, MetadataType};
use tbl_format::path::{PathDefect, RelativePath, check_extension, check_name};
use tbl_format::v2::{EntryFlags, FileFlags, FileHeader, IndexEntry, Payload, index_end};
use tbl_format::{FormatError, SampleFormat};
use tbl_io::{
    Field, NewSample, ReadOptions, SampleSource, SampleSourceExt, Source, StreamWriter, TblFile,
    join_base, split_base,
};

/// The sample that has the names.
const RAW: &[u8] = b"\xff\xd8\xff\xd9";

/// Takes `data` up to the first line feed as the name of a sample, and each further line as the
/// extension of one of its fields.
pub fn extract_names(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let key = lines.next().unwrap_or_default();
    let fields: Vec<Field> = lines
        .take(16)
        .filter(|line| line.len() <= usize::from(u16::MAX))
        .map(|line| Field { extension: line.to_vec(), bytes: b"field".to_vec() })
        .collect();
    check_path(key);
    let file = file(key, &fields).expect("lines are short");
    let source = Source::from_bytes("fuzz.tbl", file);
    let file = TblFile::from_source(source, ReadOptions::default()).expect("it is sound");
    let entry = file.entry(0);
    assert_eq!(entry.is_ok(), stays_inside(key), "{}", key.escape_ascii());
    assert_eq!(file.read_into(0, &mut Vec::new()).is_ok(), entry.is_ok());
    let mut found = Vec::new();
    let read = file.read_fields(0, &mut found);
    let are_safe = fields.iter().all(|field| check_extension(&field.extension).is_ok());
    assert_eq!(read.is_ok(), are_safe && entry.is_ok());
    if read.is_ok() {
        assert_eq!(found, fields);
        // What extraction does.
        let base = key.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (folder, base) = key.split_at(base);
        for field in &fields {
            let name = join_base(split_base(base).0, &field.extension);
            check_path(&[folder, &name].concat());
        }
    }
    // Writers refuse what readers do.
    let sample = NewSample { key: Some(key), fields: &fields, ..NewSample::new(RAW) };
    let encoded = encoder().encode(&sample);
    assert_eq!(encoded.is_ok(), stays_inside(key) && are_safe);
}

/// Checks a name against what the standard library makes of it.
fn check_path(name: &[u8]) {
    let checked = RelativePath::new(name);
    let found = check_name(name);
    assert_eq!(found.is_ok(), stays_inside(name), "{}", name.escape_ascii());
    match checked {
        Ok(path) => {
            assert!(found.is_ok());
            let path = path.as_bytes();
            assert_eq!(RelativePath::new(path).as_ref().map(RelativePath::as_bytes), Ok(path));
            let full = Path::new("/target/folder").join(OsStr::from_bytes(path));
            let below = full.strip_prefix("/target/folder").expect("it is below the folder");
            let mut components = below.components();
            assert!(components.all(|component| matches!(component, Component::Normal(_))));
            assert_eq!(below.as_os_str().as_bytes(), path);
            assert!(path.split(|&byte| byte == b'/').all(|part| part.len() <= 255));
            assert!(path.len() <= 4095 && !path.contains(&0));
        }
        Err(PathDefect::Empty | PathDefect::Long { .. } | PathDefect::LongComponent { .. }) => {
            assert!(found.is_ok());
        }
        Err(defect) => assert_eq!(found, Err(defect)),
    }
}

/// Whether a name stays below a folder, decided by the standard library.
fn stays_inside(name: &[u8]) -> bool {
    let inside = |component| matches!(component, Component::Normal(_) | Component::CurDir);
    !name.contains(&0) && Path::new(OsStr::from_bytes(name)).components().all(inside)
}

fn encoder() -> tbl_io::Encoder {
    thread_local! {
        static ENCODER: tbl_io::Encoder = {
            let folder = std::env::temp_dir();
            let name = format!("turboloader-fuzz-{}.tbl", std::process::id());
            // Dropped at once: a writer that is not finished leaves no file.
            let writer = StreamWriter::create(&folder.join(name), tbl_io::WriteOptions::default());
            writer.expect("the temporary folder is writable").encoder()
        };
    }
    ENCODER.with(Clone::clone)
}

/// A sound file of one sample with these names, which writers refuse to make.
fn file(key: &[u8], fields: &[Field]) -> Result<Vec<u8>, FormatError> {
    let payload_start = index_end(1).expect("one sample fits");
    let size = RAW.len() as u32;
    let checksum = payload_crc16(RAW);
    let payload = Payload { offset: payload_start, stored_bytes: size, bytes: size, checksum };
    let flags = EntryFlags::HAS_METADATA;
    let entry = IndexEntry::new(payload, (0, 0), SampleFormat::Jpeg, flags).to_bytes();
    let mut names = NameTableBuilder::new();
    names.push(key)?;
    let whole_file = BlockHeader::WHOLE_FILE;
    let table = names.sample_names_body(0)?;
    let mut blocks = block(whole_file, ExtensionKind::SampleNames, &table)?;
    // Writers store what they know of a sample in front of its fields.
    let json = b"{}";
    blocks.extend(BlockHeader::new(0, MetadataType::Json, json.len() as u64)?.to_bytes());
    blocks.extend(json);
    for Field { extension, bytes } in fields {
        let length = (extension.len() as u16).to_le_bytes();
        let body = [&length[..], extension, bytes].concat();
        blocks.extend(block(0, ExtensionKind::Field, &body)?);
    }
    let integrity = Integrity {
        index: crc32c(&entry),
        metadata: crc32c(&blocks),
        metadata_bytes: blocks.len() as u64,
    };
    let first = block(whole_file, ExtensionKind::Integrity, &integrity.to_bytes())?;
    let section = [first, blocks].concat();
    let start = payload_start + RAW.len() as u64;
    let metadata = start..start + section.len() as u64;
    let header = FileHeader::new(1, metadata, FileFlags::HAS_CHECKSUMS)?.to_bytes();
    Ok([&header[..], &entry, RAW, &section].concat())
}

fn block(sample: u64, kind: ExtensionKind, body: &[u8]) -> Result<Vec<u8>, FormatError> {
    let data = [&ExtensionHeader::new(kind, body).to_bytes()[..], body].concat();
    let header = BlockHeader::new(sample, MetadataType::Custom, data.len() as u64)?;
    Ok([&header.to_bytes()[..], &data].concat())
}
