//! Writes a small TBL file in a temporary folder and reads it back.
#![allow(clippy::print_stdout, reason = "an example that shows what it found")]

use tbl_format::SampleFormat;
use tbl_io::{
    Compression, Field, NewSample, SampleSource, SampleSourceExt, StreamWriter, TblFile,
    WriteOptions,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("animals.tbl");

    let mut writer = StreamWriter::create(
        &path,
        WriteOptions {
            compression: Compression::Lz4,
            sample_count: Some(2),
            ..WriteOptions::default()
        },
    )?;
    writer.set_class_names(&["cat".to_string(), "dog".to_string()]);
    let caption = Field { extension: b"txt".to_vec(), bytes: b"asleep on a sofa".to_vec() };
    writer.write_sample(&NewSample {
        format: SampleFormat::RawU8,
        width: 64,
        height: 48,
        key: Some(b"cat/0001.raw"),
        label: Some(0),
        fields: &[caption],
        ..NewSample::new(&[200; 64 * 48 * 3])
    })?;
    writer.write_sample(&NewSample {
        key: Some(b"dog/0002.bin"),
        label: Some(1),
        ..NewSample::new(b"a few bytes")
    })?;
    let summary = writer.finish()?;
    println!(
        "{} samples of {} bytes, {} of them compressed, in a file of {} bytes",
        summary.samples, summary.sample_bytes, summary.compressed_samples, summary.bytes
    );

    let file = TblFile::open(&path)?;
    let mut bytes = Vec::new();
    let mut fields = Vec::new();
    for index in 0..file.sample_count() {
        let entry = file.entry(index)?;
        file.read_into(index, &mut bytes)?;
        fields.clear();
        file.read_fields(index, &mut fields)?;
        let key = entry.key.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        println!(
            "{index}: {key} label {:?} {} {}x{}, {} bytes, {} fields",
            entry.label,
            entry.format,
            entry.width,
            entry.height,
            bytes.len(),
            fields.len()
        );
    }
    Ok(())
}
