//! The synsets in `meta.mat` of ImageNet's development kit: a MATLAB file of level 5 with one array
//! of structures.
//!
//! The layout is that of "MAT-File Format" (MathWorks): elements with a type, a length and data,
//! whose arrays consist of further elements.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// A synset of ImageNet: its number in the development kit, and its name in `WordNet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Synset {
    pub(super) number: i64,
    pub(super) wnid: String,
}

const HEADER_BYTES: usize = 128;

/// The most bytes that the file may have once it is decompressed: some hundred times those of
/// ImageNet.
const MAX_BYTES: u64 = 64 << 20;

// Types of elements and classes of arrays.
const MI_UINT16: u32 = 4;
const MI_MATRIX: u32 = 14;
const MI_COMPRESSED: u32 = 15;
const STRUCTURE: u8 = 2;
const TEXT: u8 = 4;

struct Element<'a> {
    kind: u32,
    data: &'a [u8],
}

/// Elements in sequence.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn next(&mut self) -> Option<Element<'a>> {
        let (tag, after) = self.0.split_first_chunk::<4>()?;
        let tag = u32::from_le_bytes(*tag);
        let small = (tag >> 16) as usize;
        if small > 0 {
            let (data, after) = after.split_at_checked(4)?;
            self.0 = after;
            return Some(Element { kind: tag & 0xffff, data: data.get(..small)? });
        }
        let (len, after) = after.split_first_chunk::<4>()?;
        let (data, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        let padding =
            if tag == MI_COMPRESSED { 0 } else { data.len().next_multiple_of(8) - data.len() };
        self.0 = after.get(padding.min(after.len())..)?;
        Some(Element { kind: tag, data })
    }
}

/// The synsets in the bytes of the file; `None` if it has another form.
pub(super) fn synsets(file: &[u8]) -> Option<Vec<Synset>> {
    if file.get(HEADER_BYTES - 2..HEADER_BYTES)? != b"IM" {
        return None;
    }
    let mut elements = Elements(file.get(HEADER_BYTES..)?);
    while let Some(element) = elements.next() {
        let mut unpacked = Vec::new();
        let element = if element.kind == MI_COMPRESSED {
            ZlibDecoder::new(element.data).take(MAX_BYTES).read_to_end(&mut unpacked).ok()?;
            Elements(&unpacked).next()?
        } else {
            element
        };
        if element.kind == MI_MATRIX
            && let Some(found) = structures(element.data)
        {
            return Some(found);
        }
    }
    None
}

/// An array: its class, and the elements after its name.
fn array(data: &[u8]) -> Option<(u8, usize, Elements<'_>)> {
    let mut elements = Elements(data);
    let class = *elements.next()?.data.first()?;
    let dims = elements.next()?.data.as_chunks::<4>().0;
    let count = dims.iter().try_fold(1_usize, |count, dim| {
        count.checked_mul(usize::try_from(i32::from_le_bytes(*dim)).ok()?)
    })?;
    elements.next()?;
    Some((class, count, elements))
}

/// The synsets in an array of structures with fields `ILSVRC2012_ID` and `WNID`.
fn structures(data: &[u8]) -> Option<Vec<Synset>> {
    let (class, count, mut elements) = array(data)?;
    if class != STRUCTURE {
        return None;
    }
    let name_bytes = i32::from_le_bytes(*elements.next()?.data.first_chunk()?);
    let name_bytes = usize::try_from(name_bytes).ok().filter(|&bytes| bytes > 0)?;
    let names = elements.next()?.data.chunks_exact(name_bytes);
    let names: Vec<&[u8]> =
        names.map(|name| name.split(|&byte| byte == 0).next().unwrap_or(name)).collect();
    let mut synsets = Vec::new();
    for _ in 0..count {
        let mut number = None;
        let mut wnid = None;
        for name in &names {
            let value = elements.next().filter(|value| value.kind == MI_MATRIX)?;
            match *name {
                b"ILSVRC2012_ID" => number = scalar(value.data),
                b"WNID" => wnid = text(value.data),
                _ => {}
            }
        }
        synsets.push(Synset { number: number?, wnid: wnid? });
    }
    Some(synsets)
}

/// The first number of an array, as a whole number.
fn scalar(data: &[u8]) -> Option<i64> {
    let (_, _, mut elements) = array(data)?;
    let Element { kind, data } = elements.next()?;
    let whole = |bytes: usize| -> Option<i64> {
        let bytes = data.get(..bytes)?;
        Some(bytes.iter().rev().fold(0_i64, |number, &byte| number << 8 | i64::from(byte)))
    };
    #[expect(clippy::cast_possible_truncation, reason = "numbers of synsets are small")]
    match kind {
        1 | 2 => whole(1),
        3 | MI_UINT16 => whole(2),
        5 | 6 => whole(4),
        7 => Some(f32::from_le_bytes(*data.first_chunk()?) as i64),
        9 => Some(f64::from_le_bytes(*data.first_chunk()?) as i64),
        _ => None,
    }
}

/// The characters of an array of text, which are ASCII in names of `WordNet`.
fn text(data: &[u8]) -> Option<String> {
    let (class, _, mut elements) = array(data)?;
    let Element { kind, data } = elements.next().filter(|_| class == TEXT)?;
    let step = if kind == MI_UINT16 { 2 } else { 1 };
    let bytes: Vec<u8> = data.iter().copied().step_by(step).collect();
    String::from_utf8(bytes).ok()
}
