//! The facts `tl info` prints, as JSON and as text.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;
use tbl_io::{
    Entry, Folder, FolderSkips, LabelOrigin, MemberCounts, RowIndexTotals, SampleSource,
    SourceKind, TarArchive, TblFile,
};

use crate::args::GlobalArgs;
use crate::data_set::DataSet;
use crate::failure::{DamagedParts, Failure};
use crate::info::metadata::{CustomMetadata, MetadataFacts};
use crate::text::{json_text, printable};

/// Goes up with every change that a reader of the JSON could stumble over.
const SCHEMA: &str = "tl.info/1";
/// How many class names the text lists; JSON has all.
const LISTED_CLASSES: usize = 8;

/// Everything known of a data set without reading its samples.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    schema: &'static str,
    path: String,
    kind: &'static str,
    samples: u64,
    /// Samples whose index entry or label is damaged; no other figure counts them.
    #[serde(skip_serializing_if = "is_zero")]
    damaged: u64,
    /// The samples' own bytes, uncompressed.
    bytes: u64,
    stored_bytes: u64,
    /// `null` for a folder.
    file_bytes: Option<u64>,
    lz4_samples: u64,
    formats: BTreeMap<String, u64>,
    width: Option<Range>,
    height: Option<Range>,
    labelled: u64,
    /// `explicit` or `class folders`; `null` when nothing is labelled.
    label_origin: Option<&'static str>,
    classes: Vec<String>,
    /// Oddities of the labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    label_notes: Vec<String>,
    /// `null` for a container that has none.
    checksums: Option<Checksums>,
    /// Metadata blocks that an application may have made; `null` for a container that has none.
    metadata: Option<MetadataFacts>,
    /// The application's fields in a TBL version 1 header.
    custom_metadata: Option<CustomMetadata>,
    /// Row indexes of JPEG samples; `null` for a container that cannot store them.
    row_index: Option<RowIndexFacts>,
    /// Members of an archive that are neither samples nor fields, by type.
    skipped: BTreeMap<&'static str, u64>,
    /// Whether a TAR archive ends with its two zero blocks; `null` for other containers.
    end_marker: Option<bool>,
    /// The offset of a single block of zeros in front of a header of a TAR archive.
    lone_zero_block: Option<u64>,
    /// The offset of bytes after a TAR archive that are not an archive.
    trailing_garbage: Option<u64>,
}

/// The smallest and largest value that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Range {
    min: u32,
    max: u32,
}

/// The checksums of a TBL file. The header's was checked when the file was opened.
#[derive(Clone, Copy, Debug, Serialize)]
struct Checksums {
    header: &'static str,
    /// `null` when the file says that its samples have none.
    samples: Option<&'static str>,
}

/// The row indexes of a TBL file.
#[derive(Clone, Copy, Debug, Serialize)]
struct RowIndexFacts {
    /// Samples that have one.
    samples: u64,
    /// Bytes of the file that are spent on them.
    bytes: u64,
    /// The same as a part of the file.
    share: f64,
}

impl Facts {
    /// How many samples there are, damaged ones included.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Opens the data set and looks at every index entry once.
    pub(crate) fn collect(
        global: &GlobalArgs,
        path: &Path,
    ) -> Result<(Self, DamagedParts), Failure> {
        let data = DataSet::open(global, path)?;
        let source = data.source();
        let mut facts = Self {
            schema: SCHEMA,
            path: json_text(path.as_os_str().as_bytes()).into_owned(),
            kind: kind_name(source.kind()),
            samples: source.sample_count(),
            damaged: 0,
            bytes: 0,
            stored_bytes: 0,
            file_bytes: None,
            lz4_samples: 0,
            formats: BTreeMap::new(),
            width: None,
            height: None,
            labelled: 0,
            label_origin: match data.label_origin() {
                LabelOrigin::Explicit => Some("explicit"),
                LabelOrigin::ClassFolders => Some("class folders"),
                LabelOrigin::None | _ => None,
            },
            classes: data.class_names().to_vec(),
            label_notes: data.label_notes().iter().map(ToString::to_string).collect(),
            checksums: None,
            metadata: None,
            custom_metadata: None,
            row_index: None,
            skipped: BTreeMap::new(),
            end_marker: None,
            lone_zero_block: None,
            trailing_garbage: None,
        };
        let mut formats = FormatCounts::default();
        let mut damaged = DamagedParts::default();
        for index in 0..facts.samples {
            let labelled = source.entry(index).and_then(|entry| {
                let label = data.label(index)?;
                Ok((entry, label))
            });
            match labelled {
                Ok((entry, label)) => {
                    facts.add_entry(&entry, label);
                    formats.add(entry.format);
                }
                Err(error) => damaged.count_if_damage(error.for_sample(index, None))?,
            }
        }
        facts.damaged = damaged.count();
        facts.formats = formats.into_names();
        let source: &dyn Any = source;
        if let Some(archive) = source.downcast_ref() {
            facts.add_tar(archive);
        } else if let Some(folder) = source.downcast_ref() {
            facts.add_folder(folder);
        } else if let Some(file) = source.downcast_ref::<TblFile>() {
            facts.file_bytes = Some(file.file_bytes());
            facts.custom_metadata = file.custom_metadata().map(CustomMetadata::from);
            if file.kind() == SourceKind::Tbl2 {
                facts.add_tbl(file, &mut damaged)?;
            }
        }
        Ok((facts, damaged))
    }

    fn add_entry(&mut self, entry: &Entry<'_>, label: Option<i64>) {
        self.bytes = self.bytes.saturating_add(entry.bytes);
        self.stored_bytes = self.stored_bytes.saturating_add(entry.stored_bytes);
        Range::extend(&mut self.width, entry.width);
        Range::extend(&mut self.height, entry.height);
        // LZ4 is kept only where it makes a sample smaller, and nothing else does.
        self.lz4_samples += u64::from(entry.stored_bytes < entry.bytes);
        self.labelled += u64::from(label.is_some());
    }

    fn add_tar(&mut self, archive: &TarArchive) {
        self.file_bytes = Some(archive.file_bytes());
        let MemberCounts {
            directories,
            symbolic_links,
            hard_links,
            devices,
            sparse,
            unknown,
            hidden,
            other_files,
            ..
        } = archive.member_counts();
        self.add_skipped([
            ("hidden", hidden),
            ("other_files", other_files),
            ("directories", directories),
            ("symbolic_links", symbolic_links),
            ("hard_links", hard_links),
            ("devices", devices),
            ("sparse", sparse),
            ("unknown", unknown),
        ]);
        self.end_marker = Some(archive.has_end_marker());
        self.lone_zero_block = archive.lone_zero_block();
        self.trailing_garbage = archive.trailing_garbage();
    }

    fn add_folder(&mut self, folder: &Folder) {
        let FolderSkips {
            hidden, other_files, special_files, broken_links, repeated_folders, ..
        } = folder.skipped();
        self.add_skipped([
            ("hidden", hidden),
            ("other_files", other_files),
            ("special_files", special_files),
            ("broken_links", broken_links),
            ("repeated_folders", repeated_folders),
        ]);
    }

    fn add_skipped(&mut self, counts: impl IntoIterator<Item = (&'static str, u64)>) {
        self.skipped.extend(counts.into_iter().filter(|&(_, count)| count > 0));
    }

    fn add_tbl(&mut self, file: &TblFile, damaged: &mut DamagedParts) -> Result<(), Failure> {
        let has_checksums = file.flags().contains(tbl_format::v2::FileFlags::HAS_CHECKSUMS);
        let samples = has_checksums.then_some("CRC-16");
        self.checksums = Some(Checksums { header: "CRC-32", samples });
        match file.metadata_totals() {
            Ok(totals) => self.metadata = Some(MetadataFacts::from(totals)),
            Err(error) => damaged.note_if_damage(error)?,
        }
        let RowIndexTotals { samples, bytes } = file.row_index_totals()?;
        #[expect(clippy::cast_precision_loss, reason = "a share for reading")]
        let share = bytes as f64 / file.file_bytes().max(1) as f64;
        self.row_index = Some(RowIndexFacts { samples, bytes, share });
        Ok(())
    }
}

impl Range {
    /// Widens `range` by `value`, where 0 means unknown.
    fn extend(range: &mut Option<Self>, value: u32) {
        if value > 0 {
            let Self { min, max } = range.unwrap_or(Self { min: value, max: value });
            *range = Some(Self { min: min.min(value), max: max.max(value) });
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

impl Default for FormatCounts {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl FormatCounts {
    fn add(&mut self, format: tbl_format::SampleFormat) {
        self.0[usize::from(format.code())] += 1;
    }

    fn into_names(self) -> BTreeMap<String, u64> {
        (0..=u8::MAX)
            .zip(self.0)
            .filter(|&(_, count)| count > 0)
            .map(|(code, count)| (tbl_format::SampleFormat::from_code(code).to_string(), count))
            .collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn kind_name(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Folder => "folder",
        SourceKind::Tar => "tar",
        SourceKind::Tbl1 => "tbl1",
        SourceKind::Tbl2 => "tbl2",
        SourceKind::Table => "table",
        _ => "other",
    }
}

/// Prints one aligned line.
pub(crate) fn row(f: &mut fmt::Formatter<'_>, name: &str, value: impl fmt::Display) -> fmt::Result {
    write!(f, "\n{name:<12} {value}")
}

fn counts<N: fmt::Display>(counts: &BTreeMap<N, u64>) -> String {
    let parts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    parts.join(", ")
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", "path", printable(self.path.as_bytes()))?;
        row(f, "kind", self.kind)?;
        row(f, "samples", self.samples)?;
        if self.damaged > 0 {
            row(f, "damaged", self.damaged)?;
        }
        row(f, "bytes", self.bytes)?;
        if self.stored_bytes != self.bytes {
            row(
                f,
                "stored",
                format_args!("{} ({} samples LZ4)", self.stored_bytes, self.lz4_samples),
            )?;
        }
        if let Some(file_bytes) = self.file_bytes {
            row(f, "file", file_bytes)?;
        }
        if !self.formats.is_empty() {
            row(f, "formats", counts(&self.formats))?;
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
        if !self.classes.is_empty() {
            row(f, "classes", self.classes.len())?;
            let listed: Vec<_> = self
                .classes
                .iter()
                .take(LISTED_CLASSES)
                .map(|name| printable(name.as_bytes()))
                .collect();
            let more = if self.classes.len() > LISTED_CLASSES { ", ..." } else { "" };
            write!(f, ": {}{more}", listed.join(", "))?;
        }
        for note in &self.label_notes {
            row(f, "label note", note)?;
        }
        if let Some(Checksums { header, samples }) = self.checksums {
            row(
                f,
                "checksums",
                format_args!("header {header}, samples {}", samples.unwrap_or("none")),
            )?;
        }
        if let Some(metadata) = self.metadata.as_ref().filter(|metadata| !metadata.is_empty()) {
            row(f, "metadata", metadata)?;
        }
        if let Some(custom) = &self.custom_metadata {
            row(f, "metadata", custom)?;
        }
        if let Some(RowIndexFacts { samples: samples @ 1.., bytes, share }) = self.row_index {
            let percent = 100.0 * share;
            row(
                f,
                "row index",
                format_args!("{samples} samples, {bytes} bytes ({percent:.2} % of the file)"),
            )?;
        }
        if !self.skipped.is_empty() {
            row(f, "skipped", counts(&self.skipped))?;
        }
        match self.end_marker {
            Some(true) | None => {}
            Some(false) => row(f, "end marker", "missing")?,
        }
        if let Some(offset) = self.lone_zero_block {
            row(f, "zero block", format_args!("at byte {offset}, not the end"))?;
        }
        match self.trailing_garbage {
            None => Ok(()),
            Some(offset) => row(f, "garbage", format_args!("from byte {offset} to the end")),
        }
    }
}
