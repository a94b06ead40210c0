//! The order in which our writers store blocks of the whole file. A damaged header makes a reader
//! skip a block, or end its walk over the blocks too early: the order shows that without a look at
//! the rest of the section.

use tbl_format::FormatError;
use tbl_format::extension::{Extension, ExtensionHeader, Integrity, SampleNames};
use tbl_format::metadata::{Block, BlockHeader, MetadataType};

/// The place of a block. The first five exist once at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Integrity,
    ClassNames,
    Labels,
    Checksums,
    Dictionary,
    SampleNames,
    RowIndexes,
    /// Blocks of applications and of later versions.
    Others,
}

/// The order of the blocks so far. Only sections that start with an integrity block have one.
#[derive(Debug, Default)]
pub(super) struct Order {
    last: Option<Place>,
}

/// The use of a block for which [`Order::check`] found no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It stands where it can stand.
    Sound,
    /// It looks like a sample name block with a damaged header: the CRC-32C of the section decides.
    Suspect,
}

/// The size of the integrity block with both headers.
const INTEGRITY_BYTES: usize = BlockHeader::SIZE + ExtensionHeader::SIZE + Integrity::SIZE;

impl Order {
    /// Checks that a block of the whole file stands where our writers put it.
    pub(super) fn check(
        &mut self,
        block: &Block<'_>,
        extension: Option<&Extension<'_>>,
    ) -> Result<Trust, FormatError> {
        let (place, what) = match extension {
            Some(Extension::Integrity(_)) => (Place::Integrity, "integrity block"),
            Some(Extension::ClassNames(_)) => (Place::ClassNames, "class name block"),
            Some(Extension::Labels(_)) => (Place::Labels, "label list"),
            Some(Extension::Checksums(_)) => (Place::Checksums, "checksum list"),
            Some(Extension::Dictionary(_)) => (Place::Dictionary, "dictionary"),
            Some(Extension::SampleNames(_)) => (Place::SampleNames, "sample name block"),
            Some(Extension::RowIndexes(_)) => (Place::RowIndexes, "row index block"),
            _ => (Place::Others, "unknown block"),
        };
        let Some(last) = self.last else {
            // Nothing is known of the order in files without an integrity block at the front.
            if place == Place::Integrity && block.offset == 0 {
                self.last = Some(place);
            }
            return Ok(Trust::Sound);
        };
        self.last = Some(last.max(place));
        let is_cut = match extension {
            Some(Extension::SampleNames(names)) => !names.is_exact(),
            _ => false,
        };
        let is_early = place == Place::Others && last < Place::Checksums;
        let is_late = place < last || (place == last && place <= Place::Dictionary);
        if is_cut || is_early || is_late {
            return Err(FormatError::OutOfOrder { what });
        }
        let body = block.data.get(ExtensionHeader::SIZE..).filter(|_| extension.is_none());
        let names = body.and_then(|body| SampleNames::parse(body).ok());
        if names.is_some_and(|names| !names.is_empty() && names.is_exact()) {
            return Ok(Trust::Suspect);
        }
        Ok(Trust::Sound)
    }

    /// Checks that the first block other than custom blocks of the whole file is not one of ours
    /// with a damaged header.
    pub(super) fn check_end(block: &Block<'_>) -> Result<(), FormatError> {
        let is_of_file = block.sample_index == BlockHeader::WHOLE_FILE;
        let is_either = is_of_file || block.kind == MetadataType::Custom;
        if is_either && Extension::is_of_file(block.data) {
            return Err(FormatError::OutOfOrder { what: "block of the whole file" });
        }
        Ok(())
    }

    /// Checks that no block is missing that our writers always store, and that the integrity block
    /// is undamaged and covers the whole section.
    pub(super) fn check_whole(&self, section: &[u8]) -> Result<(), FormatError> {
        let rest = section.len().saturating_sub(INTEGRITY_BYTES) as u64;
        let (front, _) = section.split_at(section.len().min(INTEGRITY_BYTES));
        let covered = front.last_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let is_covered = section.len() >= INTEGRITY_BYTES && covered == Some(rest);
        let Some(last) = self.last else {
            // The number of bytes shows that the first block was an integrity block. Our writers store
            // others after it: zeros at the end of a section are no such number.
            let was_ours = is_covered && rest > 0;
            let what = "integrity block";
            return if was_ours { Err(FormatError::OutOfOrder { what }) } else { Ok(()) };
        };
        Extension::verify(front.get(BlockHeader::SIZE..).unwrap_or_default())?;
        if !is_covered {
            let what = "metadata section";
            let need = covered.unwrap_or(u64::MAX);
            let have = rest;
            return Err(FormatError::Truncated { what, need, have });
        }
        if last < Place::Checksums {
            return Err(FormatError::Missing { what: "checksum list" });
        }
        Ok(())
    }
}
