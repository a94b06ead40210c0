//! VP9 by the `rusty_vp9` crate. A packet has one picture that is shown, after those that are not.

mod header;

use rusty_vp9::{DecodedFrame, Vp9Decoder};

use crate::codec::{Coded, Failure};
use crate::error::{CodecError, Limit};
use crate::info::Color;
use crate::limits::{Limits, check};
use crate::picture::{Chroma, Picture};
use header::{Format, Header, Kind, frames_of};

/// Pictures that the decoder holds: eight that others refer to, one that is decoded, two whose memory
/// is kept, and one that is returned.
const PICTURES: u64 = 12;

/// Bytes that the decoder takes for a sample, whatever its bits.
const SAMPLE_BYTES: u64 = 2;

/// Samples that the decoder adds to each side of a plane.
const MARGIN: u64 = 64 + 8;

/// The side of a block that the decoder has notes of: modes, vectors and segments.
const BLOCK: u64 = 8;

/// Bytes of the notes of a block, with those of the picture before.
const NOTES: u64 = 192;

/// A decoder of VP9.
#[derive(Default)]
pub(crate) struct Vp9 {
    decoder: Vp9Decoder,
    /// The format of the last key picture, which all pictures up to the next one have.
    format: Option<Format>,
}

impl std::fmt::Debug for Vp9 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vp9").field("format", &self.format).finish_non_exhaustive()
    }
}

impl Vp9 {
    /// Forgets all pictures.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Decodes a packet.
    pub(crate) fn decode(
        &mut self,
        packet: &[u8],
        limits: &Limits,
    ) -> Result<Option<Coded>, Failure> {
        let decoded = self.decode_frames(packet, limits);
        if decoded.is_err() {
            // The decoder may have stopped in the middle of a picture.
            self.restart();
        }
        decoded
    }

    fn decode_frames(&mut self, packet: &[u8], limits: &Limits) -> Result<Option<Coded>, Failure> {
        let frames = frames_of(packet)
            .ok_or_else(|| failed("the index of the superframe does not fit the packet"))?;
        let mut shown = None;
        for frame in frames {
            let header = Header::parse(frame)
                .ok_or_else(|| failed("the frame does not begin with a header of VP9"))?;
            if header.is_shown && shown.is_some() {
                return Err(failed("unsupported: a packet with two pictures that are shown"));
            }
            let color = self.accept(&header.kind, limits)?;
            self.decoder.push(frame, None).map_err(|error| failed(&error.to_string()))?;
            match self.decoder.next_frame() {
                Ok(picture) => shown = Some(picture_of(picture, color)?),
                // The picture is not shown.
                Err(rusty_vp9::Error::Again) => {}
                Err(error) => return Err(failed(&error.to_string())),
            }
        }
        // Packets are in the order of display.
        Ok(shown.map(|picture| Coded { picture, order: 0, starts_group: true }))
    }

    /// Charges a picture, refuses what the decoder has not, and returns the colours.
    fn accept(&mut self, kind: &Kind, limits: &Limits) -> Result<Color, Failure> {
        if let Kind::Key(format) = kind {
            if format.halvings == [false, true] {
                return Err(failed("unsupported: colours of half the height alone (4:4:0)"));
            }
            check(Limit::DecoderBytes, limits.max_decoder_bytes, memory(format))
                .map_err(Failure::Limit)?;
            self.format = Some(*format);
            return Ok(format.color);
        }
        let key = self.format.ok_or_else(|| failed("a picture before the first key picture"))?;
        let same = match kind {
            Kind::Key(_) | Kind::Again | Kind::Inter(None) => true,
            Kind::Inter(Some(size)) => *size == key.size,
            Kind::Intra { keeps_probabilities: true, .. } => {
                return Err(failed(
                    "unsupported: a picture without references that keeps probabilities",
                ));
            }
            Kind::Intra { format, .. } => {
                (format.size, format.bit_depth, format.halvings)
                    == (key.size, key.bit_depth, key.halvings)
            }
        };
        if !same {
            return Err(failed(
                "unsupported: a picture of another size or format than the key picture before it",
            ));
        }
        Ok(key.color)
    }
}

/// The bytes that pictures of a format take in the decoder.
fn memory(format: &Format) -> u64 {
    let [width, height] = format.size.map(u64::from);
    let [half_width, half_height] = format.halvings.map(u32::from);
    // A row of samples takes a power of two.
    let plane = |width: u64, height: u64| {
        (width + MARGIN).next_power_of_two() * (height + MARGIN) * SAMPLE_BYTES
    };
    let colour = plane((width + 1) >> half_width, (height + 1) >> half_height);
    let picture = plane(width, height) + 2 * colour;
    picture * PICTURES + width.div_ceil(BLOCK) * height.div_ceil(BLOCK) * NOTES
}

fn picture_of(frame: DecodedFrame, color: Color) -> Result<Picture, Failure> {
    let chroma = match (frame.subsampling_x, frame.subsampling_y) {
        (1, 1) => Chroma::Yuv420,
        (1, 0) => Chroma::Yuv422,
        _ => Chroma::Yuv444,
    };
    let planes = <[Vec<u8>; 3]>::try_from(frame.planes);
    let planes = planes.map_err(|_| failed("a picture without three planes"))?;
    let bit_depth = u8::try_from(frame.bit_depth).map_err(|_| failed("more than 255 bits"))?;
    Ok(Picture { width: frame.width, height: frame.height, bit_depth, chroma, color, planes })
}

fn failed(reason: &str) -> Failure {
    Failure::Codec(CodecError { codec: "VP9", reason: reason.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::header::tests::bytes_of;
    use super::*;

    /// The packets of a clip of 96x64 in profile 0, without hidden pictures.
    fn packets() -> Vec<Vec<u8>> {
        let clip = tl_testdata::shipped_bytes!("video/vp9.mp4");
        let index = crate::VideoIndex::open(&clip[..], &Limits::default()).unwrap();
        let packets = (0..index.packet_count()).map(|number| index.packet(number).unwrap());
        let bytes_of = |packet: crate::Packet| {
            let start = usize::try_from(packet.offset).unwrap();
            clip[start..][..usize::try_from(packet.bytes).unwrap()].to_vec()
        };
        packets.map(bytes_of).collect()
    }

    /// The message of the error of the last packet, before which the others are decoded.
    fn error(packets: &[Vec<u8>]) -> String {
        let limits = Limits::default();
        let mut decoder = Vp9::default();
        let (last, before) = packets.split_last().unwrap();
        for packet in before {
            assert!(decoder.decode(packet, &limits).unwrap().is_some());
        }
        match decoder.decode(last, &limits) {
            Err(Failure::Codec(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    const SYNC: &str = "010010011000001101000010";

    #[test]
    fn a_picture_of_another_size_is_refused_by_name() {
        let key = packets().swap_remove(0);
        // Marker, profile 0, not again, refers to others, is shown, resists no errors; probabilities,
        // refreshed pictures, references, none of whose size it has.
        let start = "1000011000".to_owned() + "00000001" + &"0".repeat(12) + "000";
        let inter = bytes_of(&format!("{start}{:016b}{:016b}", 47, 31));
        let named = "VP9: unsupported: a picture of another size or format than the key picture \
                     before it";
        assert_eq!(error(&[key.clone(), inter]), named);
        // A hidden one without references, which sets all probabilities anew.
        let start = format!("10000100111{SYNC}00000001");
        let intra = bytes_of(&format!("{start}{:016b}{:016b}", 47, 31));
        assert_eq!(error(&[key, intra]), named);
    }

    #[test]
    fn unsupported_pictures_are_refused_by_name() {
        let key = packets().swap_remove(0);
        let intra = bytes_of(&format!("10000100101{SYNC}00000001{:016b}{:016b}", 95, 63));
        assert_eq!(
            error(&[key, intra]),
            "VP9: unsupported: a picture without references that keeps probabilities"
        );
        // Profile 1, BT.709 of limited range, colours of the whole width and half the height.
        let other = bytes_of(&format!("10100010{SYNC}0100010{:016b}{:016b}", 95, 63));
        assert_eq!(error(&[other]), "VP9: unsupported: colours of half the height alone (4:4:0)");
    }

    #[test]
    fn packets_without_their_pictures_are_refused_by_name() {
        let packets = packets();
        assert_eq!(error(&packets[1..2]), "VP9: a picture before the first key picture");
        let mut twice = packets[..2].concat();
        // The index of a superframe: two sizes of two bytes.
        let sizes = packets[..2].iter().map(|packet| u16::try_from(packet.len()).unwrap());
        let index: Vec<u8> = sizes.flat_map(u16::to_le_bytes).collect();
        twice.push(0xC9);
        twice.extend(&index);
        twice.push(0xC9);
        assert_eq!(
            error(&[twice.clone()]),
            "VP9: unsupported: a packet with two pictures that are shown"
        );
        let short = twice.split_off(10);
        assert_eq!(error(&[short]), "VP9: the index of the superframe does not fit the packet");
        assert_eq!(error(&[vec![0; 9]]), "VP9: the frame does not begin with a header of VP9");
    }

    #[test]
    fn memory_is_that_of_all_planes() {
        let color = Color::default();
        let format = Format { size: [1, 1], bit_depth: 8, halvings: [true; 2], color };
        // Three planes of 128x73 samples of two bytes, twelve times, and one block.
        assert_eq!(memory(&format), 3 * 128 * 73 * 2 * 12 + 192);
        let largest = Format { size: [65536; 2], halvings: [false; 2], ..format };
        assert!(memory(&largest) > 65536 * 65536 * 72);
    }
}
