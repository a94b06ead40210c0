//! Replays the committed seeds and every input that once failed, on the stable compiler.

use std::fs;
use std::path::{Path, PathBuf};

/// Runs `body` on every file of `seeds/TARGET` and `regressions/TARGET`; the seeds must exist.
fn replay(target: &str, body: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = files(&root.join("seeds").join(target));
    assert!(!seeds.is_empty(), "no seeds for {target}");
    for path in seeds.into_iter().chain(files(&root.join("regressions").join(target))) {
        let data = fs::read(&path).expect("the file is readable");
        body(&data);
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

#[test]
fn tar_seeds_pass() {
    replay("tar", turboloader_fuzz::tar);
}

#[test]
fn tbl1_seeds_pass() {
    replay("tbl1", turboloader_fuzz::tbl1);
}

#[test]
fn tbl2_seeds_pass() {
    replay("tbl2", turboloader_fuzz::tbl2);
}

#[test]
fn jpeg_seeds_pass() {
    replay("decode_jpeg", turboloader_fuzz::decode_jpeg);
}

#[test]
fn png_seeds_pass() {
    replay("decode_png", turboloader_fuzz::decode_png);
}

#[test]
fn webp_seeds_pass() {
    replay("decode_webp", turboloader_fuzz::decode_webp);
}

#[test]
fn bmp_seeds_pass() {
    replay("decode_bmp", turboloader_fuzz::decode_bmp);
}

#[test]
fn tiff_seeds_pass() {
    replay("decode_tiff", turboloader_fuzz::decode_tiff);
}
