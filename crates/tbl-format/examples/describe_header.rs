//! Says what the header of a TBL file in memory holds: `cargo run --example describe_header [FILE]`.
#![allow(clippy::print_stdout, reason = "an example that shows what it found")]

use tbl_format::{FormatError, v1, v2};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => v2::FileHeader::new(0, 0..0, v2::FileFlags::HAS_CHECKSUMS)?.to_bytes().to_vec(),
    };
    println!("{}", describe(&file)?);
    Ok(())
}

fn describe(file: &[u8]) -> Result<String, FormatError> {
    let file_bytes = file.len() as u64;
    if tbl_format::sniff(file) == Some(1) {
        let (header, _) = v1::FileHeader::parse(file)?;
        let index = header.index_range(file_bytes)?;
        return Ok(format!("TBL version 1, {} samples, index {index:?}", header.sample_count()));
    }
    let (header, entries) = v2::FileHeader::parse(file)?;
    let index = header.index_range(file_bytes)?;
    let mut text = format!("TBL version 2, {} samples, index {index:?}", header.sample_count());
    if let Some(metadata) = header.metadata_range(file_bytes)? {
        text += &format!(", metadata {metadata:?}");
    }
    if header.sample_count() > 0 {
        let first = v2::IndexEntry::parse(entries)?;
        let width = first.width();
        let height = first.height();
        let payload = first.payload(index.end, file_bytes)?;
        text += &format!("; first sample: {} {width}x{height} at {payload:?}", first.format());
    }
    Ok(text)
}
