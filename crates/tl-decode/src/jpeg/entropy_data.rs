//! Entropy-coded data without its byte stuffing (T.81 B.1.1.5), one restart segment at a time, and
//! the way back from its positions to those of the file.

use memchr::memchr;

const FILL: u8 = 0xFF;
const STUFFED: u8 = 0;

/// Zero bytes after the data, so that a reader notices its end late and still reads zeros.
pub(super) const PADDING: usize = 32;

/// This many bytes after the last MCU of a segment are not damage: libjpeg-turbo may have them in
/// its 64 bits when it stops, and does not mention them. Cameras write some.
pub(super) const STRAY_BYTES: usize = 7;

/// The distance between positions in the file that are remembered.
const CHECKPOINT_BYTES: usize = 4096;

/// A restart segment, or all data of a scan without restart markers.
#[derive(Debug, Default)]
pub(super) struct EntropyData {
    /// The data and its padding.
    bytes: Vec<u8>,
    /// Some of the data's bytes, from the first one on: the index of each and where it lies in the
    /// file. From one to the next it is [`CHECKPOINT_BYTES`] of the file or more.
    checkpoints: Vec<(usize, usize)>,
}

/// The end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentEnd {
    /// The marker's second byte; `None` where the file ends first.
    pub(super) marker: Option<u8>,
    /// The marker's first fill byte or 0xFF, or the end of the file.
    pub(super) at: usize,
    /// After the marker.
    pub(super) after: usize,
}

impl EntropyData {
    /// Takes the data from `from` to the next marker.
    pub(super) fn load(&mut self, file: &[u8], from: usize) -> SegmentEnd {
        self.bytes.clear();
        self.checkpoints.clear();
        let from = from.min(file.len());
        let most = file.len() - from + PADDING;
        let mut last_checkpoint = from;
        self.checkpoints.push((0, from));
        let checkpoints = &mut self.checkpoints;
        let end = unstuff(file, from, &mut self.bytes, most, |len, at| {
            if at - last_checkpoint >= CHECKPOINT_BYTES {
                checkpoints.push((len, at));
                last_checkpoint = at;
            }
        });
        append(&mut self.bytes, &[0; PADDING], most);
        end
    }

    /// Bytes that the data of a scan takes, or all of a file's.
    pub(super) fn memory(file_bytes: usize) -> u64 {
        let checkpoints = file_bytes / CHECKPOINT_BYTES * size_of::<(usize, usize)>();
        (file_bytes + checkpoints + PADDING) as u64
    }

    /// Bytes that are kept for data to come.
    pub(super) fn kept_bytes(&self) -> usize {
        self.bytes.capacity() + self.checkpoints.capacity() * size_of::<(usize, usize)>()
    }

    /// The data, with [`PADDING`] zero bytes after it.
    pub(super) fn padded(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of data, without the padding.
    pub(super) fn len(&self) -> usize {
        self.bytes.len().saturating_sub(PADDING)
    }

    /// The offset of byte `index` of the data in the `file` that it was loaded from; for the data's
    /// length, that of its end.
    pub(super) fn file_offset(&self, file: &[u8], index: usize) -> usize {
        let index = index.min(self.len());
        let before = self.checkpoints.partition_point(|&(known, _)| known <= index);
        let Some(&(known, mut at)) = self.checkpoints[..before].last() else { return 0 };
        let mut left = index - known;
        loop {
            let stretch = file.get(at..at + left).unwrap_or_default();
            let Some(plain) = memchr(FILL, stretch) else { return at + left };
            left -= plain + 1;
            at += plain;
            // The last fill byte stands for itself, and the zero after it goes.
            at += file[at..].iter().take_while(|&&byte| byte == FILL).count() + 1;
        }
    }
}

/// Adds the data from `from` to the next marker to `out`, which never needs more than `most` bytes.
/// Calls `dropped` after each byte that is left out, with the length of `out` and the place in the
/// file.
#[inline(always)]
pub(super) fn unstuff(
    file: &[u8],
    from: usize,
    out: &mut Vec<u8>,
    most: usize,
    mut dropped: impl FnMut(usize, usize),
) -> SegmentEnd {
    let mut at = from.min(file.len());
    loop {
        let rest = &file[at..];
        let Some(plain) = memchr(FILL, rest) else {
            append(out, rest, most);
            return SegmentEnd { marker: None, at: file.len(), after: file.len() };
        };
        let fills = match rest.get(plain + 1) {
            Some(&STUFFED) => 1,
            _ => rest[plain..].iter().take_while(|&&byte| byte == FILL).count(),
        };
        let marker_at = at + plain;
        let after = marker_at + fills + 1;
        match rest.get(plain + fills) {
            Some(&STUFFED) => {
                append(out, &rest[..=plain], most);
                at = after;
                dropped(out.len(), at);
            }
            marker => {
                append(out, &rest[..plain], most);
                let after = after.min(file.len());
                return SegmentEnd { marker: marker.copied(), at: marker_at, after };
            }
        }
    }
}

/// Adds `part` to `out`: room is made for twice the data, but never for more than `most` bytes.
#[inline(always)]
pub(super) fn append(out: &mut Vec<u8>, part: &[u8], most: usize) {
    let need = out.len() + part.len();
    if need > out.capacity() {
        let room = need.max((2 * out.capacity()).min(most));
        out.reserve_exact(room - out.len());
    }
    out.extend_from_slice(part);
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
        let found: Vec<usize> =
            (0..=data.len()).map(|index| data.file_offset(file, index)).collect();
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
        // Half a marker is not data.
        check(b"xa\xFF", b"a", &[1, 2], end(None, 2, 3));
    }

    #[test]
    fn offsets_are_right_however_far_apart_and_cost_little_memory() {
        let mut file = Vec::new();
        let mut expected = Vec::new();
        for i in 0..30_000u32 {
            expected.push(file.len());
            let fills = if i % 5000 == 77 { 20_000 } else { i as usize % 7 % 4 };
            if fills == 0 {
                file.push(0x12);
            } else {
                file.extend(std::iter::repeat_n(FILL, fills));
                file.push(STUFFED);
            }
        }
        expected.push(file.len());
        let mut data = EntropyData::default();
        data.load(&file, 0);
        assert_eq!(data.len(), 30_000);
        for (index, offset) in expected.into_iter().enumerate() {
            assert_eq!(data.file_offset(&file, index), offset, "{index}");
        }
        assert!(data.kept_bytes() as u64 <= EntropyData::memory(file.len()), "{data:?}");
        let fills = [&vec![FILL; 1 << 20][..], &[0]].concat();
        let mut data = EntropyData::default();
        data.load(&fills, 0);
        assert!(data.len() == 1 && data.kept_bytes() < 4096, "{}", data.kept_bytes());
    }
}
