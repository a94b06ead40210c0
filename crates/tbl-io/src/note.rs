//! Oddities of a source that are not errors.

use std::collections::BTreeSet;
use std::fmt;

use tbl_format::SampleFormat;

use crate::escape::Escaped;
use crate::grouping::{Grouping, JoinedImages, SeveralImages, WithoutImage, last_extension};
use crate::location::Location;
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
    /// Samples with several images, or in a data set of videos with several videos, of which one is
    /// chosen by the order of their names.
    SeveralImages {
        /// How many samples.
        samples: u64,
        /// The image of the first one.
        first: Vec<u8>,
    },
    /// Several columns have labels, and none of them is chosen: samples have no label.
    SeveralLabels {
        /// The names of the columns.
        columns: Vec<String>,
    },
    /// Numbered images, such as `cat.0.jpg` and `cat.1.jpg`, that are parts of one sample because
    /// of another file, such as `cat.json`.
    JoinedImages {
        /// How many images.
        images: u64,
        /// The samples that they are part of.
        samples: u64,
        /// The first file that joins them.
        because: Vec<u8>,
    },
    /// Files that are passed over because their group has no image, although they may be a sample:
    /// the group has several files, or one whose extension also occurs next to images, or one with
    /// a number, such as `cat.2.txt` next to `cat.0.jpg` and `cat.1.jpg`.
    WithoutImage {
        /// How many groups.
        groups: u64,
        /// Their files.
        files: u64,
        /// The name of the first one.
        first: Vec<u8>,
    },
    /// Images of a folder that its metadata files do not name are not samples.
    Unlisted {
        /// How many.
        images: u64,
        /// The path of the first one.
        first: Vec<u8>,
    },
    /// Labels that were given by name belong to no sample.
    UnusedLabels {
        /// How many.
        labels: u64,
        /// The name of the first one.
        first: Vec<u8>,
    },
    /// Annotations of images that their file does not list.
    StrayAnnotations {
        /// How many.
        annotations: u64,
        /// The image of the first one.
        image_id: i64,
    },
    /// Two categories whose names of keypoints give different pairs for mirrored images.
    OtherFlipPairs {
        /// The number of the first category with names of keypoints.
        first: i64,
        /// The number of the other one.
        other: i64,
    },
    /// No sample is an image by its name, and not all are videos.
    NoImages {
        /// How many samples there are.
        samples: u64,
        /// The extensions of their files in lower case, sorted: the first few.
        extensions: Vec<Vec<u8>>,
    },
    /// Members of a TAR archive that later ones of the same name replace as fields of a sample.
    Replaced {
        /// How many are replaced.
        members: u64,
        /// How many of them have another label than the later one.
        labels: u64,
        /// The name of the first.
        first: Vec<u8>,
    },
    /// A single block of zeros inside a TAR archive, where a member without bytes may be lost.
    LoneZeroBlock {
        /// The offset of the block.
        offset: u64,
    },
    /// Bytes after the end of a TAR archive that belong to nothing.
    TrailingBytes {
        /// The offset of the bytes.
        offset: u64,
    },
    /// A file of images has no file with labels next to it.
    NoLabelFile {
        /// The file that was looked for.
        labels: Location,
    },
    /// A file of CIFAR's images has no file with the names of its classes next to it.
    NoClassNames {
        /// The file that was looked for.
        names: Location,
    },
    /// An Arrow stream ends without saying so: rows may be missing.
    NoStreamEnd,
    /// The data set has no samples.
    NoSamples,
    /// Some samples have a label and others have none.
    PartlyLabelled {
        /// How many have none.
        samples: u64,
        /// The first of them.
        first: NotedSample,
    },
    /// The `label` in JSON metadata of a TBL file is not an integer and is not used. The metadata
    /// is the application's and stays as it is.
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
    /// The folders that give the classes have the usual names of splits, or of images and masks:
    /// most often the folder above the data set was opened.
    FoldersLikeSplits {
        /// The class names.
        names: Vec<String>,
    },
    /// The classes are the names of archives.
    ArchiveClasses {
        /// How many archives.
        archives: u64,
        /// The first of them.
        first: Location,
    },
    /// Several folders without class folders and without label files: each may be a class.
    SeparateFolders {
        /// How many.
        folders: u64,
        /// The first of them.
        first: Location,
        /// The folder that holds all of them, if there is one.
        parent: Option<Location>,
    },
}

/// A sample that a note names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedSample {
    /// Its file or folder.
    pub location: Location,
    /// Its number there.
    pub index: u64,
    /// Its name, if it has one.
    pub key: Option<Vec<u8>>,
}

const NO_STREAM_END: &str =
    "the stream has no end mark; if its writer was stopped early, rows are missing";

impl fmt::Display for NotedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: sample {}", self.location, self.index)?;
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

    /// The notes on samples and their fields.
    pub(crate) fn of_grouping(grouping: &Grouping, names: &Names) -> impl Iterator<Item = Self> {
        let path = |file: u32| names.path(file).into_owned();
        let SeveralImages { samples, first } = grouping.several_images();
        let several = first.map(|first| Self::SeveralImages { samples, first: path(first) });
        let JoinedImages { images, samples, because } = grouping.joined_images();
        let joined =
            because.map(|because| Self::JoinedImages { images, samples, because: path(because) });
        let WithoutImage { groups, files, first } = grouping.without_image();
        let without_image =
            first.map(|first| Self::WithoutImage { groups, files, first: path(first) });
        let no_images = Self::no_images(grouping, names);
        [several, joined, without_image, no_images].into_iter().flatten()
    }

    /// The note on samples none of which is an image.
    fn no_images(grouping: &Grouping, names: &Names) -> Option<Self> {
        const MAX_NAMED: usize = 8;
        let samples = grouping.sample_count() as u64;
        let is_video = |index| {
            grouping.sample(index).is_some_and(|file| SampleFormat::is_video_name(names.base(file)))
        };
        if samples == 0 || grouping.has_images() || (0..samples).all(is_video) {
            return None;
        }
        let mut extensions = BTreeSet::new();
        for index in 0..samples {
            for file in grouping.sample(index).into_iter().chain(grouping.fields(index)) {
                let extension = last_extension(names.base(file));
                if extension.len() < names.base(file).len() && extensions.len() < MAX_NAMED {
                    extensions.insert(extension.to_ascii_lowercase());
                }
            }
        }
        Some(Self::NoImages { samples, extensions: extensions.into_iter().collect() })
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
            Self::PassedOver { counts, first } => write_passed_over(f, counts, first),
            Self::SeveralImages { samples, first } => write_several(f, *samples, first),
            Self::JoinedImages { images, samples, because } => write!(
                f,
                "{images} numbered images are not samples of their own but parts of {samples} \
                 samples, and their labels are fields, because of files without a number such as {}",
                Escaped(because)
            ),
            Self::SeveralLabels { columns } => write!(
                f,
                "samples have no label: the columns {} have labels; name that of the samples (label=)",
                Escaped(columns.join(", ").as_bytes())
            ),
            Self::WithoutImage { groups, files, first } => write!(
                f,
                "{groups} samples without an image are passed over, {files} files in all, such as \
                 {}: other samples have images",
                Escaped(first)
            ),
            Self::UnusedLabels { labels, first } => {
                write!(f, "{labels} labels belong to no sample, first {}", Escaped(first))
            }
            Self::StrayAnnotations { annotations, image_id } => {
                let what = "annotations of images that are not listed, first of image";
                write_counted(f, *annotations, what, image_id.to_string().as_bytes())
            }
            Self::OtherFlipPairs { first, other } => write!(
                f,
                "categories {first} and {other} name different keypoints as left and right: \
                 mirrored images exchange none unless flip_pairs names them"
            ),
            Self::Unlisted { images, first } => {
                let what = "images that no metadata file names are not samples, first";
                write_counted(f, *images, what, first)
            }
            Self::NoImages { samples, extensions } => {
                write!(f, "none of {samples} samples is an image by its name, found ")?;
                write_extensions(f, extensions)
            }
            Self::Replaced { members, labels, first } => {
                let what = "members are replaced by later ones of the same name, such as";
                write_counted(f, *members, what, first)?;
                if *labels > 0 { write!(f, "; {labels} have another label") } else { Ok(()) }
            }
            Self::LoneZeroBlock { offset } => {
                write!(f, "a single block of zeros at byte {offset} does not end the archive")
            }
            Self::TrailingBytes { offset } => {
                write!(f, "bytes from byte {offset} on are not part of the archive")
            }
            Self::NoLabelFile { labels } => write!(f, "no labels: {labels} does not exist"),
            Self::NoClassNames { names } => write!(f, "no class names: {names} does not exist"),
            Self::NoStreamEnd => f.write_str(NO_STREAM_END),
            Self::NoSamples => f.write_str("no samples"),
            Self::PartlyLabelled { samples, first } => {
                write!(f, "samples without a label among labelled ones: {samples}, first {first}")
            }
            Self::OtherLabel { samples, first } => write!(
                f,
                "samples whose JSON metadata has a `label` that is not an integer and is not used: \
                 {samples}, first {first}"
            ),
            Self::LabelConflict { samples, first, stored, class } => {
                write_label_conflict(f, *samples, first, *stored, class)
            }
            Self::FoldersLikeSplits { names } => write_folders_like_splits(f, names),
            Self::ArchiveClasses { archives, first } => {
                write!(f, "the classes are the names of {archives} archives, first {first}")
            }
            Self::SeparateFolders { folders, first, parent } => {
                write_separate_folders(f, *folders, first, parent.as_ref())
            }
        }
    }
}

fn write_extensions(f: &mut fmt::Formatter<'_>, extensions: &[Vec<u8>]) -> fmt::Result {
    if extensions.is_empty() {
        return f.write_str("files without an extension");
    }
    for (number, extension) in extensions.iter().enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        write!(f, "{comma}.{}", Escaped(extension))?;
    }
    f.write_str(" files")?;
    if extensions.iter().any(|extension| matches!(&**extension, b"tar" | b"tbl")) {
        f.write_str("; archives are opened by their own names, not by their folder's")?;
    }
    Ok(())
}

/// The text of [`Note::FoldersLikeSplits`].
fn write_folders_like_splits(f: &mut fmt::Formatter<'_>, names: &[String]) -> fmt::Result {
    let (last, others) = names.split_last().map_or(("", &[][..]), |(l, o)| (l, o));
    write!(
        f,
        "the classes are the folders {} and {last}, which look like parts of a data set: open one \
         of them, unless these are the classes",
        others.join(", ")
    )
}

fn write_several(f: &mut fmt::Formatter<'_>, samples: u64, first: &[u8]) -> fmt::Result {
    let what = if SampleFormat::is_video_name(first) { "videos" } else { "images" };
    let first = Escaped(first);
    write!(
        f,
        "{samples} samples have several {what}; one is decoded, such as {first}, and the others are \
         fields"
    )
}

fn write_passed_over(
    f: &mut fmt::Formatter<'_>,
    counts: &[(&str, u64)],
    first: &[u8],
) -> fmt::Result {
    f.write_str("passed over")?;
    for (number, (kind, count)) in counts.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        write!(f, "{comma} {count} {kind}")?;
    }
    write!(f, ", such as {}", Escaped(first))
}

/// A count with the first of what was counted.
fn write_counted(f: &mut fmt::Formatter<'_>, count: u64, what: &str, first: &[u8]) -> fmt::Result {
    write!(f, "{count} {what} {}", Escaped(first))
}

/// The text of [`Note::LabelConflict`].
fn write_label_conflict(
    f: &mut fmt::Formatter<'_>,
    samples: u64,
    first: &NotedSample,
    stored: Option<i64>,
    class: &str,
) -> fmt::Result {
    write!(f, "samples whose class folder overrides a different label file: {samples}")?;
    let class = Escaped(class.as_bytes());
    match stored {
        Some(label) => write!(f, ", first {first} with {label} in class `{class}`"),
        None => write!(f, ", first {first}, unreadable, in class `{class}`"),
    }
}

/// The text of [`Note::SeparateFolders`].
fn write_separate_folders(
    f: &mut fmt::Formatter<'_>,
    folders: u64,
    first: &Location,
    parent: Option<&Location>,
) -> fmt::Result {
    write!(
        f,
        "no labels in {folders} folders without class folders or label files, first {}; to take \
         the folders as classes, pass the folder that holds them",
        first
    )?;
    parent.map_or(Ok(()), |parent| write!(f, ", {}", parent))
}
