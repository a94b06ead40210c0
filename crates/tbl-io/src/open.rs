//! Which reader a path needs.

use std::path::Path;

use crate::error::ReadError;
use crate::folder::Folder;
use crate::limits::ReadLimits;
use crate::reader::{ReadOptions, TblFile};
use crate::sample::SampleSource;
use crate::source::Source;
use crate::tar::TarArchive;

/// Opens a data set by what it is: a folder, a TBL file by its magic, otherwise a TAR archive.
/// File names do not matter.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let samples = tbl_io::open(folder.path())?;
/// assert_eq!(samples.kind(), tbl_io::SourceKind::Folder);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ReadError::Io`], and what the reader says of a damaged or foreign file.
pub fn open(path: impl AsRef<Path>) -> Result<Box<dyn SampleSource>, ReadError> {
    let path = path.as_ref();
    let metadata = std::fs::metadata(path).map_err(|error| ReadError::io(path, error))?;
    if metadata.is_dir() {
        return Ok(Box::new(Folder::open(path)?));
    }
    let source = Source::open(path)?;
    // The version after these letters is the reader's to judge.
    let mut magic = *b"???";
    if source.len() >= magic.len() as u64 {
        source.read_exact_at(0, &mut magic)?;
    }
    Ok(if &magic == b"TBL" {
        Box::new(TblFile::from_source(source, ReadOptions::default())?)
    } else {
        Box::new(TarArchive::new(source, ReadLimits::default())?)
    })
}
