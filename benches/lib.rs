//! What the benchmarks share: data from a seeded generator, and real photographs.
//!
//! `cargo xtask bench` runs them; `cargo test --benches` runs each once, to keep them working.

#[cfg(feature = "libjpeg-turbo")]
pub mod libjpeg_turbo;
#[cfg(feature = "libwebp")]
pub mod libwebp;
pub mod paired;
mod time;
pub mod vectors;

use std::fs;
use std::path::{Path, PathBuf};

pub use time::{ProcessorTime, processor_time};

/// The median size of an ImageNet photograph, the payload that the figures speak of.
pub const PAYLOAD_BYTES: usize = 110_000;

/// Whether this process measures, instead of running each benchmark once as a test: then it is
/// worth making large files.
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// `len` bytes that no compressor shrinks, the same in every run.
pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let words = std::iter::repeat_with(|| split_mix(&mut state).to_le_bytes());
    words.take(len.div_ceil(8)).flatten().take(len).collect()
}

/// A step of `SplitMix64` (Steele, Lea, Flood 2014).
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A photograph in memory, with the name of its file.
#[derive(Clone, Debug)]
pub struct Photograph {
    /// `testdata`, `imagenet` from the folder that `TURBOLOADER_DATA` names, or `derived`.
    pub set: &'static str,
    /// The path of the file below the set's folder.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
}

/// The photographs of `testdata/photos`, and up to `most` of ImageNet when there are any.
///
/// # Panics
/// When a file cannot be read.
pub fn photographs(most: usize) -> Vec<Photograph> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = read_set("testdata", &root.join("testdata/photos"), usize::MAX);
    match std::env::var_os("TURBOLOADER_DATA") {
        Some(data) => found.extend(read_set("imagenet", &Path::new(&data).join("imagenet"), most)),
        None => note("TURBOLOADER_DATA is not set: only the photographs of testdata are measured"),
    }
    found
}

/// The first `most` images of `folder`, none when there is no such folder.
///
/// # Panics
/// When a file cannot be read.
pub fn image_files(folder: &Path, most: usize) -> Vec<Photograph> {
    read_set("derived", folder, most)
}

#[expect(clippy::print_stderr, reason = "a benchmark says what it leaves out")]
fn note(text: &str) {
    eprintln!("{text}");
}

fn read_set(set: &'static str, folder: &Path, most: usize) -> Vec<Photograph> {
    let mut paths = Vec::new();
    list(folder, &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("a listed file is readable");
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
        Photograph { set, name, bytes }
    };
    paths.into_iter().take(most).map(read).collect()
}

fn list(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        if path.is_dir() {
            list(&path, paths);
        } else if ["jpg", "jpeg", "png", "webp"].iter().any(|known| extension == *known) {
            paths.push(path);
        }
    }
}
