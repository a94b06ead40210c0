//! The decoder: sequence headers are charged before anything is decoded.

use crate::context::{Context, Header};
use crate::error::Error;
use crate::picture::{Layout, Picture};
use crate::units::Units;

/// Pictures that a decoder holds: eight that others refer to, one that is decoded, one with grain,
/// one that is returned.
const PICTURES: u64 = 11;

/// Bytes that a decoder notes of a sample of luma: vectors and modes of blocks, for each picture
/// that others refer to, and the lines that filters need.
const NOTES: u64 = 8;

/// A decoder of AV1, with its state between packets.
///
/// It has no threads of its own. After an error it continues at the next key picture.
#[derive(Debug)]
pub struct Decoder {
    max_bytes: u64,
    /// None before the first sequence header, and after an error.
    context: Option<Context>,
    /// The bytes per sample of luma that the context's limit was made for.
    sample_cost: u64,
    /// Whether no sequence header came since the pictures were forgotten.
    lacks_header: bool,
}

impl Decoder {
    /// A decoder that takes at most about `max_bytes` of memory.
    #[must_use]
    pub const fn new(max_bytes: u64) -> Self {
        Self { max_bytes, context: None, sample_cost: 0, lacks_header: true }
    }

    /// Forgets all pictures. The next data begins with a sequence header and a key picture.
    pub fn restart(&mut self) {
        self.lacks_header = true;
        if let Some(context) = &mut self.context {
            context.flush();
        }
    }

    /// Decodes the open bitstream units of `data`, such as a packet of a container or the item of an
    /// image, and returns the picture that is shown, if one is.
    ///
    /// # Errors
    /// For data that is not AV1, shows several pictures or would take too much memory.
    pub fn decode(&mut self, data: &[u8]) -> Result<Option<Picture>, Error> {
        let decoded = self.charge(data).and_then(|context| context.decode(data));
        if decoded.is_err() {
            // What it holds may be of the middle of a picture.
            self.context = None;
            self.lacks_header = true;
        }
        decoded
    }

    /// The context, once what the sequence headers in `data` ask for is allowed.
    fn charge(&mut self, data: &[u8]) -> Result<&mut Context, Error> {
        if let Some(Claim { samples, cost }) = Claim::of(data)? {
            let need = samples.saturating_mul(cost);
            if need > self.max_bytes {
                return Err(Error::TooLarge { max: self.max_bytes, need });
            }
            if self.context.is_none() || cost != self.sample_cost {
                // A picture can state another size than its sequence.
                let most = u32::try_from(self.max_bytes / cost).unwrap_or(u32::MAX).max(1);
                self.context = Some(Context::open(most)?);
                self.sample_cost = cost;
            }
            self.lacks_header = false;
        }
        let context = self.context.as_mut().filter(|_| !self.lacks_header);
        context.ok_or(Error::NoSequenceHeader)
    }
}

/// The most that sequence headers ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Claim {
    /// Samples of luma in a picture.
    samples: u64,
    /// Bytes per sample of luma.
    cost: u64,
}

impl Claim {
    /// The claim of all headers in `data`, none without a header. Pictures may follow each of them, so
    /// that the most samples and the highest cost count.
    fn of(data: &[u8]) -> Result<Option<Self>, Error> {
        let mut most: Option<Self> = None;
        for unit in Units::of(data) {
            let unit = unit?;
            if unit.is_sequence_header {
                let header = Header::parse(unit.bytes)?;
                let samples = u64::from(header.max_width) * u64::from(header.max_height);
                let most = most.get_or_insert_default();
                most.samples = most.samples.max(samples);
                most.cost = most.cost.max(cost_of_sample(header));
            }
        }
        Ok(most)
    }
}

fn cost_of_sample(header: Header) -> u64 {
    let bytes = if header.is_deep { 2 } else { 1 };
    // Halves of a byte per sample of luma.
    let halves = match header.layout {
        Layout::Monochrome => 2,
        Layout::Yuv420 => 3,
        Layout::Yuv422 => 4,
        Layout::Yuv444 => 6,
    };
    (halves * bytes * PICTURES).div_ceil(2) + NOTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_picture_of_a_packet_is_refused() {
        let clip = tl_testdata::shipped_bytes!("video/av1.mp4");
        // Its first packet, which is a key picture.
        let key = &clip[48..48 + 211];
        let mut decoder = Decoder::new(1 << 20);
        assert!(decoder.decode(key).unwrap().is_some());
        // Frame headers that show the picture in a place again.
        let shown_again = [0x1a, 1, 0x88].repeat(100);
        let error = decoder.decode(&[key, &shown_again].concat()).unwrap_err();
        assert_eq!(error, Error::SeveralPictures);
        assert_eq!(decoder.decode(&shown_again).unwrap_err(), Error::NoSequenceHeader);
    }
    #[test]
    fn the_most_expensive_sequence_header_is_charged() {
        let clip = tl_testdata::shipped_bytes!("video/av1.mp4");
        let key = &clip[48..48 + 211];
        let claim = Claim::of(key).unwrap().unwrap();
        // Eleven pictures of 8 bits in 4:2:0, which are 16.5 bytes a sample, and 8 of notes.
        assert_eq!(claim.cost, 25);
        let need = claim.samples * claim.cost;
        // A reduced header of 1 by 1 samples, monochrome in 8 bits: 19 bytes a sample.
        let cheap = [0x0A, 4, 0x18, 0x00, 0x00, 0x15];
        for data in [key.to_vec(), [key, &cheap].concat(), [&cheap, key].concat()] {
            let error = Decoder::new(need - 1).decode(&data).unwrap_err();
            assert_eq!(error, Error::TooLarge { max: need - 1, need });
            assert!(Decoder::new(need).decode(&data).unwrap().is_some());
        }
    }
}
