//! A check of headers in Thrift's compact protocol, before the decoder reads them. The decoder
//! skips the elements of lists and maps in fields that it does not know; booleans take no bytes in
//! that, so a few bytes could keep it busy for hours.
//!
//! Source: the specification of the compact protocol (Apache Thrift, `thrift-compact-protocol.md`).

use std::io::{self, ErrorKind, Read};

/// The deepest nesting, which is that of the decoder.
const MAX_DEPTH: u32 = 64;

/// Values of the compact protocol, in the order of their numbers.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Reads the structure at the front of `reader` to its end. Every element of its lists and maps
/// takes at least one of the bytes that the reader is limited to.
///
/// # Errors
/// [`ErrorKind::InvalidData`] if it is not a structure, if a list or map has booleans or more
/// elements
/// than there are bytes, or if it nests more than 64 levels; [`ErrorKind::UnexpectedEof`] if it is
/// truncated.
pub(super) fn check_structure(reader: &mut io::Take<impl Read>) -> io::Result<()> {
    structure(reader, MAX_DEPTH)
}

fn structure<R: Read>(reader: &mut io::Take<R>, depth: u32) -> io::Result<()> {
    loop {
        let head = byte(reader)?;
        match head & 0x0f {
            0 => return Ok(()),
            TRUE | FALSE | BYTE..=UUID => {
                // The number of the field, where it does not follow from that of the one before.
                if head & 0xf0 == 0 {
                    varint(reader)?;
                }
                if head & 0x0f > FALSE {
                    value(reader, head & 0x0f, depth)?;
                }
            }
            kind => return Err(invalid(format!("a value of type {kind}"))),
        }
    }
}

fn value<R: Read>(reader: &mut io::Take<R>, kind: u8, depth: u32) -> io::Result<()> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(invalid(format!("more than {MAX_DEPTH} levels")));
    };
    match kind {
        BYTE => byte(reader).map(drop),
        I16 | I32 | I64 => varint(reader).map(drop),
        DOUBLE => skip(reader, 8),
        UUID => skip(reader, 16),
        BINARY => {
            let length = varint(reader)?;
            skip(reader, length)
        }
        STRUCT => structure(reader, depth),
        LIST | SET => {
            let head = byte(reader)?;
            let count = if head >> 4 == 0x0f { varint(reader)? } else { u64::from(head >> 4) };
            elements(reader, count, &[head & 0x0f], depth)
        }
        MAP => match varint(reader)? {
            0 => Ok(()),
            count => {
                let kinds = byte(reader)?;
                elements(reader, count, &[kinds >> 4, kinds & 0x0f], depth)
            }
        },
        kind => Err(invalid(format!("a value of type {kind}"))),
    }
}

/// Reads `count` times a value of each of `kinds`.
fn elements<R: Read>(
    reader: &mut io::Take<R>,
    count: u64,
    kinds: &[u8],
    depth: u32,
) -> io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    if kinds.iter().any(|kind| matches!(*kind, TRUE | FALSE)) {
        return Err(invalid(format!("{count} booleans, expected no list or map of them")));
    }
    if count > reader.limit() {
        return Err(invalid(format!("{count} elements in {} bytes", reader.limit())));
    }
    for _ in 0..count {
        for kind in kinds {
            value(reader, *kind, depth)?;
        }
    }
    Ok(())
}

fn byte(reader: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn varint(reader: &mut impl Read) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(reader)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(invalid("a number of more than 64 bits"))
}

fn skip<R: Read>(reader: &mut io::Take<R>, length: u64) -> io::Result<()> {
    if io::copy(&mut reader.by_ref().take(length), &mut io::sink())? < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn invalid(what: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("damaged header: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes the structure at the front of `bytes` has, or what is wrong with it.
    fn check(bytes: &[u8]) -> Result<u64, String> {
        let mut reader = bytes.take(bytes.len() as u64);
        check_structure(&mut reader).map_err(|error| error.to_string())?;
        Ok(bytes.len() as u64 - reader.limit())
    }

    #[test]
    fn every_type_is_read_to_its_end() {
        let values: [&[u8]; 14] = [
            &[0x11],
            &[0x02, 0x04],
            &[0x13, 0xff],
            &[0x14, 0x80, 0x01],
            &[0x15, 0x00],
            &[0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x17, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0x18, 0x03, b'a', b'b', b'c'],
            &[0x19, 0x35, 0x00, 0x02, 0x04],
            &[0x1a, 0xf3, 0x02, 0x00, 0x00],
            &[0x1b, 0x02, 0x58, 0x01, 0x01, b'x', 0x02, 0x00],
            &[0x1b, 0x00],
            &[0x1c, 0x15, 0x02, 0x00],
            &[0x1d, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        ];
        let whole = [&values.concat()[..], &[0x00]].concat();
        assert_eq!(check(&whole), Ok(whole.len() as u64));
        assert_eq!(check(&[&whole[..], b"data"].concat()), Ok(whole.len() as u64));
        for end in 0..whole.len() {
            assert!(check(&whole[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn elements_without_bytes_are_refused() {
        let error = |bytes: &[u8]| check(bytes).unwrap_err();
        let many = [0xff, 0xff, 0xff, 0xff, 0x07];
        for kind in [TRUE, FALSE] {
            let list = [&[0x19, 0xf0 | kind][..], &many, &[0, 0]].concat();
            assert!(error(&list).contains("2147483647 booleans"), "{}", error(&list));
            let map = [&[0x1b][..], &many, &[0x50 | kind, 0, 0]].concat();
            assert!(error(&map).contains("2147483647 booleans"), "{}", error(&map));
        }
        let list = [&[0x19, 0xfc][..], &many, &[0, 0]].concat();
        assert!(error(&list).contains("2147483647 elements in 2 bytes"), "{}", error(&list));
        assert!(error(&[0x1e, 0]).contains("type 14"));
        assert!(error(&[0x1c; 100]).contains("64 levels"));
        assert!(error(&[0xff; 3]).contains("type 15"));
    }
}
