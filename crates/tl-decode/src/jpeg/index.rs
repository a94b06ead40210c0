//! Row indexes: where each MCU row of a sequential scan begins, so that a decoder can start at any
//! of them. `docs/format.md` has the bytes.

use super::scan::{Damage, MAX_COMPONENTS, Scan};
use crate::error::{DecodeError, Defect};
use crate::format::Format;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 12;
const POSITION_BYTES: usize = 4;
const PREDICTOR_BYTES: usize = 2;

/// Where a row begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowStart {
    /// Bits from the first entropy-coded byte, with stuffed bytes and markers.
    pub(super) position: u32,
    /// The DC coefficients in front of it, by component of the scan.
    pub(super) predictors: [i16; MAX_COMPONENTS],
}

impl RowStart {
    /// Bytes from the first entropy-coded one.
    pub(super) fn byte(&self) -> usize {
        (self.position / 8) as usize
    }

    /// Bits of the byte that belong to the row before.
    pub(super) fn bit(&self) -> usize {
        (self.position % 8) as usize
    }
}

/// The row index of a JPEG file, as [`JpegDecoder::row_index`](super::JpegDecoder) makes it.
///
/// It is a statement about a file, checked as far as neighbouring rows tell: those that are decoded
/// with its help have to begin and end where it says, with its predictors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowIndex<'a> {
    components: usize,
    rows: u32,
    /// Offsets in the file of the first entropy-coded byte and of what is behind the last.
    data: (u32, u32),
    /// The rows' entries.
    entries: &'a [u8],
}

impl<'a> RowIndex<'a> {
    /// A view of the bytes of a row index.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for bytes that are none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((header, entries)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(truncated(HEADER_BYTES, bytes.len()));
        };
        let &[version, components, rows_low, rows_high, s0, s1, s2, s3, e0, e1, e2, e3] = header;
        let value =
            |what, found: u8| Defect::Value { format: Format::Jpeg, what, found: found.into() };
        if version != VERSION {
            return Err(value("version of a row index", version).into());
        }
        if !(1..=MAX_COMPONENTS).contains(&components.into()) {
            return Err(value("number of components in a row index", components).into());
        }
        let components = usize::from(components);
        let rows = u16::from_le_bytes([rows_low, rows_high]);
        let need = usize::from(rows) * entry_bytes(components);
        if entries.len() != need {
            return Err(truncated(HEADER_BYTES + need, bytes.len()));
        }
        let data = (u32::from_le_bytes([s0, s1, s2, s3]), u32::from_le_bytes([e0, e1, e2, e3]));
        Ok(Self { components, rows: rows.into(), data, entries })
    }

    /// Checks that the index can be one of this scan of `file`.
    pub(super) fn check(&self, scan: &Scan, file: &[u8]) -> Result<(), Damage> {
        let behind = file.get(self.data.1 as usize..).unwrap_or_default();
        let fits = self.rows == scan.mcu_rows
            && self.components == scan.count
            && self.data.0 as usize == scan.data_at
            && self.data.0 <= self.data.1
            && matches!(behind, [0xFF, marker, ..] if *marker != 0);
        if fits { Ok(()) } else { Err(Damage::at("row index of another file", scan.data_at)) }
    }

    /// Where row `row` begins.
    pub(super) fn row(&self, row: u32) -> Option<RowStart> {
        let bytes = entry_bytes(self.components);
        let entry = self.entries.get(row as usize * bytes..)?.get(..bytes)?;
        let (position, predictors) = entry.split_first_chunk()?;
        let mut start = RowStart { position: u32::from_le_bytes(*position), ..RowStart::default() };
        for (predictor, bytes) in start.predictors.iter_mut().zip(predictors.chunks_exact(2)) {
            *predictor = i16::from_le_bytes([bytes[0], bytes[1]]);
        }
        Some(start)
    }

    /// The offset in the file of what is behind the entropy-coded data.
    pub(super) fn data_end(&self) -> usize {
        self.data.1 as usize
    }
}

fn entry_bytes(components: usize) -> usize {
    POSITION_BYTES + components * PREDICTOR_BYTES
}

fn truncated(need: usize, have: usize) -> DecodeError {
    let (what, need, have) = ("row index", need as u64, have as u64);
    Defect::Truncated { format: Format::Jpeg, what, offset: 0, need, have }.into()
}

/// Puts a row index together in a caller's buffer.
#[derive(Debug)]
pub(super) struct RowIndexBuilder<'a> {
    out: &'a mut Vec<u8>,
    /// Where in `out` it begins.
    from: usize,
    components: usize,
    /// Whether all numbers were small enough.
    fits: bool,
}

impl<'a> RowIndexBuilder<'a> {
    /// Begins the index of a scan behind what `out` holds.
    pub(super) fn new(scan: &Scan, out: &'a mut Vec<u8>) -> Self {
        let from = out.len();
        let components = scan.components().len();
        let rows = u16::try_from(scan.mcu_rows);
        let start = u32::try_from(scan.data_at);
        let fits = rows.is_ok() && start.is_ok();
        out.push(VERSION);
        out.push(components.to_le_bytes()[0]);
        out.extend_from_slice(&rows.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&start.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        Self { out, from, components, fits }
    }

    /// Adds the next row, which begins in bit `bit` of byte `byte` of the entropy-coded data.
    pub(super) fn push(&mut self, byte: usize, bit: usize, predictors: &[i16]) {
        let position = byte.checked_mul(8).and_then(|bits| u32::try_from(bits | bit).ok());
        self.fits &= position.is_some();
        let position = position.unwrap_or(0);
        self.out.extend_from_slice(&position.to_le_bytes());
        for predictor in &predictors[..self.components] {
            self.out.extend_from_slice(&predictor.to_le_bytes());
        }
    }

    /// Ends the index of a scan with `data_end` behind its data. `false`, and nothing added, for a
    /// file that is too large for one.
    pub(super) fn finish(self, data_end: usize) -> bool {
        let end = u32::try_from(data_end);
        match (end, self.out.get_mut(self.from + 8..self.from + HEADER_BYTES)) {
            (Ok(end), Some(field)) if self.fits => field.copy_from_slice(&end.to_le_bytes()),
            _ => {
                self.out.truncate(self.from);
                return false;
            }
        }
        true
    }
}
