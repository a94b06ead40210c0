//! NAL units: from the lengths of MP4 and Matroska to the start codes of the byte stream format.

use crate::error::CodecError;
use crate::nal;

const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// The form of NAL units in packets, and the parameter sets of the configuration.
#[derive(Debug)]
pub(super) struct Units {
    /// Bytes of a length; `None` if packets have start codes.
    length: Option<usize>,
    configuration: Vec<u8>,
}

impl Units {
    /// Reads `avcC`. Anything else is taken as parameter sets with start codes.
    pub(super) fn new(configuration: &[u8]) -> Self {
        let parsed = (configuration.first() == Some(&1)).then(|| parameter_sets(configuration));
        match (parsed.flatten(), configuration.get(4)) {
            (Some(sets), Some(length)) => {
                Self { length: Some(usize::from(length & 3) + 1), configuration: sets }
            }
            _ => Self { length: None, configuration: configuration.to_vec() },
        }
    }

    pub(super) fn configuration(&self) -> &[u8] {
        &self.configuration
    }

    /// The NAL units of a packet with start codes.
    pub(super) fn byte_stream(&self, packet: &[u8]) -> Result<Vec<u8>, CodecError> {
        let Some(length) = self.length else { return Ok(packet.to_vec()) };
        let mut stream = Vec::with_capacity(packet.len() + 64);
        let failed = |reason| CodecError { codec: "H.264", reason };
        nal::each(packet, length, |unit| {
            stream.extend(START_CODE);
            stream.extend(unit);
        })
        .map_err(failed)?;
        Ok(stream)
    }
}

/// The sequence and picture parameter sets of `avcC`, with start codes.
fn parameter_sets(configuration: &[u8]) -> Option<Vec<u8>> {
    let mut sets = Vec::new();
    let mut rest = configuration.get(5..)?;
    for mask in [31, 255] {
        let (count, after) = rest.split_first()?;
        rest = after;
        for _ in 0..count & mask {
            let (length, after) = rest.split_first_chunk()?;
            let (set, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            sets.extend(START_CODE);
            sets.extend(set);
            rest = after;
        }
    }
    Some(sets)
}
