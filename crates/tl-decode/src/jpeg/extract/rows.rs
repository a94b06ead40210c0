//! The entropy-coded rows of a region, cut out of the file by a row index.

use tl_simd::resample::Rect;

use super::described;
use crate::error::DecodeError;
use crate::jpeg::entropy_data::{EntropyData, append, unstuff};
use crate::jpeg::geometry::Geometry;
use crate::jpeg::huffman::Codes;
use crate::jpeg::index::{RowIndex, RowStart};
use crate::jpeg::parts::{EntropyComponent, EntropyRow, EntropyRowEnd, EntropyRows, JpegComponent};
use crate::jpeg::request::JpegRequest;
use crate::jpeg::scan::{
    Damage, HuffmanSpecs, MAX_COMPONENTS, OnDamaged, Scan, ScanComponent, words,
};
use crate::jpeg::scans::Opened;
use crate::limits::Limits;

/// Rows begin at multiples of this many bytes.
const ALIGNMENT: usize = 4;

/// Zero bytes after a row, at the least.
const ZEROS: usize = 8;

/// Bytes of a row that are not of the file alone: one that it shares with the next, zeros and those
/// in front of the next multiple.
const MOST_SPARE: usize = 1 + ZEROS + ALIGNMENT - 1;

/// The index by which the image is cut into rows; `None` for one that has to be decoded.
pub(super) fn index_of<'a>(opened: &Opened<'_>, request: &JpegRequest<'a>) -> Option<RowIndex<'a>> {
    let scan = &opened.first_scan;
    let rows_are_whole = scan.restart_interval.is_multiple_of(scan.mcus_per_row);
    let fits = opened.is_one_scan() && request.on_damaged == OnDamaged::Error && rows_are_whole;
    request.index.filter(|_| fits)
}

/// The memory that is charged for the rows of an image.
#[derive(Clone, Copy)]
pub(super) struct Charge<'a> {
    pub(super) limits: &'a Limits,
    /// Bytes of the planes that the host needs. They are charged with its data, so that an image that is
    /// too large for the host has no rows.
    pub(super) plane_bytes: u64,
}

/// Cuts the rows of `geometry` out of an image.
pub(super) fn cut(
    opened: &Opened<'_>,
    index: &RowIndex<'_>,
    geometry: &Geometry,
    charge: Charge<'_>,
    components: &mut Vec<JpegComponent>,
    out: &mut EntropyRows,
) -> Result<(), DecodeError> {
    let scan = &opened.first_scan;
    let file = opened.bytes;
    for (number, component) in geometry.components().iter().enumerate() {
        let quantizer = opened.quantizer(number)?;
        components.push(described(component, Rect::default(), &quantizer));
    }
    let window = geometry.window(scan);
    let rows = window.rows.len();
    let data = file.len().saturating_sub(scan.data_at);
    let most_bytes = data + rows * MOST_SPARE;
    let of_rows = rows * size_of::<EntropyRow>();
    let of_host = charge.plane_bytes.saturating_add(EntropyData::memory(data));
    charge.limits.charge_working(EntropyData::memory(most_bytes + of_rows).max(of_host))?;
    index.check(scan, file)?;
    take_codes(scan, &opened.reader.tables.sequential(), out)?;

    out.mcus_per_row = scan.mcus_per_row;
    out.skipped = window.columns.start;
    out.wanted = window.columns.end - window.columns.start;
    for part in scan.components() {
        components[part.component].blocks = Rect {
            x: window.columns.start * part.across,
            y: window.rows.start * part.down,
            width: out.wanted * part.across,
            height: (window.rows.end - window.rows.start) * part.down,
        };
    }
    out.rows.reserve_exact(rows);
    for row in window.rows {
        let cut = cut_row(scan, index, file, row, most_bytes, &mut out.bytes);
        out.rows.push(cut.ok_or(Damage::at(words::WRONG_INDEX, scan.data_at))?);
    }
    Ok(())
}

/// Takes the Huffman codes of a scan's components, each once.
fn take_codes(scan: &Scan, specs: &HuffmanSpecs<'_>, out: &mut EntropyRows) -> Result<(), Damage> {
    let mut dc_places = [None; 4];
    let mut ac_places = [None; 4];
    for part in scan.components() {
        let [dc, ac] = specs.of(part).ok_or(Damage::at(words::NO_TABLE, scan.data_at))?;
        let mut take = |known: &mut Option<usize>, codes: &dyn Fn() -> Option<Codes>| {
            if let Some(place) = *known {
                return Ok(place);
            }
            let codes = codes().ok_or(Damage::at(words::BAD_TABLE, scan.data_at))?;
            out.codes.push(codes.into());
            Ok(*known.insert(out.codes.len() - 1))
        };
        let dc = take(&mut dc_places[usize::from(part.dc)], &|| Codes::of_dc(&dc))?;
        let ac = take(&mut ac_places[usize::from(part.ac)], &|| Codes::new(&ac))?;
        let &ScanComponent { component, across, down, .. } = part;
        out.components.push(EntropyComponent { component, across, down, dc, ac });
    }
    Ok(())
}

/// Adds the data of a row to `bytes`, which are `most` in all at the most; `None` for an index whose
/// places are not in order.
fn cut_row(
    scan: &Scan,
    index: &RowIndex<'_>,
    file: &[u8],
    row: u32,
    most: usize,
    bytes: &mut Vec<u8>,
) -> Option<EntropyRow> {
    let start = index.row(row)?;
    let next = index.row(row + 1);
    // Rows in order share no more than a byte, so that all of them fit.
    if next.is_some_and(|next| next.position < start.position) {
        return None;
    }
    let at = bytes.len();
    unstuff(&file[..index.row_end(row, file)], scan.data_at + start.byte(), bytes, most, |_, _| {});
    let len = bytes.len() - at;
    let padded = (len + ZEROS).next_multiple_of(ALIGNMENT);
    append(bytes, &[0; ZEROS + ALIGNMENT][..padded - len], most);
    let interval_rows = scan.restart_interval / scan.mcus_per_row;
    let is_before_marker = interval_rows > 0 && (row + 1).is_multiple_of(interval_rows);
    let end = match next.filter(|_| !is_before_marker) {
        Some(next) => {
            // The data ends with the byte in which the next row begins, or in front of it.
            let position = (len * 8).checked_sub((8 - next.bit()) % 8)?;
            let position = u32::try_from(position).ok()?;
            Some(EntropyRowEnd { position, predictors: first_three(&next) })
        }
        None => None,
    };
    Some(EntropyRow {
        at: u32::try_from(at).ok()?,
        len: u32::try_from(len).ok()?,
        bit: start.position % 8,
        predictors: first_three(&start),
        end,
    })
}

/// The predictors of three components or fewer.
fn first_three(start: &RowStart) -> [i16; MAX_COMPONENTS - 1] {
    let [first, second, third, _] = start.predictors;
    [first, second, third]
}
