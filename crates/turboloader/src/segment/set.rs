//! Many segments as one: a node by its id, and the files of a folder.

use std::path::{Path, PathBuf};

use tbf_format::{BloomKey, Key, Region};
use tbl_io::Location;
use tl_pipeline::SegmentFolder;

use super::error::SegmentError;
use super::input::SegmentInput;

/// Segments in the order of their age, the oldest first.
///
/// ```no_run
/// use turboloader::SegmentSet;
///
/// let set = SegmentSet::open(&["segments".into()])?;
/// if let Some(found) = set.find(&[1; 16], None)? {
///     println!("row {} of {}", found.row, found.path.display());
/// }
/// # Ok::<(), turboloader::SegmentError>(())
/// ```
#[derive(Debug)]
pub struct SegmentSet {
    files: Vec<PathBuf>,
}

/// A node that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundNode {
    /// The segment that has it.
    pub path: PathBuf,
    /// The number of the segment, from 0.
    pub segment: usize,
    /// The row in the segment.
    pub row: u64,
    /// Segments whose ids were searched; the filters of the others deny the id.
    pub searched: u64,
}

impl SegmentSet {
    /// The segments that `paths` stand for: files, and folders of them.
    ///
    /// # Errors
    /// [`SegmentError::NoSegments`] for a folder without any; [`SegmentError::OtherFile`] for a folder
    /// with files that are not segments; [`SegmentError::Read`] for one that cannot be listed. Files are opened by searches.
    pub fn open(paths: &[PathBuf]) -> Result<Self, SegmentError> {
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                let found = segment_files(path)?;
                if found.is_empty() {
                    return Err(SegmentError::NoSegments { location: Location::new(path) });
                }
                files.extend(found);
            } else {
                files.push(path.clone());
            }
        }
        Ok(Self { files })
    }

    /// The files, the oldest first.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The newest node with this id: that of the last segment that has it. Of each segment header,
    /// footer and filter are read, and the ids and the index only if the filter may contain the id.
    ///
    /// # Errors
    /// [`SegmentError::Read`], [`SegmentError::Format`] for the first segment, from the last one on,
    /// that cannot be searched.
    pub fn find(
        &self,
        id: &[u8; 16],
        key: Option<&Key>,
    ) -> Result<Option<FoundNode>, SegmentError> {
        let bloom_key = BloomKey::new(id);
        let mut searched = 0;
        for (number, path) in self.files.iter().enumerate().rev() {
            let input = SegmentInput::open(path)?;
            let fault = |error| input.fault(error);
            let segment = input.segment(&[Region::Bloom], key)?;
            if segment.has(Region::Bloom)
                && !segment.bloom().map_err(fault)?.may_contain(&bloom_key)
            {
                input.check()?;
                continue;
            }
            searched += 1;
            let segment = input.segment(&[Region::Bloom, Region::Nodes, Region::Index], key)?;
            let found = segment.find(id).map_err(fault)?;
            input.check()?;
            if let Some(row) = found {
                let path = path.clone();
                let row = row as u64;
                return Ok(Some(FoundNode { path, segment: number, row, searched }));
            }
        }
        Ok(None)
    }
}

/// The segments of a folder in the order of their names. Hidden files are left out, and other files
/// are an error, as loaders take such a folder for another data set.
pub(super) fn segment_files(folder: &Path) -> Result<Vec<PathBuf>, SegmentError> {
    let refused = |source| {
        SegmentError::Read(tbl_io::ReadError::Io { location: Location::new(folder), source })
    };
    let found = SegmentFolder::list(folder).map_err(refused)?;
    match found.other {
        Some(other) => Err(SegmentError::OtherFile { location: Location::new(other) }),
        None => Ok(found.segments),
    }
}
