//! Writes one graph of 100,000 nodes as segments of every kind and prints their sizes; also as bare
//! columns, for `testdata/tools/segment_sizes.py`, which makes other formats of them.
//!
//! `cargo run --release -p tbf-format --example segment_sizes FOLDER [NODES]`; without a folder it
//! only checks a small graph.

#![expect(clippy::print_stdout, reason = "an example prints what it finds")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Cursor, Write};
use std::path::Path;

use tbf_format::{
    BuildOptions, Compression, Dtype, Node, Outcome, Relation, Segment, SegmentWriter,
};

const DIM: u16 = 384;
const EDGES: u64 = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        let file = write(Cursor::new(Vec::new()), 100, BuildOptions::default())?.into_inner();
        println!("{:?}", Segment::open(&file)?.verify()?);
        return Ok(());
    };
    let count = arguments.next().map_or(Ok(100_000), |count| count.parse())?;
    let folder = Path::new(&folder);
    fs::create_dir_all(folder)?;
    for (name, dtype, compression) in [
        ("f32", Dtype::F32, Compression::None),
        ("f32_lz4", Dtype::F32, Compression::Lz4),
        ("f32_zstd", Dtype::F32, Compression::Zstd),
        ("f16", Dtype::F16, Compression::None),
        ("int8", Dtype::Int8, Compression::None),
    ] {
        let path = folder.join(format!("{name}.tbf"));
        let options = BuildOptions { dtype, compression, ..BuildOptions::default() };
        write(BufWriter::new(File::create(&path)?), count, options)?;
        println!("{name}.tbf {}", path.metadata()?.len());
    }
    write_columns(folder, count)
}

fn write<W: Write + std::io::Seek>(
    sink: W,
    count: u32,
    options: BuildOptions,
) -> Result<W, Box<dyn Error>> {
    let options = BuildOptions { dim: DIM.into(), ..options };
    let mut writer = SegmentWriter::new(sink, options)?;
    for row in 0..count {
        let node = RandomNode::new(row);
        let timestamp = node.timestamp;
        let context_hash = node.context_hash;
        let confidence = node.confidence;
        let outcome = Outcome::from_code(node.outcome);
        let id = node.id;
        let text = None;
        let to_write = Node { id, timestamp, context_hash, confidence, outcome, text };
        writer.push(&to_write, &node.vector)?;
        for (target, relation, weight) in node.edges(count) {
            writer.push_edge(row, target, Relation::from_code(relation), weight);
        }
    }
    Ok(writer.finish(|_| Ok(()))?)
}

/// One file for each column, little-endian.
fn write_columns(folder: &Path, count: u32) -> Result<(), Box<dyn Error>> {
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    let mut columns = [
        create("id.bin")?,
        create("timestamp.bin")?,
        create("context_hash.bin")?,
        create("confidence.bin")?,
        create("outcome.bin")?,
        create("vector.bin")?,
        create("source.bin")?,
        create("target.bin")?,
        create("relation.bin")?,
        create("weight.bin")?,
    ];
    let [
        id,
        timestamp,
        context_hash,
        confidence,
        outcome,
        vectors,
        source,
        targets,
        relations,
        weights,
    ] = &mut columns;
    for row in 0..count {
        let node = RandomNode::new(row);
        id.write_all(&node.id)?;
        timestamp.write_all(&node.timestamp.to_le_bytes())?;
        context_hash.write_all(&node.context_hash.to_le_bytes())?;
        confidence.write_all(&node.confidence.to_le_bytes())?;
        outcome.write_all(&[node.outcome])?;
        for component in &node.vector {
            vectors.write_all(&component.to_le_bytes())?;
        }
        for (target, relation, weight) in node.edges(count) {
            source.write_all(&row.to_le_bytes())?;
            targets.write_all(&target.to_le_bytes())?;
            relations.write_all(&[relation])?;
            weights.write_all(&weight.to_le_bytes())?;
        }
    }
    columns.iter_mut().try_for_each(Write::flush)?;
    Ok(())
}

/// A node with a vector of length 1, all bits of whose components are random, as those of a model
/// are.
struct RandomNode {
    state: u64,
    id: [u8; 16],
    timestamp: u64,
    context_hash: u64,
    confidence: f32,
    outcome: u8,
    vector: Vec<f32>,
}

impl RandomNode {
    fn new(row: u32) -> Self {
        let mut state = u64::from(row) << 32;
        let mut id = [0; 16];
        id[..8].copy_from_slice(&random(&mut state).to_le_bytes());
        id[8..].copy_from_slice(&random(&mut state).to_le_bytes());
        // One node a second, give or take.
        let jitter = random(&mut state) % 1_000_000_000;
        let timestamp = 1_700_000_000_000_000_000 + u64::from(row) * 1_000_000_000 + jitter;
        let mut vector: Vec<f32> = (0..DIM).map(|_| bell(&mut state)).collect();
        let length = vector.iter().map(|component| component * component).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|component| *component /= length);
        let context_hash = random(&mut state);
        let confidence = f32::from(random(&mut state).to_le_bytes()[0]) / 255.0;
        let outcome = random(&mut state).to_le_bytes()[0] % 4;
        Self { state, id, timestamp, context_hash, confidence, outcome, vector }
    }

    /// Target, relation and weight of the edges that leave it.
    fn edges(&self, count: u32) -> impl Iterator<Item = (u32, u8, f32)> {
        let mut state = self.state;
        (0..EDGES).map(move |_| {
            let target = random(&mut state) % u64::from(count);
            let [relation, weight, ..] = random(&mut state).to_le_bytes();
            (u32::try_from(target).unwrap_or(0), relation % 5, f32::from(weight) / 255.0)
        })
    }
}

/// The sum of twelve random numbers from -0.5 to 0.5.
fn bell(state: &mut u64) -> f32 {
    let one = |state: &mut u64| {
        let [low, high, ..] = random(state).to_le_bytes();
        f32::from(u16::from_le_bytes([low, high])) / 65_536.0 - 0.5
    };
    (0..12).map(|_| one(state)).sum()
}

/// `SplitMix64`.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
