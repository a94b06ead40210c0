//! The open bitstream units of data (AV1 specification, section 5.3).

use crate::error::Error;

/// The units of a packet or an image item, from the first to the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units<'a>(&'a [u8]);

/// A unit with its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit<'a> {
    pub(crate) is_sequence_header: bool,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Units<'a> {
    pub(crate) fn of(data: &'a [u8]) -> Self {
        Self(data)
    }

    fn split(&mut self) -> Result<Option<Unit<'a>>, Error> {
        const SEQUENCE_HEADER: u8 = 1;
        const HAS_EXTENSION: u8 = 4;
        const HAS_LENGTH: u8 = 2;
        let Some(&first) = self.0.first() else { return Ok(None) };
        let header = if first & HAS_EXTENSION == 0 { 1 } else { 2 };
        let mut rest = self.0.get(header..).ok_or(Error::Invalid)?;
        // A unit without a length is the last.
        let length = if first & HAS_LENGTH == 0 { rest.len() } else { take_length(&mut rest)? };
        let rest = rest.get(length..).ok_or(Error::Invalid)?;
        let bytes = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Ok(Some(Unit { is_sequence_header: first >> 3 & 15 == SEQUENCE_HEADER, bytes }))
    }
}

impl<'a> Iterator for Units<'a> {
    type Item = Result<Unit<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let unit = self.split().transpose();
        if matches!(unit, Some(Err(_))) {
            self.0 = &[];
        }
        unit
    }
}

/// Takes a number of 7 bits a byte, the low ones first, of at most 8 bytes and 32 bits (`leb128`).
fn take_length(bytes: &mut &[u8]) -> Result<usize, Error> {
    let mut length = 0u64;
    for place in 0..8 {
        let (&byte, rest) = bytes.split_first().ok_or(Error::Invalid)?;
        *bytes = rest;
        length |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            let length = u32::try_from(length).map_err(|_| Error::Invalid)?;
            return usize::try_from(length).map_err(|_| Error::Invalid);
        }
    }
    Err(Error::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_a_length_or_are_the_last() {
        // A delimiter, a sequence header with an extension and 130 bytes in two bytes of length, and a
        // frame without a length.
        let header = [&[0x0E, 0x08, 0x82, 0x01][..], &[7; 130]].concat();
        let data = [&[0x12, 0x00][..], &header, &[0x30, 1, 2, 3]].concat();
        let units: Vec<Unit<'_>> = Units::of(&data).collect::<Result<_, _>>().unwrap();
        let expected = [
            Unit { is_sequence_header: false, bytes: &[0x12, 0x00] },
            Unit { is_sequence_header: true, bytes: &header },
            Unit { is_sequence_header: false, bytes: &[0x30, 1, 2, 3] },
        ];
        assert_eq!(units, expected);
    }

    #[test]
    fn units_that_are_cut_are_errors() {
        let endless = [&[0x0A][..], &[0x80; 8]].concat();
        for data in [&[0x0A][..], &[0x0C], &[0x0A, 2, 0], &[0x0A, 0x80], &endless] {
            let units: Vec<Result<Unit<'_>, Error>> = Units::of(data).collect();
            assert_eq!(units, [Err(Error::Invalid)], "{data:?}");
        }
    }
}
