//! The facts `tl info` prints, as JSON and as text.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use tbl_io::{
    Folder, FolderSkips, Labels, MemberCounts, ReadError, RowIndexTotals, SampleBlocks,
    SampleSource, SourceKind, TarArchive, TblFile,
};
use tl_tokens::{TokenFile, TokenFormat, TokenSource};

use crate::failure::{DamagedParts, Failure};
use crate::info::counts::{Counts, listed, row};
use crate::info::metadata::{CustomMetadata, MetadataFacts};
use crate::text::{json_text, printable};

/// Goes up with every change that a reader of the JSON could stumble over.
const SCHEMA: &str = "tl.info/1";
/// Everything known of a data set without reading its samples.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    schema: &'static str,
    path: String,
    kind: &'static str,
    #[serde(flatten)]
    counts: Counts,
    /// `null` for a container that has none.
    checksums: Option<Checksums>,
    /// Metadata blocks that an application may have made; `null` for a container that has none.
    metadata: Option<MetadataFacts>,
    /// The application's fields in a TBL version 1 header.
    custom_metadata: Option<CustomMetadata>,
    /// The tokens of a file of tokens; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<TokenFacts>,
    /// The blocks that samples are stored in; absent for a container without.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocks: Option<BlockFacts>,
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

/// The blocks of a file.
#[derive(Clone, Debug, Serialize)]
struct BlockFacts {
    count: u64,
    /// The most samples of one.
    max_samples: u64,
    compressions: Vec<&'static str>,
    /// Bytes that reading a sample unpacks; 0 where samples are read without their block.
    unpacked_bytes: u64,
}

impl BlockFacts {
    fn of(blocks: &dyn SampleBlocks) -> Result<Self, ReadError> {
        let ends = blocks.ends()?;
        let starts = [0].iter().chain(&ends);
        let sizes = ends.iter().zip(starts).map(|(end, start)| end - start);
        Ok(Self {
            count: ends.len() as u64,
            max_samples: sizes.max().unwrap_or(0),
            compressions: blocks.compressions(),
            unpacked_bytes: blocks.unpacked_bytes()?,
        })
    }
}

/// The tokens of a file.
#[derive(Clone, Copy, Debug, Serialize)]
struct TokenFacts {
    format: &'static str,
    #[serde(rename = "type")]
    number: &'static str,
    /// `null` for texts, whose tokens are made when they are read.
    count: Option<u64>,
    /// `null` without an index of documents.
    documents: Option<u64>,
}

impl TokenFacts {
    fn of(file: &TokenFile) -> Self {
        Self {
            format: file.format().name(),
            number: file.number().name(),
            count: Some(file.len()).filter(|_| file.format() != TokenFormat::Text),
            documents: file.documents().map(|documents| documents.len()),
        }
    }
}

impl Facts {
    /// The counts of samples and labels.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Looks at every index entry of one source once. Its first sample has the number `start` in the
    /// data set.
    pub(crate) fn collect(
        sources: &[Box<dyn SampleSource>; 1],
        start: u64,
        damaged: &mut DamagedParts,
    ) -> Result<Self, Failure> {
        let labels = Labels::resolve(sources)?;
        let source = &*sources[0];
        let mut facts = Self {
            schema: SCHEMA,
            path: json_text(source.location().as_os_str().as_bytes()).into_owned(),
            kind: kind_name(source.kind()),
            counts: Counts::of_labels(&labels),
            checksums: None,
            metadata: None,
            custom_metadata: None,
            tokens: None,
            blocks: None,
            row_index: None,
            skipped: BTreeMap::new(),
            end_marker: None,
            lone_zero_block: None,
            trailing_garbage: None,
        };
        let as_any: &dyn Any = source;
        let file = as_any.downcast_ref::<TblFile>();
        for index in 0..source.sample_count() {
            let described = source.entry(index).and_then(|entry| {
                let label = labels.try_label(sources, 0, index)?;
                let codec = file.map_or(Ok(None), |file| file.codec(index))?;
                Ok((entry, codec, label))
            });
            match described {
                Ok((entry, codec, label)) => facts.counts.add(&entry, codec, label),
                Err(error) => {
                    facts.counts.add_damaged();
                    damaged.count_if_damage(error.in_data_set(start + index))?;
                }
            }
        }
        match source.blocks().map(BlockFacts::of).transpose() {
            Ok(blocks) => facts.blocks = blocks,
            Err(error) => damaged.note_if_damage(error)?,
        }
        if let Some(tokens) = TokenSource::of(source) {
            facts.tokens = Some(TokenFacts::of(tokens.file()));
            facts.counts.file_bytes = tokens.file().source().map(tbl_io::Source::len);
        } else if let Some(archive) = as_any.downcast_ref() {
            facts.add_tar(archive);
        } else if let Some(folder) = as_any.downcast_ref() {
            facts.add_folder(folder);
        } else if let Some(file) = file {
            facts.counts.file_bytes = Some(file.file_bytes());
            facts.custom_metadata = file.custom_metadata().map(CustomMetadata::from);
            if file.kind() == SourceKind::Tbl2 {
                facts.add_tbl(file, damaged)?;
            }
        }
        Ok(facts)
    }

    fn add_tar(&mut self, archive: &TarArchive) {
        self.counts.file_bytes = Some(archive.file_bytes());
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

fn kind_name(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Folder => "folder",
        SourceKind::Files => "files",
        SourceKind::Manifest => "manifest",
        SourceKind::Memory => "memory",
        SourceKind::Tar => "tar",
        SourceKind::Images => "images",
        SourceKind::Parquet => "parquet",
        SourceKind::Arrow => "arrow",
        SourceKind::Tbl1 => "tbl1",
        SourceKind::Tbl2 => "tbl2",
        SourceKind::Table => "table",
        SourceKind::Tokens => "tokens",
        _ => "other",
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12} {}", "path", printable(self.path.as_bytes()))?;
        row(f, "kind", self.kind)?;
        write!(f, "{}", self.counts)?;
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
        if let Some(TokenFacts { format, number, count, documents }) = self.tokens {
            match count {
                Some(count) => row(f, "tokens", format_args!("{count} of {number}, {format}"))?,
                None => row(f, "tokens", format_args!("of {number}, made of {format}"))?,
            }
            if let Some(documents) = documents {
                row(f, "documents", documents)?;
            }
        }
        if let Some(BlockFacts { count, max_samples, compressions, unpacked_bytes }) = &self.blocks
        {
            let compressions = compressions.join(", ");
            row(
                f,
                "blocks",
                format_args!("{count} of up to {max_samples} samples, {compressions}"),
            )?;
            if *unpacked_bytes > 0 {
                row(f, "", format_args!("a sample unpacks {unpacked_bytes} bytes"))?;
            }
        }
        if let Some(RowIndexFacts { samples: samples @ 1.., bytes, share }) = self.row_index {
            let percent = 100.0 * share;
            // Only JPEG images have row indexes.
            let what = if self.counts.has_jpegs() { "row index" } else { "video index" };
            row(
                f,
                what,
                format_args!("{samples} samples, {bytes} bytes ({percent:.2} % of the file)"),
            )?;
        }
        if !self.skipped.is_empty() {
            row(f, "skipped", listed(&self.skipped))?;
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
