//! Where test data that is not part of the repository lies, if it is there.

use std::path::PathBuf;

/// The folder `below` inside the data folder: `TURBOLOADER_DATA`, or `shared/data` beside the
/// workspace. Says so when there is none, and the test then checks nothing.
pub(crate) fn data_folder(below: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("TURBOLOADER_DATA").map_or(beside, PathBuf::from);
    let folder = root.join(below);
    if folder.exists() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is not there; set TURBOLOADER_DATA", folder.display());
    None
}
