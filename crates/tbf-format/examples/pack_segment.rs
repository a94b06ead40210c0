//! Writes one small graph three times, compressed with LZ4, with zstd, and encrypted: the files of
//! `testdata/tbf`.
//!
//! `cargo run -p tbf-format --features lz4,zstd,encryption --example pack_segment FOLDER`; without a
//! folder it only checks them.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::fs;
use std::path::Path;

use tbf_format::{
    BuildOptions, Compression, Encryption, Key, Node, Outcome, Region, Relation, Segment,
    SegmentBuilder, UnpackOptions,
};

/// Never use a key that others know.
const KEY: Key = Key::new([0x42; 32]);

const NODES: u8 = 20;
const DIM: u8 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1);
    let encryption = Some(Encryption { key: KEY, key_id: *b"key of the tests", nonce: [7; 11] });
    for (name, compression, encryption) in [
        ("lz4.tbf", Compression::Lz4, None),
        ("zstd.tbf", Compression::Zstd, None),
        ("encrypted.tbf", Compression::Zstd, encryption),
    ] {
        let file = write(compression, encryption)?;
        let mut segment = Segment::open(&file)?;
        let options = UnpackOptions { key: Some(&KEY), ..UnpackOptions::default() };
        for region in Region::DATA {
            if segment.is_packed(region) {
                segment.unpack(region, &options)?;
            }
        }
        println!("{name}: {} bytes, {} nodes", file.len(), segment.node_count());
        if let Some(folder) = &folder {
            fs::write(Path::new(folder).join(name), &file)?;
        }
    }
    Ok(())
}

fn write(
    compression: Compression,
    encryption: Option<Encryption>,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut builder = SegmentBuilder::new(BuildOptions {
        dim: DIM.into(),
        index: true,
        reverse: true,
        compression,
        encryption,
        ..BuildOptions::default()
    });
    for row in 0..NODES {
        let text = format!("node {row}");
        let node = Node {
            id: [row; 16],
            timestamp: 1000 - 3 * u64::from(row),
            context_hash: 7 * u64::from(row),
            confidence: f32::from(row) / 8.0,
            outcome: Outcome::from_code(row % 4),
            text: Some(&text),
        };
        let vector = (0..DIM).map(|slot| f32::from(row) + f32::from(slot) / 8.0);
        builder.push(&node, &vector.collect::<Vec<_>>())?;
        for (step, weight) in [(1, 0.25), (2, 0.5)] {
            let target = u32::from((row + step) % NODES);
            let relation = Relation::from_code(if step == 1 { row % 5 } else { 0 });
            builder.push_edge(row.into(), target, relation, f32::from(row) + weight);
        }
    }
    Ok(builder.finish()?.to_bytes())
}
