//! The findings of a table's check, as text and as JSON.

use idv_format::ReadError;
use serde::Serialize;
use tbf_format::{FormatError, Segment};

use crate::failure::Failure;
use crate::output::Stdout;
use crate::text::one_line;
use crate::verify::MAX_LISTED;

/// Goes up with every change that a reader of the JSON could stumble over.
pub(super) const SCHEMA: &str = "tl.verify.table/1";

/// The output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    pub(super) schema: &'static str,
    pub(super) file: &'a str,
    pub(super) kind: &'static str,
    pub(super) good: bool,
    #[serde(flatten)]
    pub(super) counts: Counts,
    pub(super) damaged: u64,
    pub(super) warnings: u64,
    /// Encrypted regions of a segment that were not looked into for lack of a key.
    pub(super) not_verified: &'a [String],
    /// The first [`MAX_LISTED`] of all kinds together.
    pub(super) findings: &'a [Listed],
}

/// The parts of the table that were checked.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Counts {
    pub(super) rows: u64,
    pub(super) columns: u64,
    /// Blocks of columns, or regions.
    pub(super) parts: u64,
    /// Bytes of the file.
    pub(super) bytes: u64,
}

/// One finding.
#[derive(Debug, Default, Serialize)]
pub(super) struct Listed {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    /// The offset of the block or region.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    reason: String,
}

const DAMAGE: &str = "damage";
const WARNING: &str = "warning";

impl Listed {
    /// The oddity.
    pub(super) fn warning(reason: String) -> Self {
        Self { kind: WARNING, reason, ..Self::default() }
    }

    /// A defect of the whole file.
    pub(super) fn damage(reason: String) -> Self {
        Self { kind: DAMAGE, reason, ..Self::default() }
    }

    /// A defect of a column.
    pub(super) fn idv(column: &str, error: &ReadError) -> Self {
        let mut listed = Self { kind: DAMAGE, column: Some(column.to_owned()), ..Self::default() };
        if let ReadError::Block { block, offset, source, .. } = error {
            (listed.block, listed.offset) = (Some(*block), Some(*offset));
            listed.reason = one_line(source);
        } else if let ReadError::Metadata { kind, offset, source } = error {
            (listed.metadata, listed.offset) = (Some(kind.clone()), Some(*offset));
            listed.reason = one_line(source);
        } else {
            listed.reason = one_line(error);
        }
        listed
    }

    /// A defect of a region.
    pub(super) fn segment(segment: &Segment<'_>, error: &FormatError) -> Self {
        let region = error.region();
        Self {
            kind: DAMAGE,
            region: region.map(|region| region.to_string()),
            offset: region.map(|region| segment.header().offset(region)),
            reason: one_line(error),
            ..Self::default()
        }
    }

    /// The finding as a line of text.
    fn sentence(&self) -> String {
        let mut places = Vec::new();
        places.extend(self.column.as_ref().map(|name| format!("column {name:?}")));
        places.extend(self.block.map(|block| format!("block {block}")));
        places.extend(self.metadata.as_ref().map(|kind| format!("metadata {kind:?}")));
        places.extend(self.region.clone());
        let mut line = self.kind.to_owned();
        if !places.is_empty() {
            line.push_str(&format!(" in {}", places.join(", ")));
        }
        if let Some(offset) = self.offset {
            line.push_str(&format!(" at byte {offset}"));
        }
        one_line(&format_args!("{line}: {}", self.reason))
    }
}

/// Findings as they come: printed at once, or kept for the object in the end.
pub(super) struct Findings<'a> {
    pub(super) stdout: &'a mut Stdout,
    pub(super) json: bool,
    pub(super) listed: Vec<Listed>,
    pub(super) damaged: u64,
    pub(super) warnings: u64,
    pub(super) first: Option<String>,
}

impl Findings<'_> {
    /// Prints or keeps a finding.
    pub(super) fn add(&mut self, finding: Listed) -> Result<(), Failure> {
        if finding.kind == WARNING {
            self.warnings += 1;
        } else {
            self.damaged += 1;
            self.first.get_or_insert_with(|| finding.sentence());
        }
        if !self.json {
            return self.stdout.line(&finding.sentence());
        }
        if self.listed.len() < MAX_LISTED {
            self.listed.push(finding);
        }
        Ok(())
    }
}
