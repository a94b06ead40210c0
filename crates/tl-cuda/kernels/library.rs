//! Libraries for tests without a GPU, which stand for NVIDIA's: compiled from a C file of this folder
//! when a test needs one. Tests of several crates have this file as a module.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A library in `folder` of the C file `source` with these macros. Its path, by which the system tells
/// libraries apart, is another one each time.
pub(crate) fn library(source: &str, macros: &[&str], folder: &Path) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let library = folder.join(format!("lib{source}-{}-{number}.so", std::process::id()));
    let kernels = tl_testdata::shipped!("kernels");
    let status = Command::new("cc")
        .args([
            "-shared",
            "-fPIC",
            "-O2",
            "-fno-strict-aliasing",
            "-fvisibility=hidden",
            "-pthread",
        ])
        .args(macros.iter().map(|text| format!("-D{text}")))
        .arg("-o")
        .args([&library, &kernels.join(source)])
        .status()
        .expect("the C compiler that links Rust");
    assert!(status.success(), "{status}");
    library
}
