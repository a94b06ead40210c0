//! Parameter sets and headers of slices, which say what a decoder will hold before it does.

use rusty_h265::bits::BitReader;
use rusty_h265::nal::{NalHeader, unescape};
use rusty_h265::ps::{Pps, Sps, parse_pps, parse_sps};
use rusty_h265::slice::{SliceHeader, parse_slice_header};

/// Bytes of a NAL unit that the longest header of a slice fits in: 20 columns of tiles with a
/// substream of each of 1056 rows have 21,120 entry points of at most four bytes.
const HEADER_BYTES: usize = 128 << 10;

/// Bytes that the decoder takes for a sample of a plane, whatever its bits.
const SAMPLE_BYTES: u64 = 2;

/// Bytes that a picture keeps of the motion of 16x16 samples.
const MOTION: u64 = 24;

/// Bytes of notes of a block of 4x4 samples of the picture that is decoded: its place, seven modes,
/// motion, and the strengths of two edges.
const BLOCK: u64 = 4 + 7 + 24 + 2;

/// Bytes of notes of 16x16 samples, the smallest of the largest blocks: slices, tiles, filters.
const LARGE_BLOCK: u64 = 128;

/// The active parameter sets.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    sequences: Vec<Sequence>,
    pictures: Vec<Pps>,
    /// The bytes of the parameters of the sequence that is decoded.
    active: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Sequence {
    bytes: Vec<u8>,
    sps: Sps,
}

impl Parameters {
    /// Takes the parameters of a sequence over from a NAL unit.
    pub(super) fn set_sequence(&mut self, unit: &[u8]) -> Result<(), String> {
        let sps = parse_sps(&payload(unit, usize::MAX)).map_err(|error| error.to_string())?;
        self.sequences.retain(|other| other.sps.id != sps.id);
        self.sequences.push(Sequence { bytes: unit.to_vec(), sps });
        Ok(())
    }

    /// Takes the parameters of pictures over from a NAL unit.
    pub(super) fn set_picture(&mut self, unit: &[u8]) -> Result<(), String> {
        let pps = parse_pps(&payload(unit, usize::MAX)).map_err(|error| error.to_string())?;
        self.pictures.retain(|other| other.id != pps.id);
        self.pictures.push(pps);
        Ok(())
    }

    /// Reads the header of a slice segment; `previous` is that of the slice before it.
    pub(super) fn slice(
        &self,
        unit: &[u8],
        kind: &NalHeader,
        previous: Option<&SliceHeader>,
    ) -> Result<SliceHeader, String> {
        let bytes = payload(unit, HEADER_BYTES);
        let sets = |id| self.sets(id);
        let mut reader = BitReader::new(&bytes);
        let header = parse_slice_header(&mut reader, kind, &sets, previous)
            .map_err(|error| error.to_string())?;
        let substreams = self.sets(header.pps_id).map_or(0, |(sps, pps)| {
            let rows = if pps.entropy_coding_sync_enabled {
                sps.pic_height_in_ctbs
            } else {
                pps.num_tile_rows
            };
            u64::from(rows) * u64::from(pps.num_tile_columns)
        });
        if header.num_substreams() as u64 > substreams {
            return Err(format!(
                "a slice with {} substreams of a picture with {substreams}",
                header.num_substreams()
            ));
        }
        Ok(header)
    }

    /// Takes the parameters of a slice as those of the sequence that it starts.
    pub(super) fn start_sequence(&mut self, header: &SliceHeader) -> Result<&Sps, String> {
        let id = self.sequence_id(header);
        let found = self.sequences.iter().find(|sequence| Some(sequence.sps.id) == id);
        let sequence = found.ok_or("a slice without parameters of its sequence")?;
        self.active = Some(sequence.bytes.clone());
        Ok(&sequence.sps)
    }

    /// The parameters of a slice inside a sequence, if they are those that the sequence started with.
    pub(super) fn same_sequence(&self, header: &SliceHeader) -> Option<&Sps> {
        let id = self.sequence_id(header);
        let sequence = self.sequences.iter().find(|sequence| Some(sequence.sps.id) == id)?;
        (self.active.as_ref() == Some(&sequence.bytes)).then_some(&sequence.sps)
    }

    fn sequence_id(&self, header: &SliceHeader) -> Option<u8> {
        self.sets(header.pps_id).map(|(sps, _)| sps.id)
    }

    fn sets(&self, picture_id: u8) -> Option<(&Sps, &Pps)> {
        let pps = self.pictures.iter().find(|pps| pps.id == picture_id)?;
        let sequence = self.sequences.iter().find(|sequence| sequence.sps.id == pps.sps_id)?;
        Some((&sequence.sps, pps))
    }
}

/// The content of a NAL unit after its header, of the first `limit` bytes.
fn payload(unit: &[u8], limit: usize) -> Vec<u8> {
    let bytes = unit.get(2..).unwrap_or_default();
    unescape(bytes.get(..limit).unwrap_or(bytes)).data
}

/// The name of what is not decoded, if the parameters ask for it.
pub(super) fn unsupported(sps: &Sps) -> Option<String> {
    let luma = sps.bit_depth_luma;
    let colour = sps.bit_depth_chroma;
    match sps.chroma_format_idc {
        0 => return Some("pictures without colours (4:0:0)".to_owned()),
        2 => return Some("colours of half the width (4:2:2)".to_owned()),
        3 => return Some("colours of the whole size (4:4:4)".to_owned()),
        _ => {}
    }
    if luma.max(colour) > 10 {
        return Some(format!("samples of {} bits, more than 10", luma.max(colour)));
    }
    (luma != colour).then(|| format!("{luma} bits of luma and {colour} of colour"))
}

/// How many pictures the decoder holds for others.
pub(super) fn reference_count(sps: &Sps) -> u32 {
    let layer = usize::from(sps.max_sub_layers_minus1);
    sps.ordering.get(layer).map_or(0, |ordering| ordering.max_dec_pic_buffering_minus1)
}

/// The bytes that pictures of a sequence take, with `held` pictures that were returned.
pub(super) fn memory(sps: &Sps, held: u64) -> u64 {
    let [width, height] = [sps.width, sps.height].map(|side| u64::from(side).next_multiple_of(64));
    let samples = width * height;
    // Two planes of colour have half the samples of luma.
    let planes = samples * SAMPLE_BYTES * 3 / 2;
    let picture = planes + samples / 256 * MOTION;
    // Those that others refer to, as many that stand for missing ones, and the current one; before
    // that, the one that was the current one.
    let pictures = 2 * u64::from(reference_count(sps)) + 2;
    // A filter copies luma.
    let notes = samples * SAMPLE_BYTES + samples / 16 * BLOCK + samples / 256 * LARGE_BLOCK;
    picture * pictures + planes * (1 + held) + notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Sps {
        Sps {
            width: 1920,
            height: 1088,
            chroma_format_idc: 1,
            bit_depth_luma: 8,
            bit_depth_chroma: 8,
            ..Sps::default()
        }
    }

    #[test]
    fn memory_is_that_of_all_planes() {
        let mut sps = parameters();
        sps.max_sub_layers_minus1 = 1;
        sps.ordering[1].max_dec_pic_buffering_minus1 = 4;
        // Ten pictures of three bytes a sample and 24 of 256 samples, one that is returned; two bytes a
        // sample, 37 of 16 samples and 128 of 256 samples.
        let samples = 1920 * 1088;
        let picture = samples * 3 + samples / 256 * 24;
        let notes = samples * 2 + samples / 16 * 37 + samples / 256 * 128;
        assert_eq!(memory(&sps, 0), picture * 10 + samples * 3 + notes);
        assert_eq!(memory(&sps, 17), memory(&sps, 0) + 17 * 3 * samples);
        sps.width = 8;
        sps.height = 8;
        assert_eq!(
            memory(&sps, 0),
            (4096 * 3 + 16 * 24) * 10 + 4096 * 3 + 4096 * 2 + 256 * 37 + 2048
        );
    }

    #[test]
    fn what_is_not_decoded_has_a_name() {
        assert_eq!(unsupported(&parameters()), None);
        let layout =
            |chroma_format_idc| unsupported(&Sps { chroma_format_idc, ..parameters() }).unwrap();
        assert_eq!(layout(0), "pictures without colours (4:0:0)");
        assert_eq!(layout(2), "colours of half the width (4:2:2)");
        assert_eq!(layout(3), "colours of the whole size (4:4:4)");
        let depth = |bit_depth_luma, bit_depth_chroma| {
            unsupported(&Sps { bit_depth_luma, bit_depth_chroma, ..parameters() })
        };
        assert_eq!(depth(10, 10), None);
        assert_eq!(depth(12, 12).unwrap(), "samples of 12 bits, more than 10");
        assert_eq!(depth(10, 8).unwrap(), "10 bits of luma and 8 of colour");
    }
}
