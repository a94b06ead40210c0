//! The tables that segments before and between the scans define (ITU-T T.81 B.2.4).

use super::marker::{self, Segment};
use super::scan::{HuffmanSpec, HuffmanSpecs};
use super::standard;
use super::zigzag::NATURAL;
use crate::error::DecodeError;

/// A quantisation table, row by row.
pub(super) type Quantizer = [u16; 64];

/// The tables in force at some place in the file.
#[derive(Clone, Debug)]
pub(super) struct Tables<'a> {
    pub(super) quantizers: [Option<Quantizer>; 4],
    pub(super) huffman: HuffmanSpecs<'a>,
    /// MCUs between restart markers, 0 for none.
    pub(super) restart_interval: u16,
}

impl<'a> Tables<'a> {
    /// The tables at the start of a file: none.
    pub(super) fn initial() -> Self {
        Self { quantizers: [None; 4], huffman: HuffmanSpecs::default(), restart_interval: 0 }
    }

    /// The tables for sequential scans: those of annex K where a file has not defined its own, as the
    /// frames of motion JPEG do not.
    pub(super) fn sequential(&self) -> HuffmanSpecs<'a> {
        let HuffmanSpecs { dc, ac } = standard::SPECS;
        let or = |own: [Option<HuffmanSpec<'a>>; 4], standard: [Option<HuffmanSpec<'a>>; 4]| {
            std::array::from_fn(|number| own[number].or(standard[number]))
        };
        HuffmanSpecs { dc: or(self.huffman.dc, dc), ac: or(self.huffman.ac, ac) }
    }

    /// Takes in a segment; those that define no tables are passed over.
    pub(super) fn read(&mut self, segment: &Segment<'a>) -> Result<(), DecodeError> {
        match segment.marker {
            marker::DQT => self.read_quantizers(segment),
            marker::DHT => self.read_huffman(segment),
            marker::DRI => self.read_restart_interval(segment),
            _ => Ok(()),
        }
    }

    fn read_quantizers(&mut self, segment: &Segment<'_>) -> Result<(), DecodeError> {
        let mut rest = segment.data;
        while let Some((&head, values)) = rest.split_first() {
            let wide = head >> 4 != 0;
            let need = if wide { 128 } else { 64 };
            let Some((values, after)) = values.split_at_checked(need) else {
                return Err(marker::truncated("quantiser", segment.at, need, values.len()));
            };
            let Some(table) = self.quantizers.get_mut(usize::from(head & 0x0F)) else {
                return Err(marker::value(
                    "number of a quantiser",
                    (head & 0x0F).into(),
                    segment.at,
                ));
            };
            let table = table.insert([0; 64]);
            if wide {
                for (&at, &value) in NATURAL.iter().zip(values.as_chunks().0) {
                    table[usize::from(at)] = u16::from_be_bytes(value);
                }
            } else {
                for (&at, &value) in NATURAL.iter().zip(values) {
                    table[usize::from(at)] = value.into();
                }
            }
            rest = after;
        }
        Ok(())
    }

    fn read_huffman(&mut self, segment: &Segment<'a>) -> Result<(), DecodeError> {
        const HEAD: usize = 17;
        let mut rest = segment.data;
        while let Some((&head, body)) = rest.split_first() {
            let Some((counts, body)) = body.split_first_chunk::<16>() else {
                return Err(marker::truncated("Huffman table", segment.at, HEAD, rest.len()));
            };
            let total = counts.iter().map(|&count| usize::from(count)).sum::<usize>();
            if total > 256 {
                return Err(marker::value(
                    "symbol count of a Huffman table",
                    total as u64,
                    segment.at,
                ));
            }
            let Some((values, after)) = body.split_at_checked(total) else {
                return Err(marker::truncated("Huffman symbols", segment.at, total, body.len()));
            };
            let of_class = match head >> 4 {
                0 => &mut self.huffman.dc,
                1 => &mut self.huffman.ac,
                class => {
                    return Err(marker::value(
                        "class of a Huffman table",
                        class.into(),
                        segment.at,
                    ));
                }
            };
            let Some(table) = of_class.get_mut(usize::from(head & 0x0F)) else {
                return Err(marker::value(
                    "number of a Huffman table",
                    (head & 0x0F).into(),
                    segment.at,
                ));
            };
            *table = Some(HuffmanSpec { counts, values });
            rest = after;
        }
        Ok(())
    }

    fn read_restart_interval(&mut self, segment: &Segment<'_>) -> Result<(), DecodeError> {
        let &[high, low] = segment.data else {
            return Err(marker::truncated("restart interval", segment.at, 2, segment.data.len()));
        };
        self.restart_interval = u16::from_be_bytes([high, low]);
        Ok(())
    }
}
