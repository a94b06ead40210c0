//! A reader that makes missing entropy-coded data an error of the codec behind it.

use std::io::{self, Read};

use super::marker::{EOI, RST0, RST7, SOS, Walk, entropy_coded_end};

/// Reads a file that `marker::check_scans` has passed, with one-bits put in front of every marker that
/// ends entropy-coded data.
///
/// A codec that fills up missing data with zeros decodes a cut scan to plausible grey. No Huffman
/// code consists of ones only (T.81 C.2), so with these bits the same codec fails instead. They
/// are few enough that it still finds the marker behind a whole scan: 48 and at most 7 of the
/// last byte fit in its 64-bit buffer with a byte to spare.
pub(super) struct PaddedScans<'a> {
    bytes: &'a [u8],
    /// What is read next.
    piece: &'a [u8],
    /// Where the bytes behind `piece` begin.
    at: usize,
    next: Piece,
}

#[derive(Clone, Copy)]
enum Piece {
    /// All up to the end of the next scan header.
    Segments,
    /// Up to the next marker.
    EntropyCoded,
    /// The one-bits.
    Padding,
    /// The marker behind them.
    Marker,
}

impl<'a> PaddedScans<'a> {
    const PADDING: &'static [u8] = &[0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0];

    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, piece: bytes.get(..2).unwrap_or_default(), at: 2, next: Piece::Segments }
    }

    /// Goes on to the next piece that is not empty; at the end of the file there is none.
    fn advance(&mut self) {
        while self.piece.is_empty() && self.at < self.bytes.len() {
            let start = self.at;
            (self.at, self.next) = match self.next {
                Piece::Segments => self.skip_segments(),
                Piece::EntropyCoded => {
                    let end = entropy_coded_end(self.bytes, start);
                    (end.map_or(self.bytes.len(), |end| end.marker_at), Piece::Padding)
                }
                Piece::Padding => {
                    self.piece = Self::PADDING;
                    (start, Piece::Marker)
                }
                Piece::Marker => match entropy_coded_end(self.bytes, start) {
                    Some(end) if matches!(end.marker, RST0..=RST7) => {
                        (end.after_marker, Piece::EntropyCoded)
                    }
                    _ => (start, Piece::Segments),
                },
            };
            if self.at > start {
                self.piece = &self.bytes[start..self.at];
            }
        }
    }

    /// Goes past the next scan header, or to the end of the file where there is none.
    fn skip_segments(&self) -> (usize, Piece) {
        let Ok(mut walk) = Walk::new(self.bytes) else {
            return (self.bytes.len(), Piece::Segments);
        };
        walk.at = self.at;
        while let Ok(segment) = walk.next_segment() {
            match segment.marker {
                SOS => return (walk.at, Piece::EntropyCoded),
                EOI => break,
                _ => {}
            }
        }
        (self.bytes.len(), Piece::Segments)
    }
}

impl Read for PaddedScans<'_> {
    #[inline]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            self.advance();
        }
        self.piece.read(out)
    }

    /// The codec reads byte by byte: worth a way without the loop of the default.
    #[inline]
    fn read_exact(&mut self, out: &mut [u8]) -> io::Result<()> {
        if self.piece.is_empty() {
            self.advance();
        }
        if self.piece.len() >= out.len() {
            return self.piece.read_exact(out);
        }
        let (head, tail) = out.split_at_mut(self.piece.len());
        self.piece.read_exact(head)?;
        if self.at >= self.bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_exact(tail)
    }
}
