//! NAL units of packets, with lengths in MP4 and Matroska and with start codes elsewhere.

use rusty_h265::nal::split_annex_b;

use crate::nal;

/// The byte of `hvcC` whose two low bits are one less than the bytes of a length.
const LENGTH_FIELD: usize = 21;

/// The form of NAL units in packets, and the parameter sets of the configuration.
#[derive(Debug)]
pub(super) struct Units {
    /// Bytes of a length; `None` if packets have start codes.
    length: Option<usize>,
    /// The units of the configuration. `None` if it ends too early.
    configuration: Option<Vec<Vec<u8>>>,
}

impl Units {
    /// Reads `hvcC`. A configuration with start codes, or none, is of packets with start codes.
    pub(super) fn new(configuration: &[u8]) -> Self {
        let has_start_codes =
            configuration.starts_with(&[0, 0, 1]) || configuration.starts_with(&[0, 0, 0, 1]);
        if has_start_codes || configuration.is_empty() {
            let units = split_annex_b(configuration).into_iter().map(<[u8]>::to_vec).collect();
            return Self { length: None, configuration: Some(units) };
        }
        let length = configuration.get(LENGTH_FIELD).map(|field| usize::from(field & 3) + 1);
        Self { length, configuration: arrays(configuration) }
    }

    /// The units of the configuration.
    ///
    /// # Errors
    /// The reason, if it ends too early.
    pub(super) fn configuration(&self) -> Result<Vec<Vec<u8>>, String> {
        self.configuration
            .clone()
            .ok_or_else(|| "the configuration (hvcC) is shorter than its arrays".to_owned())
    }

    /// The units of a packet.
    ///
    /// # Errors
    /// The reason, if one is longer than the packet.
    pub(super) fn of<'a>(&self, packet: &'a [u8]) -> Result<Vec<&'a [u8]>, String> {
        let Some(length) = self.length else { return Ok(split_annex_b(packet)) };
        let mut units = Vec::new();
        nal::each(packet, length, |unit| units.push(unit))?;
        Ok(units)
    }
}

/// The units in the arrays of `hvcC`.
fn arrays(configuration: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut units = Vec::new();
    let rest = configuration.get(LENGTH_FIELD + 1..)?;
    let (count, mut rest) = rest.split_first()?;
    for _ in 0..*count {
        // The kind of the units, which their headers have too, and their number.
        let ([_, high, low], after) = rest.split_first_chunk()?;
        rest = after;
        for _ in 0..u16::from_be_bytes([*high, *low]) {
            let (length, after) = rest.split_first_chunk()?;
            let (unit, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            units.push(unit.to_vec());
            rest = after;
        }
    }
    Some(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An `hvcC` with lengths of two bytes and two arrays: of one unit, and of two.
    fn configuration() -> Vec<u8> {
        let mut bytes = vec![1; LENGTH_FIELD];
        bytes.extend([0xFD, 2]);
        bytes.extend([33, 0, 1, 0, 3, 0x42, 1, 9]);
        bytes.extend([34, 0, 2, 0, 2, 0x44, 1, 0, 3, 0x44, 1, 7]);
        bytes
    }

    #[test]
    fn units_have_lengths_or_start_codes() {
        let units = Units::new(&configuration());
        let sets = [vec![0x42, 1, 9], vec![0x44, 1], vec![0x44, 1, 7]];
        assert_eq!(units.configuration().unwrap(), sets);
        assert_eq!(units.of(&[0, 2, 8, 9, 0, 1, 7]).unwrap(), [&[8, 9][..], &[7]]);
        assert_eq!(
            units.of(&[0, 2, 8, 9, 0, 2, 7]).unwrap_err(),
            "the NAL unit at byte 4 of the packet is longer than it"
        );
        let stream = [0, 0, 0, 1, 0x42, 1, 9, 0, 0, 1, 0x44, 1];
        let units = Units::new(&stream);
        assert_eq!(units.configuration().unwrap(), [vec![0x42, 1, 9], vec![0x44, 1]]);
        assert_eq!(units.of(&stream).unwrap().len(), 2);
        assert!(Units::new(&[]).configuration().unwrap().is_empty());
    }

    #[test]
    fn every_truncated_configuration_is_an_error() {
        let whole = configuration();
        for end in 1..whole.len() {
            let error = Units::new(&whole[..end]).configuration().unwrap_err();
            assert_eq!(error, "the configuration (hvcC) is shorter than its arrays", "{end}");
        }
    }
}
