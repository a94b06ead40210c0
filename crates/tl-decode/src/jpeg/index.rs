//! Row indexes: where each MCU row of a sequential scan begins, so that a decoder can start at any
//! of them. `docs/format.md` has the bytes.

use super::scan::{Damage, MAX_COMPONENTS, Scan};
use crate::error::{DecodeError, Defect};
use crate::format::Format;

const VERSION: u8 = 1;

/// Version, components, rows, where the data begins and ends, the checksum of the file.
const FACTS_BYTES: usize = 16;
const CHECKSUM_BYTES: usize = 4;
const HEADER_BYTES: usize = FACTS_BYTES + CHECKSUM_BYTES;
const POSITION_BYTES: usize = 4;
const PREDICTOR_BYTES: usize = 2;

/// The start of a row.
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
/// It holds checksums of itself and of the file, so that a damaged one is an error, and so is one
/// of any other file. A forged index with right checksums decides which pixels come of it,
/// and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowIndex<'a> {
    components: usize,
    rows: u32,
    /// Offsets in the file of the first entropy-coded byte and of what is after the last.
    data: (u32, u32),
    /// The CRC-32 of the file.
    file_crc32: u32,
    /// The rows' entries.
    entries: &'a [u8],
}

impl<'a> RowIndex<'a> {
    /// A view of the bytes of a row index.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] for bytes that are not a row index.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Some((header, entries)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Err(truncated(HEADER_BYTES, bytes.len()));
        };
        let (facts, stored) = header.split_at(FACTS_BYTES);
        let &[version, components, rows_low, rows_high, ref numbers @ ..] = header;
        let value = |what, found| Defect::Value { format: Format::Jpeg, what, found };
        if version != VERSION {
            return Err(value("version of a row index", version.into()).into());
        }
        if !(1..=MAX_COMPONENTS).contains(&components.into()) {
            return Err(value("number of components in a row index", components.into()).into());
        }
        let components = usize::from(components);
        let rows = u16::from_le_bytes([rows_low, rows_high]);
        let need = usize::from(rows) * entry_bytes(components);
        if entries.len() != need {
            return Err(truncated(HEADER_BYTES + need, bytes.len()));
        }
        let computed = own_crc32(facts, entries);
        if stored != computed.to_le_bytes() {
            return Err(value("CRC-32 of a damaged row index", computed.into()).into());
        }
        let &[s0, s1, s2, s3, e0, e1, e2, e3, f0, f1, f2, f3, _, _, _, _] = numbers;
        let data = (u32::from_le_bytes([s0, s1, s2, s3]), u32::from_le_bytes([e0, e1, e2, e3]));
        let file_crc32 = u32::from_le_bytes([f0, f1, f2, f3]);
        Ok(Self { components, rows: rows.into(), data, file_crc32, entries })
    }

    /// Checks that the index was built from `file`, whose only scan is `scan`.
    pub(super) fn check(&self, scan: &Scan, file: &[u8]) -> Result<(), Damage> {
        let fits = self.rows == scan.mcu_rows
            && self.components == scan.count
            && self.data.0 as usize == scan.data_at
            && self.file_crc32 == crc32fast::hash(file);
        if fits { Ok(()) } else { Err(Damage::at("row index of another file", scan.data_at)) }
    }

    /// The start of row `row`.
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

    /// The end of row `row` in `file`, after the last byte that has bits of it.
    pub(super) fn row_end(&self, row: u32, file: &[u8]) -> usize {
        let from = self.data.0 as usize;
        let to = self.data.1 as usize;
        let end = match self.row(row + 1) {
            Some(next) if next.bit() == 0 => from + next.byte(),
            Some(next) => {
                let at = from + next.byte();
                // Fill bytes and a stuffed zero belong to a byte of 0xFF.
                let rest = file.get(at..).unwrap_or_default();
                at + rest.iter().take_while(|&&byte| byte == 0xFF).count() + 1
            }
            None => to,
        };
        end.min(file.len())
    }
}

fn entry_bytes(components: usize) -> usize {
    POSITION_BYTES + components * PREDICTOR_BYTES
}

/// The CRC-32 of an index without the field that holds it.
fn own_crc32(facts: &[u8], entries: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(facts);
    hasher.update(entries);
    hasher.finalize()
}

fn truncated(need: usize, have: usize) -> DecodeError {
    let what = "row index";
    let need = need as u64;
    let have = have as u64;
    Defect::Truncated { format: Format::Jpeg, what, offset: 0, need, have }.into()
}

/// Puts a row index together in a caller's buffer.
#[derive(Debug)]
pub(super) struct RowIndexBuilder<'a> {
    out: &'a mut Vec<u8>,
    /// Its start in `out`.
    from: usize,
    components: usize,
    /// Whether all numbers were small enough.
    fits: bool,
}

impl<'a> RowIndexBuilder<'a> {
    /// Begins the index of a scan after what `out` holds.
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
        // The end of the data and the checksums come last.
        out.resize(from + HEADER_BYTES, 0);
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

    /// Ends the index of a scan of `file` with `data_end` after its data. `false`, and nothing
    /// added, for a file that is too large for one.
    pub(super) fn finish(self, file: &[u8], data_end: usize) -> bool {
        let Self { out, from, fits, .. } = self;
        let index = out.get_mut(from..).and_then(|index| index.split_at_mut_checked(HEADER_BYTES));
        let (Ok(end), Some((header, entries)), true) = (u32::try_from(data_end), index, fits)
        else {
            out.truncate(from);
            return false;
        };
        header[8..12].copy_from_slice(&end.to_le_bytes());
        header[12..FACTS_BYTES].copy_from_slice(&crc32fast::hash(file).to_le_bytes());
        let own = own_crc32(&header[..FACTS_BYTES], entries);
        header[FACTS_BYTES..].copy_from_slice(&own.to_le_bytes());
        true
    }
}
