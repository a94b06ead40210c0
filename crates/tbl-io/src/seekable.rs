//! Zstandard files with a seek table, whose plain bytes are read by position.
//!
//! The format is `contrib/seekable_format` of Zstandard: independent frames, and a skippable frame
//! after them that lists their lengths. The checksums of that list (XXH64) are not compared; those
//! that frames have themselves are.

use std::sync::{Arc, Mutex};

use crate::error::ReadError;
use crate::ranges::{Pin, RangeFault, Ranges};
use crate::source::Source;
use crate::unpack::Compressor;

/// The last four bytes of a seek table.
const MAGIC: u32 = 0x8f92_eab1;

/// The first four bytes of its frame.
const FRAME_MAGIC: u32 = 0x184d_2a5e;

/// Magic and length of its frame.
const FRONT_BYTES: usize = 8;

/// The number of frames, a byte of flags, and the magic.
const FOOTER_BYTES: usize = 9;

/// The flag of tables with a checksum for each frame, and those that are reserved.
const HAS_CHECKSUMS: u8 = 0x80;
const RESERVED: u8 = 0x7c;

/// The most plain bytes of a frame, which is unpacked as a whole.
const MAX_FRAME_BYTES: u64 = 256 << 20;

/// Plain bytes of the last frames that are kept, unless one frame has more.
const KEPT_BYTES: usize = 32 << 20;

/// The plain bytes of a Zstandard file that has a seek table; `None` for other files. A read unpacks
/// the frames that it touches, of which the last ones are kept.
///
/// # Errors
/// [`ReadError::Compressed`] for a damaged table, [`ReadError::Limit`] for frames of more than
/// 256 MiB, and those of reading.
pub fn open_seekable(source: &Source) -> Result<Option<Source>, ReadError> {
    if Compressor::of(source)? != Some(Compressor::Zstd) {
        return Ok(None);
    }
    let mut footer = [0; FOOTER_BYTES];
    let footer_start = source.len().checked_sub(footer.len() as u64);
    let Some(footer_start) = footer_start else { return Ok(None) };
    source.read_exact_at(footer_start, &mut footer)?;
    let [n0, n1, n2, n3, flags, magic @ ..] = footer;
    if u32::from_le_bytes(magic) != MAGIC {
        return Ok(None);
    }
    let count = u32::from_le_bytes([n0, n1, n2, n3]);
    let entry_bytes = if flags & HAS_CHECKSUMS == 0 { 8 } else { 12 };
    let table_bytes = u64::from(count) * entry_bytes;
    let damaged = |at: u64, text: &str| damaged(source, at, &format!("damaged seek table: {text}"));
    if flags & RESERVED != 0 {
        return Err(damaged(footer_start, "reserved flags"));
    }
    let front_start = footer_start.checked_sub(table_bytes + FRONT_BYTES as u64);
    let Some(front_start) = front_start else {
        return Err(damaged(footer_start, "more frames than the file has room for"));
    };
    let mut table = Vec::new();
    source.read_range_into(front_start, FRONT_BYTES as u64 + table_bytes, &mut table)?;
    let mut words = table.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
    let is_front = words.next() == Some(FRAME_MAGIC)
        && words.next().map(u64::from) == Some(table_bytes + FOOTER_BYTES as u64);
    if !is_front {
        return Err(damaged(front_start, "another length than that of its frame"));
    }
    let mut frames = Vec::with_capacity(count as usize + 1);
    let mut frame = Frame::default();
    frames.push(frame);
    while let Some(stored) = words.next() {
        let plain = words.next().unwrap_or_default();
        if flags & HAS_CHECKSUMS != 0 {
            words.next();
        }
        if u64::from(plain) > MAX_FRAME_BYTES {
            let location = source.location().clone();
            let what = "plain bytes of a frame";
            return Err(ReadError::Limit {
                location,
                what,
                limit: MAX_FRAME_BYTES,
                need: plain.into(),
            });
        }
        frame = Frame {
            stored: frame.stored + u64::from(stored),
            plain: frame.plain + u64::from(plain),
        };
        frames.push(frame);
    }
    if frame.stored != front_start {
        return Err(damaged(front_start, "its frames are not those of the file"));
    }
    let pin = source.version()?;
    let frames = Frames { source: source.clone(), pin, frames, kept: Mutex::default() };
    Ok(Some(Source::from_ranges(source.location(), Arc::new(frames))))
}

fn damaged(source: &Source, offset: u64, text: &str) -> ReadError {
    let location = source.location().clone();
    let error = std::io::Error::new(std::io::ErrorKind::InvalidData, text);
    ReadError::Compressed { location, offset, by: Compressor::Zstd.name(), source: error }
}

/// The first byte of a frame, in the file and among the plain bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    stored: u64,
    plain: u64,
}

#[derive(Debug)]
struct Frames {
    source: Source,
    pin: Pin,
    /// The starts of all frames, and the end of the last.
    frames: Vec<Frame>,
    kept: Mutex<Vec<Kept>>,
}

/// A frame that was unpacked.
#[derive(Debug)]
struct Kept {
    number: usize,
    plain: Arc<Vec<u8>>,
}

impl Frames {
    /// The plain bytes of frame `number`, which exists.
    ///
    /// Threads that find the others at the frames that are kept do not wait for them, and unpack the
    /// frame themselves: they may be those of a forked process, where nothing would end the wait.
    fn frame(&self, number: usize) -> Result<Arc<Vec<u8>>, ReadError> {
        let kept = self.kept.try_lock().ok().and_then(|mut kept| {
            let place = kept.iter().position(|kept| kept.number == number)?;
            // The last one stays longest.
            kept[place..].rotate_left(1);
            kept.last().map(|kept| Arc::clone(&kept.plain))
        });
        if let Some(plain) = kept {
            return Ok(plain);
        }
        let plain = Arc::new(self.unpack(number)?);
        if let Ok(mut kept) = self.kept.try_lock() {
            kept.push(Kept { number, plain: Arc::clone(&plain) });
            let mut bytes: usize = kept.iter().map(|kept| kept.plain.len()).sum();
            while bytes > KEPT_BYTES && kept.len() > 1 {
                bytes -= kept.remove(0).plain.len();
            }
        }
        Ok(plain)
    }

    fn unpack(&self, number: usize) -> Result<Vec<u8>, ReadError> {
        let [start, end] = [self.frames[number], self.frames[number + 1]];
        let mut stored = Vec::new();
        self.source.read_range_into(start.stored, end.stored - start.stored, &mut stored)?;
        // At most the limit of a frame.
        let expected = usize::try_from(end.plain - start.plain).unwrap_or(usize::MAX);
        let plain = zstd::bulk::decompress(&stored, expected);
        let plain =
            plain.map_err(|error| damaged(&self.source, start.stored, &error.to_string()))?;
        if plain.len() == expected {
            return Ok(plain);
        }
        let text = format!("a frame of {} bytes, expected {expected}", plain.len());
        Err(damaged(&self.source, start.stored, &text))
    }

    /// The frame that has the plain byte `at`, which exists.
    fn number_of(&self, at: u64) -> usize {
        self.frames.partition_point(|frame| frame.plain <= at) - 1
    }

    /// The bytes of the file that a range of plain bytes is unpacked from.
    fn stored(&self, offset: u64, len: u64) -> (u64, u64) {
        if len == 0 {
            return (0, 0);
        }
        let start = self.frames[self.number_of(offset)].stored;
        let end = self.frames[self.number_of(offset + len - 1) + 1].stored;
        (start, end - start)
    }
}

impl Ranges for Frames {
    fn len(&self) -> u64 {
        self.frames.last().map_or(0, |end| end.plain)
    }

    fn pin(&self) -> &Pin {
        &self.pin
    }

    fn read_exact_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), RangeFault> {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let number = self.number_of(at);
            let fault = |error| RangeFault::OfSource(Box::new(error));
            let plain = self.frame(number).map_err(fault)?;
            let before = usize::try_from(at - self.frames[number].plain).unwrap_or(usize::MAX);
            let plain = plain.get(before..).unwrap_or_default();
            let count = plain.len().min(rest.len());
            let (filled, left) = rest.split_at_mut(count);
            filled.copy_from_slice(&plain[..count]);
            at += count as u64;
            rest = left;
        }
        Ok(())
    }

    fn will_need(&self, offset: u64, len: u64) {
        let (offset, len) = self.stored(offset, len);
        self.source.will_need(offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::PlainReader;

    /// A file of frames with these plain bytes, and a seek table.
    fn file(frames: &[&[u8]], has_checksums: bool) -> Vec<u8> {
        let mut file = Vec::new();
        let mut table = Vec::new();
        for plain in frames {
            let frame = zstd::bulk::compress(plain, 3).unwrap();
            table.extend(u32::try_from(frame.len()).unwrap().to_le_bytes());
            table.extend(u32::try_from(plain.len()).unwrap().to_le_bytes());
            if has_checksums {
                table.extend([1, 2, 3, 4]);
            }
            file.extend(frame);
        }
        table.extend(u32::try_from(frames.len()).unwrap().to_le_bytes());
        table.push(if has_checksums { HAS_CHECKSUMS } else { 0 });
        table.extend(MAGIC.to_le_bytes());
        file.extend(FRAME_MAGIC.to_le_bytes());
        file.extend(u32::try_from(table.len()).unwrap().to_le_bytes());
        file.extend(table);
        file
    }

    fn open(bytes: &[u8]) -> Result<Option<Source>, ReadError> {
        open_seekable(&Source::from_bytes("a.zst", bytes.to_vec()))
    }

    #[test]
    fn plain_bytes_are_read_by_position() {
        let frames: [&[u8]; 5] = [b"abcdef", b"", b"ghi", &[7; 1000], b"z"];
        let plain = frames.concat();
        for has_checksums in [false, true] {
            let file = file(&frames, has_checksums);
            let source = open(&file).unwrap().unwrap();
            assert_eq!(source.len(), plain.len() as u64);
            for start in 0..plain.len() {
                for end in [start, start + 1, start + 7, plain.len()] {
                    let Some(expected) = plain.get(start..end) else { continue };
                    let mut bytes = Vec::new();
                    let len = expected.len() as u64;
                    source.read_range_into(start as u64, len, &mut bytes).unwrap();
                    assert_eq!(bytes, expected, "{start}..{end}");
                    source.will_need(start as u64, len);
                }
            }
            // From front to end the table is passed over.
            let mut reader = PlainReader::new(&Source::from_bytes("a.zst", file)).unwrap();
            let mut bytes = vec![0; 2000];
            let mut end = 0;
            while let read @ 1.. = reader.read(&mut bytes[end..]).unwrap() {
                end += read;
            }
            assert_eq!(bytes[..end], plain);
        }
    }

    #[test]
    fn files_without_a_table_are_others() {
        assert!(open(b"").unwrap().is_none());
        assert!(open(b"plain text that is long enough").unwrap().is_none());
        let frame = zstd::bulk::compress(&[1; 100], 3).unwrap();
        assert!(open(&frame).unwrap().is_none());
    }

    #[test]
    fn damage_is_an_error_with_its_place() {
        let whole = file(&[b"abcdef", b"ghi"], false);
        let message = |at: usize, byte: u8| {
            let mut file = whole.clone();
            file[at] ^= byte;
            let read = open(&file).and_then(|source| {
                let source = source.unwrap();
                source.read_range_into(0, source.len(), &mut Vec::new())
            });
            read.unwrap_err().to_string()
        };
        let len = whole.len();
        assert!(message(len - 5, 4).contains("reserved flags"));
        assert!(message(len - 6, 1).contains("more frames than the file has room for"));
        assert!(message(len - 9, 1).contains("another length than that of its frame"));
        assert!(message(len - 17, 1).contains("its frames are not those of the file"));
        assert!(message(len - 13, 1).contains("too small"), "{}", message(len - 13, 1));
        assert!(message(len - 10, 0x40).contains("plain bytes of a frame"));
        // The kind of the first block.
        assert!(message(6, 6).starts_with("a.zst: at byte 0: "), "{}", message(6, 6));
    }
}
