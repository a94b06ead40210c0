//! The paths of a sample's files below the folder, each checked component by component.

use std::collections::HashSet;

use tbl_format::path::{MAX_PATH_BYTES, PathDefect, RelativePath};
use tbl_io::{join_base, split_base};

/// The reason why the files of a sample cannot be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameDefect {
    /// The name of the sample, or one that follows from it, is not a path below the folder.
    #[error(transparent)]
    Path(#[from] PathDefect),
    /// A sample has several files of one name.
    #[error("two of its files have the same name")]
    Clash,
}

/// The paths of one sample's files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SampleFiles {
    pub(crate) sample: RelativePath,
    /// In the order of the fields.
    pub(crate) fields: Vec<RelativePath>,
}

impl SampleFiles {
    /// The files of the sample called `name` with fields of these extensions.
    ///
    /// # Errors
    /// A name that is not a path below the folder, or that two of the files have.
    pub(crate) fn new<'a>(
        name: &[u8],
        extensions: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, NameDefect> {
        let sample = RelativePath::new(name)?;
        let (folder, base) = sample.split();
        let group = [folder, split_base(base).0].concat();
        let field = |extension| RelativePath::new(&join_base(&group, extension));
        let fields = extensions.into_iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let mut files = HashSet::from([&sample]);
        if fields.iter().any(|field| !files.insert(field)) {
            return Err(NameDefect::Clash);
        }
        Ok(Self { sample, fields })
    }

    /// Checks that no path is beyond the limit together with a folder of `folder_bytes`.
    ///
    /// # Errors
    /// [`PathDefect::Long`].
    pub(crate) fn check_length(&self, folder_bytes: usize) -> Result<(), NameDefect> {
        for file in self.fields.iter().chain([&self.sample]) {
            let bytes = folder_bytes.saturating_add(1).saturating_add(file.as_bytes().len());
            if bytes > MAX_PATH_BYTES {
                return Err(PathDefect::Long { bytes }.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
