//! Saves what is good in a damaged file: a new file of the same kind with every sample that can
//! still be read and checked, and a list of what is lost.

mod header;
mod tar;
mod tbl;

use std::fmt::{self, Display};
use std::path::Path;

use crate::convert::{ConvertError, Prepare};
use crate::error::ReadError;
use crate::source::Source;
use crate::write_error::WriteError;

/// Options of a repair.
#[derive(Clone, Copy, Debug)]
pub struct RepairOptions {
    /// Wait until the new file is on the disk before it gets its name.
    pub sync: bool,
    /// Replace a file of that name.
    pub overwrite: bool,
}

/// An event of a repair.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum RepairEvent<'a> {
    /// Something outside the samples is damaged; the samples may all be well.
    Damage {
        /// The defect.
        reason: &'a (dyn Display + 'a),
    },
    /// A sample is lost, or a member of an archive.
    Lost {
        /// Its number in the damaged file; in an archive the number of the member.
        index: u64,
        /// Its name, as far as one can be read.
        key: Option<&'a [u8]>,
        /// The offset of its bytes, or of its header in an archive, if that can be read.
        offset: Option<u64>,
        /// The reason.
        reason: &'a (dyn Display + 'a),
    },
    /// A run of samples is lost without a trace of each.
    LostRun {
        /// The number of the first.
        first: u64,
        /// How many the file claims to have had.
        count: u64,
        /// The reason.
        reason: &'a (dyn Display + 'a),
    },
}

impl fmt::Debug for RepairEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damage { reason } => write!(f, "Damage({reason})"),
            Self::Lost { index, reason, .. } => write!(f, "Lost({index}, {reason})"),
            Self::LostRun { first, count, reason } => {
                write!(f, "LostRun({first}, {count}, {reason})")
            }
        }
    }
}

/// A summary of the samples that a repair saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairSummary {
    /// Samples in the new file, or members of the new archive.
    pub kept: u64,
    /// Samples that are lost.
    pub lost: u64,
    /// Kept samples whose index entry had to be worked out anew.
    pub restored: u64,
    /// Kept samples without the sidecar fields they had.
    pub without_fields: u64,
    /// Kept samples without the row index they had, which can be made anew.
    pub without_row_index: u64,
    /// Kept samples without the name they had, because the list of names is damaged.
    pub without_name: u64,
    /// Kept samples without the label they had, because the list of labels is damaged.
    pub without_label: u64,
    /// Kept samples without the metadata blocks they had.
    pub without_metadata: u64,
    /// Names, labels, fields or other metadata may be missing, because the section is damaged.
    pub damaged_metadata: bool,
    /// Damage outside the samples.
    pub damaged_structures: u64,
    /// Kept samples of an archive whose label cannot be read. It is copied as it is.
    pub unreadable_labels: u64,
    /// The sample count was worked out from the index, and nothing in the header confirms it:
    /// samples may be lost without being counted.
    pub guessed_count: bool,
    /// The size of the new file; 0 if none was written.
    pub file_bytes: u64,
}

impl RepairSummary {
    /// Whether everything of the damaged file is in the new one and can be read there.
    pub fn is_complete(&self) -> bool {
        self.lost == 0
            && self.without_fields == 0
            && self.without_name == 0
            && self.without_label == 0
            && self.without_metadata == 0
            && !self.damaged_metadata
            && self.unreadable_labels == 0
            && !self.guessed_count
            && self.is_worth_writing()
    }

    /// Whether there is something to write: an empty file instead of a damaged one would
    /// hide that everything is lost.
    fn is_worth_writing(&self) -> bool {
        self.kept > 0 || (self.lost == 0 && self.damaged_structures == 0 && !self.guessed_count)
    }
}

/// Writes what is good in the file at `path` to `destination`, in the same format. If everything
/// in a damaged file is lost, `destination` is not written. A destination whose name says another
/// format is refused.
///
/// `prepare` measures samples of TBL files whose index cannot be trusted.
///
/// # Errors
/// [`ConvertError::Read`] if the file is neither a TBL file nor a TAR archive, or the system cannot
/// read it; [`ConvertError::Write`] if the new file cannot be written.
pub fn repair<P: Prepare>(
    path: &Path,
    destination: &Path,
    options: RepairOptions,
    prepare: P,
    on_event: &mut dyn FnMut(RepairEvent<'_>),
) -> Result<RepairSummary, ConvertError> {
    let source = Source::open(path)?;
    match header::recognise(&source)? {
        Some(version) => {
            check_extension(destination, "tbl")?;
            tbl::repair(&source, version, destination, options, prepare, on_event)
        }
        None => tar::repair(&source, destination, options, on_event),
    }
}

/// Refuses a destination whose extension is that of the other format.
fn check_extension(destination: &Path, fitting: &'static str) -> Result<(), WriteError> {
    let other = if fitting == "tar" { "tbl" } else { "tar" };
    let extension = destination.extension();
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case(other)) {
        let path = destination.to_owned();
        return Err(WriteError::OtherFormat { path, fitting });
    }
    Ok(())
}

/// An error of the system ends a repair; damage does not.
fn unless_damage(error: ReadError) -> Result<ReadError, ConvertError> {
    if error.is_damage() { Ok(error) } else { Err(error.into()) }
}
