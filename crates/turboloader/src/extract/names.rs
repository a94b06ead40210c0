//! What each sample and field is called on disk: stored names checked component by component,
//! numbers for the unnamed, and no name used twice.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use tbl_format::SampleFormat;
use tbl_io::{Entry, Field};

/// Why a stored name cannot become a path below the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameDefect {
    /// It starts with a slash.
    Absolute,
    /// One of its components is `..`.
    Parent,
    /// It has no component at all.
    Empty,
    /// It contains a zero byte.
    Nul,
}

impl fmt::Display for NameDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absolute => "it is absolute",
            Self::Parent => "it contains `..`",
            Self::Empty => "it is empty",
            Self::Nul => "it contains a zero byte",
        })
    }
}

/// A checked relative path: the folders, the stem (to the first dot of the file name, which is
/// what fields share), and the extension with its dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SamplePath {
    /// Ends with a slash unless empty.
    folder: Vec<u8>,
    stem: Vec<u8>,
    extension: Vec<u8>,
}

impl SamplePath {
    /// The path of sample `index`.
    pub(crate) fn new(index: u64, entry: &Entry<'_>) -> Result<Self, NameDefect> {
        let Some(key) = entry.key.as_deref() else {
            let extension = format!(".{}", extension(entry.format)).into_bytes();
            return Ok(Self { folder: Vec::new(), stem: format!("{index:08}").into(), extension });
        };
        if key.first() == Some(&b'/') {
            return Err(NameDefect::Absolute);
        }
        if key.contains(&0) {
            return Err(NameDefect::Nul);
        }
        let mut components: Vec<&[u8]> = Vec::new();
        for component in key.split(|&byte| byte == b'/') {
            match component {
                b".." => return Err(NameDefect::Parent),
                b"" | b"." => {}
                _ => components.push(component),
            }
        }
        let name = components.pop().ok_or(NameDefect::Empty)?;
        let folder = components.iter().flat_map(|folder| [folder, &b"/"[..]]).flatten().copied();
        let dot = name.iter().position(|&byte| byte == b'.').unwrap_or(name.len());
        let (stem, stored) = name.split_at(dot);
        // The pixels of a RAW_U8 sample are no longer the file its name speaks of.
        let is_raw = entry.format == SampleFormat::RawU8;
        let extension = if is_raw { b".rgb".to_vec() } else { stored.to_vec() };
        Ok(Self { folder: folder.collect(), stem: stem.to_vec(), extension })
    }

    /// The path, with the stem numbered from the second use of the name on.
    fn file(&self, copy: u32, extension: &[u8]) -> Vec<u8> {
        let number = if copy > 1 { format!("_{copy}").into_bytes() } else { Vec::new() };
        [&self.folder[..], &self.stem, &number, extension].concat()
    }
}

/// Where one sample's bytes go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SampleFiles {
    /// The sample.
    pub(crate) sample: Vec<u8>,
    /// Its fields; `None` for one that an earlier sample of the same group has written.
    pub(crate) fields: Vec<Option<Vec<u8>>>,
}

/// The names given so far, as hashes: 16 bytes for each file written.
#[derive(Debug, Default)]
pub(crate) struct Names {
    hasher: RandomState,
    /// Path to content; samples count as content 0, which no second sample may share.
    given: HashMap<u64, Option<u64>>,
}

impl Names {
    /// Gives the sample and its fields names that no other content has.
    pub(crate) fn assign(&mut self, path: &SamplePath, fields: &[Field]) -> SampleFiles {
        let mut copy = 1;
        loop {
            if let Some(files) = self.try_assign(path, fields, copy) {
                return files;
            }
            copy += 1;
        }
    }

    fn try_assign(
        &mut self,
        path: &SamplePath,
        fields: &[Field],
        copy: u32,
    ) -> Option<SampleFiles> {
        let sample = path.file(copy, &path.extension);
        let sample_hash = self.hasher.hash_one(&sample);
        if self.given.contains_key(&sample_hash) {
            return None;
        }
        let mut new = Vec::with_capacity(fields.len());
        let mut names = Vec::with_capacity(fields.len());
        for field in fields {
            let extension = [b".", field.extension.as_slice()].concat();
            let name = path.file(copy, &extension);
            let hash = self.hasher.hash_one(&name);
            let content = Some(self.hasher.hash_one(&field.bytes));
            match self.given.get(&hash) {
                Some(given) if *given == content => names.push(None),
                Some(_) => return None,
                None => {
                    new.push((hash, content));
                    names.push(Some(name));
                }
            }
        }
        self.given.insert(sample_hash, None);
        self.given.extend(new);
        Some(SampleFiles { sample, fields: names })
    }
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
