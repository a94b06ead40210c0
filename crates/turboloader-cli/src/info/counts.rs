//! The counts of samples and labels that `tl info` prints, of a source or of several.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};
use tbl_format::SampleFormat;
use tbl_format::v2::Codec;
use tbl_io::{Entry, LabelOrigin, Labels};

use crate::text::printable;

/// How many class names the text lists; JSON has all.
const LISTED_CLASSES: usize = 8;

/// Counts of the samples and labels of a source, or of all sources of a data set.
#[derive(Debug, Serialize)]
pub(crate) struct Counts {
    samples: u64,
    /// Samples whose index entry or label is damaged; no other figure counts them.
    #[serde(skip_serializing_if = "is_zero")]
    damaged: u64,
    /// The samples' own bytes, uncompressed.
    bytes: u64,
    stored_bytes: u64,
    /// `null` for a folder.
    pub(super) file_bytes: Option<u64>,
    lz4_samples: u64,
    zstd_samples: u64,
    formats: FormatCounts,
    width: Option<Range>,
    height: Option<Range>,
    labelled: u64,
    /// `explicit` or `class folders`; `null` when nothing is labelled, and when some sources have the
    /// one and some the other.
    label_origin: Option<&'static str>,
    classes: Vec<String>,
    /// The names of the classes of boxes, by their numbers; empty for a number without a class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    box_classes: Vec<String>,
    /// Oddities of the labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    label_notes: Vec<String>,
}

impl Counts {
    /// No samples, whose labels are these.
    pub(super) fn of_labels(labels: &Labels) -> Self {
        Self {
            samples: 0,
            damaged: 0,
            bytes: 0,
            stored_bytes: 0,
            file_bytes: None,
            lz4_samples: 0,
            zstd_samples: 0,
            formats: FormatCounts::default(),
            width: None,
            height: None,
            labelled: 0,
            label_origin: match labels.origin() {
                LabelOrigin::Explicit => Some("explicit"),
                LabelOrigin::ClassFolders => Some("class folders"),
                LabelOrigin::Given => Some("given"),
                LabelOrigin::None | _ => None,
            },
            classes: labels.class_names().to_vec(),
            box_classes: labels.box_class_names().to_vec(),
            label_notes: labels.notes().iter().map(ToString::to_string).collect(),
        }
    }

    /// The sum of the counts of all sources of a data set, whose labels are `labels`. Joined labels
    /// can be more than those of the sources alone.
    pub(super) fn sum<'a>(labels: &Labels, counts: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let mut sum = Self::of_labels(labels);
        for (source, counts) in counts.clone().enumerate() {
            let is_labelled = |index: &u64| labels.label(source, *index).is_some();
            sum.labelled += (0..counts.samples).filter(is_labelled).count() as u64;
        }
        let file_bytes = counts.clone().map(|counts| counts.file_bytes);
        sum.file_bytes =
            file_bytes.reduce(|one, other| Some(one?.saturating_add(other?))).flatten();
        for counts in counts {
            sum.samples += counts.samples;
            sum.damaged += counts.damaged;
            sum.bytes = sum.bytes.saturating_add(counts.bytes);
            sum.stored_bytes = sum.stored_bytes.saturating_add(counts.stored_bytes);
            sum.lz4_samples += counts.lz4_samples;
            sum.zstd_samples += counts.zstd_samples;
            sum.formats.add_all(&counts.formats);
            Range::extend_by(&mut sum.width, counts.width);
            Range::extend_by(&mut sum.height, counts.height);
        }
        sum
    }

    pub(super) fn add(&mut self, entry: &Entry<'_>, codec: Option<Codec>, label: Option<i64>) {
        self.samples += 1;
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(entry.stored_bytes);
        Range::extend(&mut self.width, entry.width);
        Range::extend(&mut self.height, entry.height);
        match codec {
            Some(Codec::Lz4) => self.lz4_samples += 1,
            Some(Codec::Zstd) => self.zstd_samples += 1,
            None => {}
        }
        self.labelled += u64::from(label.is_some());
        self.formats.add(entry.format);
    }

    /// Whether any sample is a JPEG image by its index entry.
    pub(super) fn has_jpegs(&self) -> bool {
        self.formats.0[usize::from(SampleFormat::Jpeg.code())] > 0
    }

    pub(super) fn add_damaged(&mut self) {
        self.samples += 1;
        self.damaged += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(f, "samples", self.samples)?;
        if self.damaged > 0 {
            row(f, "damaged", self.damaged)?;
        }
        row(f, "bytes", self.bytes)?;
        let codecs = [(self.lz4_samples, "LZ4"), (self.zstd_samples, "Zstandard")];
        let compressed = codecs.into_iter().filter(|&(count, _)| count > 0);
        let compressed: Vec<_> =
            compressed.map(|(count, name)| format!("{count} samples {name}")).collect();
        if !compressed.is_empty() {
            row(f, "stored", format_args!("{} ({})", self.stored_bytes, compressed.join(", ")))?;
        }
        if let Some(file_bytes) = self.file_bytes {
            row(f, "file", file_bytes)?;
        }
        if self.formats.0.iter().any(|&count| count > 0) {
            row(f, "formats", listed(&self.formats.names()))?;
        }
        if let (Some(width), Some(height)) = (self.width, self.height) {
            row(f, "width", width)?;
            row(f, "height", height)?;
        }
        row(f, "labels", self.labelled)?;
        if self.labelled > 0 && self.labelled < self.samples - self.damaged {
            write!(f, " of {}", self.samples - self.damaged)?;
        }
        if let Some(origin) = self.label_origin {
            write!(f, " ({origin})")?;
        }
        class_row(f, "classes", &self.classes)?;
        class_row(f, "box classes", &self.box_classes)?;
        for note in &self.label_notes {
            row(f, "label note", note)?;
        }
        Ok(())
    }
}

/// Prints the count of the classes that have a name, and the first names.
fn class_row(f: &mut fmt::Formatter<'_>, title: &str, names: &[String]) -> fmt::Result {
    let named = || names.iter().filter(|name| !name.is_empty());
    let count = named().count();
    if count == 0 {
        return Ok(());
    }
    row(f, title, count)?;
    let listed: Vec<_> =
        named().take(LISTED_CLASSES).map(|name| printable(name.as_bytes())).collect();
    let more = if count > LISTED_CLASSES { ", ..." } else { "" };
    write!(f, ": {}{more}", listed.join(", "))
}

/// The smallest and largest value that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Range {
    min: u32,
    max: u32,
}

impl Range {
    /// Widens `range` by `value`, where 0 means unknown.
    fn extend(range: &mut Option<Self>, value: u32) {
        if value > 0 {
            let Self { min, max } = range.unwrap_or(Self { min: value, max: value });
            *range = Some(Self { min: min.min(value), max: max.max(value) });
        }
    }

    /// Widens `range` by another.
    fn extend_by(range: &mut Option<Self>, other: Option<Self>) {
        if let Some(Self { min, max }) = other {
            Self::extend(range, min);
            Self::extend(range, max);
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{} to {}", self.min, self.max)
        }
    }
}

/// Counts by format code, so that a million samples make no million strings.
#[derive(Debug)]
struct FormatCounts([u64; 256]);

impl Serialize for FormatCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names().serialize(serializer)
    }
}

impl Default for FormatCounts {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl FormatCounts {
    fn add(&mut self, format: SampleFormat) {
        self.0[usize::from(format.code())] += 1;
    }

    fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    fn names(&self) -> BTreeMap<String, u64> {
        (0..=u8::MAX)
            .zip(self.0)
            .filter(|&(_, count)| count > 0)
            .map(|(code, count)| (SampleFormat::from_code(code).to_string(), count))
            .collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Prints one aligned line.
pub(crate) fn row(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    write!(f, "\n{name:<12} {value}")
}

/// Counts by name.
pub(super) fn listed<N: fmt::Display>(counts: &BTreeMap<N, u64>) -> String {
    let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    parts.join(", ")
}
