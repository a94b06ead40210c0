//! What each sample and field is called on disk: stored names checked component by component,
//! numbers for the unnamed, and no name used twice.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use tbl_format::SampleFormat;
use tbl_format::path::{MAX_PATH_BYTES, PathDefect, RelativePath};
use tbl_io::{Entry, Field, join_base, split_base};

/// The reason why the files of a sample cannot be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameDefect {
    /// The name of the sample, or one that follows from it, is not a path below the folder.
    #[error(transparent)]
    Path(#[from] PathDefect),
    /// A sample has several files of one name.
    #[error("two of its files have one name")]
    Clash,
}

/// The names of a sample's files: the folders, the stem (which its fields share), and the rest of
/// its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SamplePath {
    /// Ends with a slash unless empty.
    folder: Vec<u8>,
    stem: Vec<u8>,
    /// With its dot.
    extension: Vec<u8>,
}

impl SamplePath {
    /// The path of sample `index`.
    pub(crate) fn new(index: u64, entry: &Entry<'_>) -> Result<Self, PathDefect> {
        let Some(key) = entry.key.as_deref() else {
            let extension = format!(".{}", extension(entry.format)).into_bytes();
            return Ok(Self { folder: Vec::new(), stem: format!("{index:08}").into(), extension });
        };
        let path = RelativePath::new(key)?;
        let (folder, name) = path.split();
        let (stem, stored) = name.split_at(split_base(name).0.len());
        // The pixels of a RAW_U8 sample are no longer the file its name speaks of.
        let is_raw = entry.format == SampleFormat::RawU8;
        let extension = if is_raw { b".rgb".to_vec() } else { stored.to_vec() };
        Ok(Self { folder: folder.to_vec(), stem: stem.to_vec(), extension })
    }

    /// Checks that a sample with fields of these extensions has one file for each of them, and
    /// that none is beyond the limit of a path together with the folder of `folder_bytes`.
    pub(crate) fn check(
        &self,
        extensions: &[Vec<u8>],
        folder_bytes: usize,
    ) -> Result<(), NameDefect> {
        let mut files = HashSet::new();
        let fields = extensions.iter().map(|extension| self.field(1, extension));
        for file in std::iter::once(self.sample(1)).chain(fields) {
            let file = file?;
            let bytes = folder_bytes.saturating_add(1).saturating_add(file.as_bytes().len());
            if bytes > MAX_PATH_BYTES {
                return Err(PathDefect::Long { bytes }.into());
            }
            if !files.insert(file) {
                return Err(NameDefect::Clash);
            }
        }
        Ok(())
    }

    /// The path without extension, numbered from the second use of a name on.
    fn numbered(&self, copy: u32) -> Vec<u8> {
        let number = if copy > 1 { format!("_{copy}").into_bytes() } else { Vec::new() };
        [&self.folder[..], &self.stem, &number].concat()
    }

    fn sample(&self, copy: u32) -> Result<RelativePath, PathDefect> {
        RelativePath::new(&[self.numbered(copy), self.extension.clone()].concat())
    }

    fn field(&self, copy: u32, extension: &[u8]) -> Result<RelativePath, PathDefect> {
        RelativePath::new(&join_base(&self.numbered(copy), extension))
    }
}

/// Where one sample's bytes go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SampleFiles {
    /// The sample.
    pub(crate) sample: RelativePath,
    /// Its fields; `None` for one that an earlier sample of the same group has written.
    pub(crate) fields: Vec<Option<RelativePath>>,
}

/// The names given so far, as hashes: 16 bytes for each file written.
#[derive(Debug, Default)]
pub(crate) struct Names {
    hasher: RandomState,
    /// Path to content; samples count as content 0, which no second sample may share.
    given: HashMap<u64, Option<u64>>,
    /// The first copy of a sample's name, and the latest copy of a stem, that may still be free,
    /// so that equal names are not tried again from the first copy on.
    next: HashMap<u64, u32>,
    #[cfg(test)]
    tries: u32,
}

impl Names {
    /// Gives the sample and its fields names that no other content has.
    pub(crate) fn assign(
        &mut self,
        path: &SamplePath,
        fields: &[Field],
    ) -> Result<SampleFiles, NameDefect> {
        // A path below a folder ends in no slash, so a stem cannot be mistaken for a sample.
        let by_name = self.hasher.hash_one(path.sample(1)?);
        let by_stem = self.hasher.hash_one((path.numbered(1), b"/"));
        let next = |names: &Self, hash| names.next.get(&hash).copied().unwrap_or(1);
        let mut copy = next(self, by_name);
        loop {
            #[cfg(test)]
            {
                self.tries += 1;
            }
            match self.try_assign(path, fields, copy)? {
                Tried::Free(files) => {
                    if copy > next(self, by_stem) {
                        self.next.insert(by_stem, copy);
                    }
                    return Ok(files);
                }
                Tried::SampleTaken => {
                    copy = copy.saturating_add(1);
                    self.next.insert(by_name, copy);
                }
                // The latest copy may have equal fields; those between have been tried by others.
                Tried::FieldTaken => copy = next(self, by_stem).max(copy.saturating_add(1)),
            }
        }
    }

    fn try_assign(
        &mut self,
        path: &SamplePath,
        fields: &[Field],
        copy: u32,
    ) -> Result<Tried, NameDefect> {
        let sample = path.sample(copy)?;
        let sample_hash = self.hasher.hash_one(&sample);
        if self.given.contains_key(&sample_hash) {
            return Ok(Tried::SampleTaken);
        }
        let mut new = HashMap::from([(sample_hash, None)]);
        let mut names = Vec::with_capacity(fields.len());
        for field in fields {
            let name = path.field(copy, &field.extension)?;
            let hash = self.hasher.hash_one(&name);
            let content = Some(self.hasher.hash_one(&field.bytes));
            match self.given.get(&hash) {
                Some(given) if *given == content => names.push(None),
                Some(_) => return Ok(Tried::FieldTaken),
                None => {
                    if new.insert(hash, content).is_some() {
                        return Err(NameDefect::Clash);
                    }
                    names.push(Some(name));
                }
            }
        }
        self.given.extend(new);
        Ok(Tried::Free(SampleFiles { sample, fields: names }))
    }
}

/// The outcome for one copy of a name.
enum Tried {
    Free(SampleFiles),
    /// A file has the name of the sample.
    SampleTaken,
    /// A file with other content has the name of a field.
    FieldTaken,
}

/// The extension of a sample that has no name of its own.
fn extension(format: SampleFormat) -> &'static str {
    match format {
        SampleFormat::Jpeg => "jpg",
        SampleFormat::Png => "png",
        SampleFormat::WebP => "webp",
        SampleFormat::Bmp => "bmp",
        SampleFormat::Tiff => "tiff",
        SampleFormat::VideoMp4 => "mp4",
        SampleFormat::VideoAvi => "avi",
        SampleFormat::RawU8 => "rgb",
        SampleFormat::Unknown | SampleFormat::Other(_) | _ => "bin",
    }
}

#[cfg(test)]
mod tests;
