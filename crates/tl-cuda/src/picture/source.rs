//! The components of an image, and its coefficients or entropy-coded rows.

use tl_decode::{EntropyComponent, EntropyRow, EntropyRows, JpegComponent, JpegParts, Upsampling};
use tl_simd::resample::Rect;

use super::descriptor::{Codes, Component, Descriptor, Entropy, Row, UNKNOWN};
use super::{aligned, append, begin};

/// Bytes of a block of coefficients.
pub(super) const BLOCK_BYTES: u64 = 128;

/// Samples of a row of a plane are multiples of this many.
const STRIDE_UNIT: u32 = 16;

/// Samples of a side of a component, at most: more than files have, and few enough that bytes are
/// counted without overflow.
const MAX_SIDE: u32 = 1 << 20;

/// Bytes of the rows that a warp decodes, and rows, at most. Measured on an H200 with 256 photographs,
/// 6,589 rows of up to 3,400 bytes: 4,000 bytes take 1.29 ms, 6,000 1.17, 9,000 1.09, 14,000 1.06;
/// three rows in every warp 1.06, four 1.17.
const WARP_BYTES: u32 = 14_000;
const MAX_LANES: u32 = 8;

/// Bytes that are copied for `parts`, without the tables of the resize.
pub(super) fn payload_bytes(parts: &JpegParts) -> u64 {
    let coefficients = &parts.coefficients;
    let sparse = size_of_val(&coefficients.blocks[..]) + size_of_val(&coefficients.rows[..]);
    let entropy = size_of_val(&parts.entropy.rows[..]) + parts.entropy.bytes.len();
    sparse as u64 + entropy as u64
}

/// A component without its places.
pub(super) fn component(from: &JpegComponent) -> Component {
    let side = u32::from(from.scale.eighths());
    let Rect { x, y, width, height } = from.blocks;
    let edge = |blocks: u32| {
        let samples = blocks.checked_mul(side).filter(|samples| *samples <= MAX_SIDE);
        samples.expect("the side of a component")
    };
    let end = |start: u32, blocks: u32| edge(start.saturating_add(blocks));
    let [left, top] = [x, y].map(edge);
    let right = end(x, width).min(from.size.0);
    let bottom = end(y, height).min(from.size.1);
    assert!(left < right && top < bottom, "{:?} leaves the component", from.blocks);
    let stride = edge(width).next_multiple_of(STRIDE_UNIT);
    let [filter, across, down] = match from.upsampling {
        Upsampling::None | Upsampling::Fractional => [0, 1, 1],
        Upsampling::H2V1 => [1, 2, 1],
        Upsampling::H1V2 => [2, 1, 2],
        Upsampling::H2V2 => [3, 2, 2],
        Upsampling::Replicate(across, down) => [0, across, down],
    };
    assert!(across > 0 && down > 0, "samples are repeated");
    Component {
        columns: width,
        rows: height,
        side,
        stride,
        left,
        top,
        right,
        bottom,
        filter,
        across,
        down,
        ..Component::default()
    }
}

pub(super) fn blocks(component: &Component) -> u64 {
    u64::from(component.columns) * u64::from(component.rows)
}

pub(super) fn plane_bytes(component: &Component) -> u64 {
    let rows = u64::from(component.rows) * u64::from(component.side);
    aligned(u64::from(component.stride).saturating_mul(rows))
}

/// Refuses a component of `size` samples that lacks some of those of which these pixels are made.
pub(super) fn require(component: &Component, size: (u32, u32), pixels: Rect) {
    let span = |start: u32, count: u32, step: u32, margin: u32, size: u32| {
        let first = (start / step).saturating_sub(margin);
        let last = ((start + count - 1) / step).saturating_add(margin).min(size - 1);
        [first, last]
    };
    let Component { filter, across, down, left, top, right, bottom, .. } = *component;
    let Rect { x, y, width, height } = pixels;
    let [first, last] = span(x, width, across, filter & 1, size.0);
    assert!(left <= first && last < right, "columns {first} to {last} of {left} to {right}");
    let [first, last] = span(y, height, down, filter >> 1, size.1);
    assert!(top <= first && last < bottom, "rows {first} to {last} of {top} to {bottom}");
}

/// Writes quantizers, and coefficients or entropy-coded rows.
pub(super) fn write(made: &mut Descriptor, payload: &mut Vec<u8>, parts: &JpegParts) {
    for (to, component) in made.components.iter_mut().zip(&parts.components) {
        to.quantizer = append(payload, &component.quantizer[..]);
    }
    if parts.entropy.rows.is_empty() {
        write_coefficients(made, payload, parts);
    } else {
        write_entropy(made, payload, parts);
    }
}

fn write_coefficients(made: &mut Descriptor, payload: &mut Vec<u8>, parts: &JpegParts) {
    made.is_sparse = 1;
    let there = &parts.coefficients;
    let components = &mut made.components[..parts.components.len()];
    let count: u64 = components.iter().map(blocks).sum();
    assert_eq!(there.blocks.len() as u64, count, "one entry for each block");
    let is_inside = |&block: &u32| {
        let end = (block >> 8) as usize + (block & 0xFF).count_ones() as usize;
        end <= there.rows.len()
    };
    assert!(there.blocks.iter().all(is_inside), "the rows of every block are there");
    let mut at = append(payload, &there.blocks[..]);
    for component in components {
        component.blocks = at;
        at += 4 * component.columns * component.rows;
    }
    made.rows = append(payload, &there.rows[..]);
}

fn write_entropy(made: &mut Descriptor, payload: &mut Vec<u8>, parts: &JpegParts) {
    let rows = &parts.entropy;
    let mcus = rows.skipped.checked_add(rows.wanted).expect("MCUs of a row");
    assert!(mcus <= rows.mcus_per_row, "{mcus} MCUs of {}", rows.mcus_per_row);
    assert_eq!(rows.components.len(), parts.components.len(), "components of the scan");
    let count = |length: usize| u32::try_from(length).expect("checked before");
    let slots = slots(&mut made.components[..parts.components.len()], rows);
    let slot_count = count(slots.len());
    let slots = append(payload, &slots[..]);
    let codes = begin(payload);
    for code in &rows.codes {
        let &tl_decode::HuffmanCodes { limits, offsets, symbols } = code;
        payload.extend_from_slice(zerocopy::IntoBytes::as_bytes(&Codes {
            limits,
            offsets,
            symbols,
        }));
    }
    let row_place = begin(payload);
    for row in &rows.rows {
        let row = row_of(row, rows.bytes.len());
        payload.extend_from_slice(zerocopy::IntoBytes::as_bytes(&row));
    }
    made.entropy = Entropy {
        slots,
        slot_count,
        rows: row_place,
        row_count: count(rows.rows.len()),
        codes,
        code_count: count(rows.codes.len()),
        bytes: append(payload, &rows.bytes[..]),
        skipped: rows.skipped,
        wanted: rows.wanted,
        is_to_end: (mcus == rows.mcus_per_row).into(),
        lanes: lanes(rows),
        ..made.entropy
    };
}

/// Rows that a warp decodes. Its threads delay each other where they branch apart, and the longest row
/// of a batch decides when it is done, so long rows have few of them.
fn lanes(rows: &EntropyRows) -> u32 {
    let longest = rows.rows.iter().map(|row| row.len).max().unwrap_or(0);
    (WARP_BYTES / longest.max(1)).clamp(1, MAX_LANES)
}

/// The blocks of an MCU, each with the number of its component in the scan and its codes. Sets the
/// places of the components there.
fn slots(components: &mut [Component], rows: &EntropyRows) -> Vec<u32> {
    let mut slots = Vec::new();
    for (number, component) in (0..).zip(&rows.components) {
        let &EntropyComponent { component, across, down, dc, ac } = component;
        assert!(dc < rows.codes.len() && ac < rows.codes.len(), "codes {dc} and {ac}");
        let of = &mut components[component];
        let width = u64::from(across) * u64::from(rows.wanted);
        let height = u64::from(down) * rows.rows.len() as u64;
        let is_filled = width == u64::from(of.columns) && height == u64::from(of.rows);
        assert!(is_filled, "{width}x{height} blocks of {}x{}", of.columns, of.rows);
        of.blocks = u32::try_from(slots.len()).expect("blocks of an MCU");
        of.mcu_across = across;
        of.mcu_down = down;
        let code = |code: usize| u8::try_from(code).expect("one of a few codes");
        let slot = u32::from_le_bytes([number, code(dc), code(ac), 0]);
        slots.extend((0..across * down).map(|_| slot));
    }
    assert!(components.iter().all(|component| component.mcu_across > 0), "components of the scan");
    slots
}

fn row_of(row: &EntropyRow, bytes: usize) -> Row {
    let EntropyRow { at, len, bit, predictors, end } = *row;
    let room = u64::from(at) + u64::from(len).next_multiple_of(4);
    let fits = at % 4 == 0 && bit < 8 && room <= bytes as u64 && len < u32::MAX / 8;
    assert!(fits, "{len} bytes at {at} of {bytes}, from bit {bit}");
    let padded = |[first, second, third]: [i16; 3]| [first, second, third, 0];
    Row {
        at,
        len,
        bit,
        end: end.map_or(UNKNOWN, |end| end.position),
        predictors: padded(predictors),
        end_predictors: padded(end.map(|end| end.predictors).unwrap_or_default()),
    }
}
