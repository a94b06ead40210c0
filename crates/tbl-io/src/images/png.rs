//! Pixels as a PNG file without compression.

use tbl_format::checksum::header_crc32;

/// The channels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channels {
    /// One channel.
    Gray,
    /// All of red, then all of green, then all of blue.
    Planes,
}

/// The file of an image of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Png {
    width: u16,
    height: u16,
    channels: Channels,
}

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Length, type and checksum.
const CHUNK_BYTES: usize = 12;

const HEADER_BYTES: usize = 13;

/// Method and check of the zlib stream, and its checksum.
const ZLIB_BYTES: usize = 2 + 4;

/// A block that is stored as it is: its kind, its length and the complement.
const BLOCK_HEAD_BYTES: usize = 5;
const MAX_BLOCK_BYTES: usize = u16::MAX as usize;

impl Png {
    pub(super) fn new(width: u16, height: u16, channels: Channels) -> Self {
        Self { width, height, channels }
    }

    pub(super) fn width(self) -> u16 {
        self.width
    }

    pub(super) fn height(self) -> u16 {
        self.height
    }

    fn channel_count(self) -> usize {
        match self.channels {
            Channels::Gray => 1,
            Channels::Planes => 3,
        }
    }

    /// The bytes of the pixels alone, below 2^34.
    pub(super) fn pixel_bytes(self) -> usize {
        usize::from(self.width) * usize::from(self.height) * self.channel_count()
    }

    /// The bytes of the rows, each with its filter.
    fn row_bytes(self) -> usize {
        self.pixel_bytes() + usize::from(self.height)
    }

    fn data_bytes(self) -> usize {
        let rows = self.row_bytes();
        ZLIB_BYTES + rows + rows.div_ceil(MAX_BLOCK_BYTES) * BLOCK_HEAD_BYTES
    }

    /// The bytes of the file.
    pub(super) fn file_bytes(self) -> usize {
        SIGNATURE.len() + HEADER_BYTES + self.data_bytes() + 3 * CHUNK_BYTES
    }

    /// Replaces pixels with the file. They share the buffer for a time, so that reading one image after
    /// another allocates nothing.
    pub(super) fn wrap(self, bytes: &mut Vec<u8>) {
        let pixel_bytes = bytes.len();
        let file_bytes = self.file_bytes();
        bytes.resize(file_bytes + pixel_bytes, 0);
        bytes.copy_within(..pixel_bytes, file_bytes);
        let (file, pixels) = bytes.split_at_mut(file_bytes);
        self.write(pixels, &mut Cursor { bytes: file, at: 0 });
        bytes.truncate(file_bytes);
    }

    fn write(self, pixels: &[u8], out: &mut Cursor<'_>) {
        out.push(SIGNATURE);
        let color = match self.channels {
            Channels::Gray => 0,
            Channels::Planes => 2,
        };
        let header = out.start_chunk(HEADER_BYTES, *b"IHDR");
        out.push(&u32::from(self.width).to_be_bytes());
        out.push(&u32::from(self.height).to_be_bytes());
        // Eight bits, and the only methods of compression, filters and interlacing that are simple.
        out.push(&[8, color, 0, 0, 0]);
        out.end_chunk(header);
        let data = out.start_chunk(self.data_bytes(), *b"IDAT");
        out.push(&[0x78, 1]);
        let mut rows = Blocks { out, left: self.row_bytes(), room: 0, adler: Adler::default() };
        let width = usize::from(self.width);
        for row in 0..usize::from(self.height) {
            rows.push(&[0]);
            match self.channels {
                Channels::Gray => rows.push(part(pixels, row * width, width)),
                Channels::Planes => {
                    let plane = width * usize::from(self.height);
                    for at in row * width..(row + 1) * width {
                        let channel = |number: usize| part(pixels, number * plane + at, 1);
                        (0..3).for_each(|number| rows.push(channel(number)));
                    }
                }
            }
        }
        let adler = rows.adler.finish();
        out.push(&adler.to_be_bytes());
        out.end_chunk(data);
        let end = out.start_chunk(0, *b"IEND");
        out.end_chunk(end);
    }
}

fn part(bytes: &[u8], start: usize, len: usize) -> &[u8] {
    bytes.get(start..start + len).unwrap_or_default()
}

/// Writes into memory of the right size.
struct Cursor<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Returns where the part that the checksum covers starts.
    fn start_chunk(&mut self, len: usize, kind: [u8; 4]) -> usize {
        // Chunks of images of 65 535 pixels a side are shorter than 2^34, and limited by the reader.
        self.push(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
        let start = self.at;
        self.push(&kind);
        start
    }

    fn end_chunk(&mut self, start: usize) {
        let checksum = header_crc32(&self.bytes[start..self.at]);
        self.push(&checksum.to_be_bytes());
    }
}

/// Stored blocks of a deflate stream.
struct Blocks<'a, 'b> {
    out: &'a mut Cursor<'b>,
    /// The bytes that are not written yet.
    left: usize,
    /// The bytes that the block still takes.
    room: usize,
    adler: Adler,
}

impl Blocks<'_, '_> {
    fn push(&mut self, mut bytes: &[u8]) {
        self.adler.update(bytes);
        while !bytes.is_empty() {
            if self.room == 0 {
                let len = u16::try_from(self.left).unwrap_or(u16::MAX);
                self.room = len.into();
                let is_last = self.left <= MAX_BLOCK_BYTES;
                let [low, high] = len.to_le_bytes();
                self.out.push(&[is_last.into(), low, high, !low, !high]);
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.room));
            self.out.push(now);
            self.room -= now.len();
            self.left -= now.len();
            bytes = later;
        }
    }
}

/// Adler-32 (RFC 1950).
struct Adler {
    sum: u32,
    sums: u32,
}

impl Default for Adler {
    fn default() -> Self {
        Self { sum: 1, sums: 0 }
    }
}

impl Adler {
    const PRIME: u32 = 65_521;
    /// So many bytes do not overflow the sums of sums.
    const RUN: usize = 5552;

    fn update(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(Self::RUN) {
            for &byte in run {
                self.sum += u32::from(byte);
                self.sums += self.sum;
            }
            self.sum %= Self::PRIME;
            self.sums %= Self::PRIME;
        }
    }

    fn finish(&self) -> u32 {
        self.sums << 16 | self.sum
    }
}
