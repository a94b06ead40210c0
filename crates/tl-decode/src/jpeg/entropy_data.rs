//! Entropy-coded data without its byte stuffing (T.81 B.1.1.5), one restart segment at a time, and
//! the way back from its positions to those of the file.

use memchr::memchr;

const FILL: u8 = 0xFF;
const STUFFED: u8 = 0;

/// Zero bytes behind the data, so that a reader notices its end late and still reads zeros.
pub(super) const PADDING: usize = 32;

/// So many bytes behind the last MCU are no damage: libjpeg-turbo may have them in its 64 bits when
/// it stops, and does not mention them. Cameras write some.
pub(super) const STRAY_BYTES: usize = 7;

/// A restart segment, or all data of a scan without restart markers.
#[derive(Debug, Default)]
pub(super) struct EntropyData {
    /// The data and its padding.
    bytes: Vec<u8>,
    /// Indices into `bytes` of what followed a dropped byte, once per dropped byte.
    dropped: Vec<u32>,
    /// Where the first byte lies in the file.
    from: usize,
}

/// What ends a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentEnd {
    /// The marker's second byte; `None` where the file ends first.
    pub(super) marker: Option<u8>,
    /// The marker's first fill byte or 0xFF, or the end of the file.
    pub(super) at: usize,
    /// Behind the marker.
    pub(super) after: usize,
}

impl EntropyData {
    /// Takes the data from `from` to the next marker.
    pub(super) fn load(&mut self, file: &[u8], from: usize) -> SegmentEnd {
        self.bytes.clear();
        self.dropped.clear();
        self.from = from;
        let mut at = from.min(file.len());
        let end = loop {
            let rest = &file[at..];
            let Some(plain) = memchr(FILL, rest) else {
                self.bytes.extend_from_slice(rest);
                break SegmentEnd { marker: None, at: file.len(), after: file.len() };
            };
            let fills = match rest.get(plain + 1) {
                Some(&STUFFED) => 1,
                _ => rest[plain..].iter().take_while(|&&byte| byte == FILL).count(),
            };
            let marker_at = at + plain;
            let after = marker_at + fills + 1;
            match rest.get(plain + fills) {
                Some(&STUFFED) => {
                    self.bytes.extend_from_slice(&rest[..=plain]);
                    let next = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
                    // All fill bytes but one and the stuffed zero.
                    self.dropped.extend(std::iter::repeat_n(next, fills));
                    at = after;
                }
                marker => {
                    self.bytes.extend_from_slice(&rest[..plain]);
                    let after = after.min(file.len());
                    break SegmentEnd { marker: marker.copied(), at: marker_at, after };
                }
            }
        };
        self.bytes.extend_from_slice(&[0; PADDING]);
        end
    }

    /// The data, with [`PADDING`] zero bytes behind it.
    pub(super) fn padded(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of data, without the padding.
    pub(super) fn len(&self) -> usize {
        self.bytes.len().saturating_sub(PADDING)
    }

    /// Where byte `index` of the data lies in the file; for the data's length, where it ends.
    pub(super) fn file_offset(&self, index: usize) -> usize {
        let index = index.min(self.len());
        self.from + index + self.dropped.partition_point(|&next| next as usize <= index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &[u8], expected: &[u8], offsets: &[usize], end: SegmentEnd) {
        let mut data = EntropyData::default();
        assert_eq!(data.load(file, 1), end, "{file:02x?}");
        assert_eq!(data.len(), expected.len());
        assert_eq!(&data.padded()[..data.len()], expected);
        assert_eq!(data.padded()[data.len()..], [0; PADDING]);
        let found: Vec<usize> = (0..=data.len()).map(|index| data.file_offset(index)).collect();
        assert_eq!(found, offsets);
    }

    #[test]
    fn stuffing_and_fill_bytes_go() {
        let end = |marker, at, after| SegmentEnd { marker, at, after };
        check(b"x", b"", &[1], end(None, 1, 1));
        check(b"xab", b"ab", &[1, 2, 3], end(None, 3, 3));
        check(b"xa\xFF\xD9b", b"a", &[1, 2], end(Some(0xD9), 2, 4));
        check(b"x\xFF\0b\xFF\0", b"\xFFb\xFF", &[1, 3, 4, 6], end(None, 6, 6));
        // Fill bytes in front of a stuffed zero are passed over, as in front of a marker.
        check(b"x\xFF\xFF\0b\xFF\xFF\xD0", b"\xFFb", &[1, 4, 5], end(Some(0xD0), 5, 8));
        // Half a marker is no data.
        check(b"xa\xFF", b"a", &[1, 2], end(None, 2, 3));
    }
}
