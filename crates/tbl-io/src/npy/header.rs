//! The header of a `.npy` file: a Python dictionary with the keys `descr`, `fortran_order` and
//! `shape`.

use super::{NpyArray, NpyError, NpyHeader, NpyKind};

/// NumPy reads headers of up to 10,000 bytes unless told otherwise, and allows 32 dimensions (64
/// from version 2 on).
const MAX_HEADER: usize = 10_000;
const MAX_DIMENSIONS: usize = 64;

const MAGIC: [u8; 6] = NpyArray::MAGIC;

impl<'a> NpyArray<'a> {
    /// The first bytes of every `.npy` file.
    pub const MAGIC: [u8; 6] = *b"\x93NUMPY";

    /// Reads the array of a whole `.npy` file. Nothing is allocated in proportion to numbers in it.
    ///
    /// # Errors
    /// [`NpyError`] for another file, a damaged header, arrays of other things than numbers, and data
    /// of another length than the shape says.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NpyError> {
        let header = NpyHeader::parse(bytes)?;
        let NpyHeader { kind, item_bytes, is_big_endian, is_fortran, .. } = header;
        let data = &bytes[header.data_offset..];
        let is_whole = header.data_bytes() == Some(data.len() as u64);
        let shape = header.shape;
        if !is_whole {
            return Err(NpyError::Size { shape, item_bytes, have: data.len() as u64 });
        }
        Ok(Self { kind, item_bytes, is_big_endian, is_fortran, shape, data })
    }
}

impl NpyHeader {
    /// The most bytes that a header takes, with the magic and the length.
    pub const MOST_BYTES: usize = MAGIC.len() + 2 + 4 + MAX_HEADER;

    /// Reads the header at the front of `bytes`: a whole file, or its first
    /// [`MOST_BYTES`](Self::MOST_BYTES).
    ///
    /// # Errors
    /// [`NpyError`] for another file, a damaged header, and arrays of other things than numbers.
    pub fn parse(bytes: &[u8]) -> Result<Self, NpyError> {
        let truncated = |what, need: usize, have: usize| NpyError::Truncated {
            what,
            need: need as u64,
            have: have as u64,
        };
        if !bytes.starts_with(&MAGIC) {
            let start = bytes[..bytes.len().min(MAGIC.len())].to_vec();
            return Err(NpyError::Magic { start });
        }
        let (&[major, minor], rest) = bytes[MAGIC.len()..]
            .split_first_chunk()
            .ok_or_else(|| truncated(".npy header", MAGIC.len() + 2, bytes.len()))?;
        let length_bytes = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => return Err(NpyError::Version { major, minor }),
        };
        let front = MAGIC.len() + 2 + length_bytes;
        let (length, rest) = rest
            .split_at_checked(length_bytes)
            .ok_or_else(|| truncated(".npy header", front, bytes.len()))?;
        let length =
            length.iter().rev().fold(0_usize, |length, &byte| length << 8 | usize::from(byte));
        if length > MAX_HEADER {
            let expected = "at most 10000 bytes";
            return Err(NpyError::Header { offset: front, expected });
        }
        let header = rest
            .get(..length)
            .ok_or_else(|| truncated(".npy header", front + length, bytes.len()))?;
        let mut parser = Parser { header, at: 0, front };
        let Dictionary { descr, is_fortran, shape } = parser.dictionary()?;
        let (kind, item_bytes, is_big_endian) =
            number(&descr).ok_or_else(|| NpyError::Dtype { descr: descr.clone() })?;
        let data_offset = front + length;
        Ok(Self { kind, item_bytes, is_big_endian, is_fortran, shape, data_offset })
    }

    /// Bytes of all numbers; `None` beyond the address space.
    #[must_use]
    pub fn data_bytes(&self) -> Option<u64> {
        let bytes =
            self.shape.iter().try_fold(self.item_bytes, |bytes, &side| bytes.checked_mul(side));
        bytes.map(|bytes| bytes as u64)
    }
}

/// Kind, bytes and order of a type such as `<f4`.
fn number(descr: &str) -> Option<(NpyKind, usize, bool)> {
    let mut chars = descr.chars();
    let order = chars.next()?;
    let kind = match chars.next()? {
        'b' => NpyKind::Bool,
        'u' => NpyKind::Unsigned,
        'i' => NpyKind::Signed,
        'f' => NpyKind::Float,
        _ => return None,
    };
    let bytes: usize = match chars.as_str() {
        "1" => 1,
        "2" => 2,
        "4" => 4,
        "8" => 8,
        _ => return None,
    };
    let fits = match kind {
        NpyKind::Bool => bytes == 1,
        NpyKind::Unsigned | NpyKind::Signed => true,
        NpyKind::Float => bytes > 1,
    };
    let is_big_endian = match order {
        '<' | '|' => false,
        '>' => true,
        '=' => cfg!(target_endian = "big"),
        _ => return None,
    };
    fits.then_some((kind, bytes, is_big_endian))
}

struct Dictionary {
    descr: String,
    is_fortran: bool,
    shape: Vec<usize>,
}

/// A parser of the Python literals that NumPy writes.
struct Parser<'a> {
    header: &'a [u8],
    at: usize,
    /// The offset of the header in the file.
    front: usize,
}

impl Parser<'_> {
    fn dictionary(&mut self) -> Result<Dictionary, NpyError> {
        let mut descr = None;
        let mut is_fortran = None;
        let mut shape = None;
        self.expect(b'{', "a dictionary")?;
        while !self.skip(b'}') {
            let key = self.text("a key in quotes")?;
            self.expect(b':', "a colon")?;
            match &*key {
                "descr" => descr = Some(self.descr()?),
                "fortran_order" => is_fortran = Some(self.truth()?),
                "shape" => shape = Some(self.shape()?),
                _ => return Err(self.error("the keys descr, fortran_order and shape")),
            }
            if !self.skip(b',') {
                self.expect(b'}', "a comma or the end of the dictionary")?;
                break;
            }
        }
        match (descr, is_fortran, shape) {
            (Some(descr), Some(is_fortran), Some(shape)) => {
                Ok(Dictionary { descr, is_fortran, shape })
            }
            _ => Err(self.error("the keys descr, fortran_order and shape")),
        }
    }

    /// The type of the numbers; a list describes records, which are not numbers.
    fn descr(&mut self) -> Result<String, NpyError> {
        if self.peek() == Some(b'[') {
            let rest = String::from_utf8_lossy(&self.header[self.at..]);
            let end = rest.find(']').map_or(rest.len(), |end| end + 1);
            return Err(NpyError::Dtype { descr: rest[..end].to_owned() });
        }
        self.text("a dtype in quotes")
    }

    fn truth(&mut self) -> Result<bool, NpyError> {
        self.space();
        for (word, value) in [("True", true), ("False", false)] {
            if self.header[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("True or False"))
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        let mut shape = Vec::new();
        self.expect(b'(', "a tuple")?;
        while !self.skip(b')') {
            shape.push(self.side()?);
            if shape.len() > MAX_DIMENSIONS {
                return Err(self.error("at most 64 dimensions"));
            }
            if !self.skip(b',') {
                self.expect(b')', "a comma or the end of the tuple")?;
                break;
            }
        }
        Ok(shape)
    }

    fn side(&mut self) -> Result<usize, NpyError> {
        self.space();
        let digits = self.header[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.header[self.at..self.at + digits]).ok();
        let side = text.and_then(|text| text.parse().ok());
        let side = side.ok_or_else(|| self.error("a whole number"))?;
        self.at += digits;
        // Python 2 wrote long integers so.
        if self.header.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        Ok(side)
    }

    fn text(&mut self, expected: &'static str) -> Result<String, NpyError> {
        let quote = self.peek().filter(|byte| matches!(byte, b'\'' | b'"'));
        let quote = quote.ok_or_else(|| self.error(expected))?;
        let start = self.at + 1;
        let length = self.header[start..].iter().position(|&byte| byte == quote);
        let length = length.ok_or_else(|| self.error("the end of the quotes"))?;
        self.at = start + length + 1;
        Ok(String::from_utf8_lossy(&self.header[start..start + length]).into_owned())
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.skip(byte) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.header.get(self.at).copied()
    }

    fn space(&mut self) {
        let rest = &self.header[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn error(&self, expected: &'static str) -> NpyError {
        NpyError::Header { offset: self.front + self.at, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = [&MAGIC[..], &[version, 0]].concat();
        let length = u32::try_from(header.len()).unwrap().to_le_bytes();
        file.extend_from_slice(if version == 1 { &length[..2] } else { &length });
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(data);
        file
    }

    fn parsed(header: &str, data: &[u8]) -> Result<(Vec<usize>, usize), NpyError> {
        let file = file(1, header, data);
        NpyArray::parse(&file).map(|array| (array.shape, array.item_bytes))
    }

    #[test]
    fn headers_that_numpy_writes_are_read() {
        let check = |header: &str, bytes: usize, expected: (&[usize], usize)| {
            let (shape, item) = parsed(header, &vec![0; bytes]).unwrap();
            assert_eq!((&shape[..], item), expected, "{header}");
        };
        check("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48, (&[3, 4], 4));
        check("{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n", 1, (&[], 1));
        check("{'descr': '>i8', 'fortran_order': True, 'shape': (0,), }\n", 0, (&[0], 8));
        check(r#"{"shape": (2L,), "descr": "|b1", "fortran_order": False}"#, 2, (&[2], 1));
        for version in [2, 3] {
            let file = file(version, "{'descr':'<f2','fortran_order':True,'shape':(1,),}", &[0, 0]);
            let array = NpyArray::parse(&file).unwrap();
            assert!(array.is_fortran && array.kind == NpyKind::Float && !array.is_big_endian);
        }
    }

    #[test]
    fn other_arrays_and_damage_are_errors_by_name() {
        let error = |header: &str| parsed(header, &[0; 4]).unwrap_err().to_string();
        let check = |header: &str, expected: &str| {
            let error = error(header);
            assert!(error.contains(expected), "{header}: {error}");
        };
        check("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "dtype `<c8`");
        check("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "dtype `|O`");
        check("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", "('a', '<i4')]");
        check("{'descr': '<f4', 'shape': (1,), }", "the keys descr, fortran_order and shape");
        check("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,), }", "True or False");
        check("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "a whole number");
        check("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "shape [2]");
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999999999), }";
        check(huge, "has 4 bytes of data");
        assert!(matches!(NpyArray::parse(b"PK\x03\x04"), Err(NpyError::Magic { .. })));
        assert_eq!(
            NpyArray::parse(b"").unwrap_err().to_string(),
            "not a .npy file: it starts with nothing"
        );
        let unknown = NpyArray::parse(b"\x93NUMPY\x04\x00\x00\x00");
        assert_eq!(unknown.unwrap_err(), NpyError::Version { major: 4, minor: 0 });
    }

    #[test]
    fn every_prefix_and_every_changed_byte_gives_an_error_or_an_array() {
        let whole = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", &[7; 8]);
        for length in 0..whole.len() {
            assert!(NpyArray::parse(&whole[..length]).is_err(), "{length} bytes");
        }
        for place in 0..whole.len() {
            for change in [1, 0x20, 0x80] {
                let mut file = whole.clone();
                file[place] ^= change;
                if let Ok(array) = NpyArray::parse(&file) {
                    assert_eq!(array.shape.iter().product::<usize>() * array.item_bytes, 8);
                }
            }
        }
    }
}
