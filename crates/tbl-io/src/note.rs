//! Oddities of a source that are not errors.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::escape::Escaped;
use crate::grouping::{Grouping, SeveralImages};
use crate::names::Names;

/// A finding about a source that is not an error but that its user should know.
/// The message is one line without the source's path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Members or files that might have been meant as samples and cannot be read as such.
    PassedOver {
        /// How many of each kind.
        counts: Vec<(&'static str, u64)>,
        /// The name of one of them: the first in an archive, the smallest path in a folder.
        first: Vec<u8>,
    },
    /// Samples with several images, of which one is chosen by the order of their names.
    SeveralImages {
        /// How many samples.
        samples: u64,
        /// The image of the first one.
        first: Vec<u8>,
    },
    /// A single block of zeros inside a TAR archive, where a member without bytes may be lost.
    LoneZeroBlock {
        /// Where it is.
        offset: u64,
    },
    /// Bytes after the end of a TAR archive that belong to nothing.
    TrailingBytes {
        /// Where they start.
        offset: u64,
    },
    /// There is no sample at all.
    NoSamples,
    /// Some samples have a label and others have none.
    PartlyLabelled {
        /// How many have none.
        samples: u64,
        /// The first of them.
        first: NotedSample,
    },
    /// The `label` in JSON metadata of a TBL file is not an integer, so the samples have no label.
    /// The metadata is the application's and stays as it is.
    OtherLabel {
        /// How many samples have such a label.
        samples: u64,
        /// The first of them.
        first: NotedSample,
    },
    /// Labels in files are not those of the class folders, which count.
    LabelConflict {
        /// How many samples have such a label.
        samples: u64,
        /// The first of them.
        first: NotedSample,
        /// Its label in the file; `None` for one that cannot be read.
        stored: Option<i64>,
        /// The class of its folder.
        class: String,
    },
}

/// A sample that a note names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedSample {
    /// Its file or folder.
    pub path: PathBuf,
    /// Its number there.
    pub index: u64,
    /// Its name, if it has one.
    pub key: Option<Vec<u8>>,
}

impl fmt::Display for NotedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: sample {}", Escaped(self.path.as_os_str().as_bytes()), self.index)?;
        self.key.as_ref().map_or(Ok(()), |key| write!(f, " ({})", Escaped(key)))
    }
}

impl Note {
    /// The note on what was passed over, unless that is nothing.
    pub(crate) fn passed_over(
        counts: impl IntoIterator<Item = (&'static str, u64)>,
        first: Option<&[u8]>,
    ) -> Option<Self> {
        let counts = counts.into_iter().filter(|&(_, count)| count > 0).collect();
        first.map(|first| Self::PassedOver { counts, first: first.to_vec() })
    }

    /// The note on samples with several images, unless there are none.
    pub(crate) fn several_images(grouping: &Grouping, names: &Names) -> Option<Self> {
        let SeveralImages { samples, first } = grouping.several_images();
        first.map(|first| Self::SeveralImages { samples, first: names.path(first).into_owned() })
    }
}

/// Kinds of files that are passed over in most data sets.
pub(crate) const HIDDEN_FILES: &str = "hidden files";
pub(crate) const OTHER_FILES: &str = "files without an image";

impl Note {
    /// Whether it only counts what many data sets have besides their samples: hidden files and
    /// files such as `README.md`.
    pub fn is_usual(&self) -> bool {
        let is_usual = |&(kind, _): &(&str, u64)| kind == HIDDEN_FILES || kind == OTHER_FILES;
        matches!(self, Self::PassedOver { counts, .. } if counts.iter().all(is_usual))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PassedOver { counts, first } => {
                f.write_str("passed over")?;
                for (number, (kind, count)) in counts.iter().enumerate() {
                    let comma = if number > 0 { "," } else { "" };
                    write!(f, "{comma} {count} {kind}")?;
                }
                write!(f, ", such as {}", Escaped(first))
            }
            Self::SeveralImages { samples, first } => write!(
                f,
                "{samples} samples have several images; one is decoded, such as {}, and the \
                 others are fields",
                Escaped(first)
            ),
            Self::LoneZeroBlock { offset } => {
                write!(f, "a single block of zeros at byte {offset} does not end the archive")
            }
            Self::TrailingBytes { offset } => {
                write!(f, "bytes from byte {offset} on belong to nothing")
            }
            Self::NoSamples => f.write_str("no samples"),
            Self::PartlyLabelled { samples, first } => {
                write!(f, "samples without a label among labelled ones: {samples}, first {first}")
            }
            Self::OtherLabel { samples, first } => write!(
                f,
                "samples without a label whose JSON metadata has a `label` that is not an integer: \
                 {samples}, first {first}"
            ),
            Self::LabelConflict { samples, first, stored, class } => {
                write!(
                    f,
                    "label files that differ from the class folder, which counts: {samples}"
                )?;
                let class = Escaped(class.as_bytes());
                match stored {
                    Some(label) => write!(f, ", first {first} with {label} in class `{class}`"),
                    None => write!(f, ", first {first}, unreadable, in class `{class}`"),
                }
            }
        }
    }
}
