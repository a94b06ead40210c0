//! Says what a TBF segment holds: `cargo run --example describe_segment [FILE]`.
#![allow(clippy::print_stdout, reason = "an example that shows what it found")]

use tbf_format::{Region, Segment};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => empty_segment(),
    };
    let segment = Segment::open(&file)?;
    println!("{} nodes, {} edges", segment.node_count(), segment.edge_count());
    for region in Region::DATA {
        let place = segment.header().offset(region);
        match segment.region(region) {
            Ok(bytes) => println!("{region} at {place}, {} bytes", bytes.len()),
            Err(reason) => println!("{region}: {reason}"),
        }
    }
    for oddity in segment.verify()? {
        println!("tolerated: {oddity:?}");
    }
    Ok(())
}

/// The segment that the reference's writer produces without nodes.
fn empty_segment() -> Vec<u8> {
    let mut file = vec![0; 212];
    file[..8].copy_from_slice(b"TALB\0\0\x01\0");
    for (at, offset) in [(48, 128u64), (56, 128), (64, 128), (80, 192)] {
        file[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }
    file[192] = 45;
    file[196] = 64;
    file
}
