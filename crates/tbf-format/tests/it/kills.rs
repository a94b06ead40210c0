//! A process that is killed while it writes leaves no segment that is taken for a whole one.
//!
//! `TL_KILLS` says how many are; 20 if it does not.

use std::fs::{self, File};
use std::io::{Cursor, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use tbf_format::{
    BuildOptions, EncodedSegment, Node, Outcome, Recovery, Relation, Segment, SegmentBuilder,
    SegmentWriter,
};

/// Set for the process that is to be killed: the file to write.
const VICTIM: &str = "TBF_FORMAT_KILL_VICTIM";

const NODES: u32 = 10_000;
const DIM: u32 = 128;

fn options() -> BuildOptions {
    BuildOptions { dim: DIM, ..BuildOptions::default() }
}

fn node(row: u32) -> (Node<'static>, Vec<f32>) {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&row.to_le_bytes());
    let (timestamp, context_hash, confidence) = (row.into(), 7, 0.5);
    let (outcome, text) = (Outcome::Success, None);
    let node = Node { id, timestamp, context_hash, confidence, outcome, text };
    (node, (row..row + DIM).map(|n| f32::from(n.to_le_bytes()[0])).collect())
}

fn segment() -> EncodedSegment {
    let mut builder = SegmentBuilder::new(options());
    for row in 0..NODES {
        let (node, vector) = node(row);
        builder.push(&node, &vector).unwrap();
        builder.push_edge(row, row / 2, Relation::Causal, 1.0);
    }
    builder.finish().unwrap()
}

/// The same with its vectors first.
fn write_as_they_come<W: Write + Seek>(sink: W) -> W {
    let mut writer = SegmentWriter::new(sink, options()).unwrap();
    for row in 0..NODES {
        let (node, vector) = node(row);
        writer.push(&node, &vector).unwrap();
        writer.push_edge(row, row / 2, Relation::Causal, 1.0);
    }
    writer.finish(|_| Ok(())).unwrap()
}

/// Writes in small pieces, so that there are many points to be killed at.
struct Pieces(File);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes.get(..1 << 14).unwrap_or(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Pieces {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

fn be_the_victim(path: &Path) {
    let mut file = Pieces(File::create(path).unwrap());
    if path.extension().is_some_and(|extension| extension == "stream") {
        write_as_they_come(file);
        return;
    }
    let segment = segment();
    segment.write_draft(&mut file).unwrap();
    segment.complete(&file.0).unwrap();
}

#[test]
fn segments_of_killed_processes_are_whole_or_partial() {
    if let Some(path) = std::env::var_os(VICTIM) {
        return be_the_victim(Path::new(&path));
    }
    let kills: u64 = std::env::var("TL_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let built = segment().to_bytes();
    let streamed = write_as_they_come(Cursor::new(Vec::new())).into_inner();
    for (name, expected) in [("killed.tbf", &built), ("killed.stream", &streamed)] {
        let (mut partial, mut complete) = (0, 0);
        for kill in 0..kills {
            // The last ones wait for the whole length; only the header is written after that.
            let until = expected.len() as u64 * (kill + 1) / kills;
            let found = killed_at(&folder.path().join(name), until);
            if Segment::open(&found).is_ok() {
                assert!(found == *expected, "kill {kill}: {} bytes", found.len());
                complete += 1;
            } else {
                assert_eq!(Recovery::of(&found), Recovery::Discard, "kill {kill}");
                partial += 1;
            }
        }
        assert!(partial > 0);
        println!("{name}: {kills} kills, {partial} partial segments refused, {complete} complete");
    }
}

/// The file of a process that is killed when the file has `until` bytes.
fn killed_at(path: &Path, until: u64) -> Vec<u8> {
    fs::remove_file(path).unwrap_or(());
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["kills::segments_of_killed_processes_are_whole_or_partial", "--exact"])
        .env(VICTIM, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while path.metadata().map_or(0, |found| found.len()) < until {
        std::hint::spin_loop();
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    fs::read(path).unwrap()
}
