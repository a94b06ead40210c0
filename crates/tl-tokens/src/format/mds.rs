//! Shards of MDS, as MosaicML Streaming writes them: the number of samples, the first byte of each
//! and the end of the last, 32 bits each, then a configuration and the samples.
//!
//! A sample is the sizes of its columns that have no fixed one, 32 bits each, then all columns. Arrays
//! may begin with the code of their type, and with their shape.

use serde::Deserialize;
use tbl_io::{Location, Mapped, ReadError, Source, TokensDefect};

use crate::layout::{TokenFormat, defect};
use crate::number::TokenType;
use crate::records::TokenRecords;

/// Bytes of the number of samples, of a sample's place and of a size.
const NUMBER_BYTES: u64 = 4;

/// Samples whose places are read at once.
const READ_AT_ONCE: u64 = 1 << 14;

/// A shard in `index.json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Shard {
    pub(crate) raw_data: RawData,
    pub(crate) compression: Option<String>,
    samples: u64,
    column_names: Vec<String>,
    column_encodings: Vec<String>,
    column_sizes: Vec<Option<u64>>,
}

/// The file of a shard.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawData {
    pub(crate) basename: String,
    bytes: u64,
}

/// The encoding of a column of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    /// Bytes, of a type that the caller knows.
    Bytes,
    /// An array; the type and the shape may be the same for all samples.
    Array { number: Option<TokenType>, is_shaped: bool },
}

impl Encoding {
    fn named(name: &str) -> Option<Self> {
        let mut parts = name.split(':');
        match (parts.next()?, parts.next(), parts.next()) {
            ("bytes", None, None) => Some(Self::Bytes),
            ("ndarray", None, None) => Some(Self::Array { number: None, is_shaped: false }),
            ("ndarray", Some(number), shape) => {
                let number = Some(TokenType::named(number)?);
                Some(Self::Array { number, is_shaped: shape.is_some() })
            }
            _ => None,
        }
    }
}

/// A shard whose samples have a column of tokens.
#[derive(Debug)]
pub(crate) struct Mds {
    source: Source,
    mapped: Option<Mapped>,
    samples: u64,
    encoding: Encoding,
    number: TokenType,
    /// The bytes of columns with a fixed size before the column.
    fixed_before: u64,
    /// The bytes of all columns with a fixed size but this one.
    fixed_others: u64,
    /// The fixed size of the column itself.
    size: Option<u64>,
    /// The columns without a fixed size, and how many of them are before the column.
    sizes: u64,
    sizes_before: u64,
}

impl Mds {
    /// Opens a shard. `column` is the column of tokens, `number` the type of those that are bytes.
    pub(crate) fn open(
        shard: &Shard,
        source: Source,
        column: Option<&str>,
        number: Option<TokenType>,
    ) -> Result<Self, ReadError> {
        let need = shard.raw_data.bytes;
        super::check_len(&source, "samples of the shard", Some(need))?;
        let place = column_of(shard, &source, column)?;
        let encoding = Encoding::named(&shard.column_encodings[place]);
        let encoding = encoding.ok_or_else(|| {
            let found = shard.column_encodings[place].clone();
            defect(&source, 0, TokensDefect::Encoding { what: "column", found })
        })?;
        let columns = shard.column_sizes.iter().enumerate();
        let sum = |is: &dyn Fn(usize) -> bool| {
            let sizes = columns.clone().filter(|(column, _)| is(*column));
            sizes.filter_map(|(_, size)| *size).fold(0, u64::saturating_add)
        };
        let count = |is: &dyn Fn(usize) -> bool| {
            columns.clone().filter(|(column, size)| is(*column) && size.is_none()).count() as u64
        };
        let mapped = match Mapped::new(&source, 0, source.len()) {
            Ok(mapped) => Some(mapped),
            Err(ReadError::NotMapped { .. } | ReadError::Limit { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut mds = Self {
            source,
            mapped,
            samples: shard.samples,
            encoding,
            number: TokenType::U8,
            fixed_before: sum(&|column| column < place),
            fixed_others: sum(&|column| column != place),
            size: shard.column_sizes[place],
            sizes: count(&|_| true),
            sizes_before: count(&|column| column < place),
        };
        mds.number = mds.type_of(number)?;
        Ok(mds)
    }

    /// The type of the tokens: of the encoding, of the first sample, or of the caller.
    fn type_of(&self, given: Option<TokenType>) -> Result<TokenType, ReadError> {
        let front = self.samples.checked_add(2).and_then(|places| places.checked_mul(NUMBER_BYTES));
        let have = self.source.len();
        let need = front.unwrap_or(u64::MAX);
        if need > have {
            let what = "places of samples";
            return Err(self.defect(have, TokensDefect::Length { what, need, have }));
        }
        let found = u64::from(self.number_at(0)?);
        if found != self.samples {
            let expected = self.samples;
            return Err(self.defect(0, TokensDefect::Chunk { found, expected }));
        }
        match self.encoding {
            Encoding::Bytes => given.ok_or_else(|| self.defect(0, TokensDefect::NoType)),
            Encoding::Array { number: Some(number), .. } => Ok(number),
            Encoding::Array { number: None, .. } if self.samples == 0 => Ok(TokenType::I64),
            Encoding::Array { number: None, .. } => {
                let (offset, size) = self.column(0)?;
                let mut code = [0];
                if size > 0 {
                    self.read_exact(offset, &mut code)?;
                }
                type_with(code[0])
                    .ok_or_else(|| self.defect(offset, TokensDefect::TypeCode { code: code[0] }))
            }
        }
    }

    fn defect(&self, offset: u64, source: TokensDefect) -> ReadError {
        defect(&self.source, offset, source)
    }

    fn read_exact(&self, offset: u64, bytes: &mut [u8]) -> Result<(), ReadError> {
        match &self.mapped {
            Some(mapped) => mapped.read_exact_at(offset, bytes),
            None => self.source.read_exact_at(offset, bytes),
        }
    }

    fn number_at(&self, offset: u64) -> Result<u32, ReadError> {
        let mut bytes = [0; 4];
        self.read_exact(offset, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Start and end of sample `sample`, which exists.
    fn sample(&self, sample: u64) -> Result<(u64, u64), ReadError> {
        let mut bytes = [0; 8];
        let at = (1 + sample) * NUMBER_BYTES;
        self.read_exact(at, &mut bytes)?;
        let place = |at: usize| {
            let number = bytes[at..at + 4].try_into().expect("four of eight bytes");
            u64::from(u32::from_le_bytes(number))
        };
        self.checked(sample, place(0), place(4))
    }

    /// The bounds of a sample, if they lie in the file.
    fn checked(&self, sample: u64, start: u64, end: u64) -> Result<(u64, u64), ReadError> {
        let least = (2 + self.samples) * NUMBER_BYTES;
        if start >= least && start <= end && end <= self.source.len() {
            return Ok((start, end));
        }
        let at = (1 + sample) * NUMBER_BYTES;
        let bytes = self.source.len();
        Err(self.defect(at, TokensDefect::Record { record: sample, start, end, bytes }))
    }

    /// Offset and bytes of the column in sample `sample`, which exists.
    fn column(&self, sample: u64) -> Result<(u64, u64), ReadError> {
        let (start, end) = self.sample(sample)?;
        let sizes = self.sizes * NUMBER_BYTES;
        let mut before = self.fixed_before;
        let mut size = self.size.unwrap_or_default();
        let outside = || {
            let bytes = self.source.len();
            self.defect(start, TokensDefect::Record { record: sample, start, end, bytes })
        };
        if sizes > end - start {
            return Err(outside());
        }
        for column in 0..self.sizes_before {
            let size = self.number_at(start + column * NUMBER_BYTES)?;
            before = before.saturating_add(size.into());
        }
        if self.size.is_none() {
            size = self.number_at(start + self.sizes_before * NUMBER_BYTES)?.into();
        }
        let offset = before.checked_add(start + sizes);
        let inside = offset.filter(|offset| offset.checked_add(size).is_some_and(|to| to <= end));
        Ok((inside.ok_or_else(outside)?, size))
    }

    /// The bytes before the numbers of a column of `size` bytes, and how many numbers there are.
    fn split(&self, size: u64) -> Option<(u64, u32)> {
        let item = self.number.bytes() as u64;
        let count = |header: u64| {
            let bytes = size.checked_sub(header)?;
            u32::try_from(bytes / item).ok().filter(|_| bytes.is_multiple_of(item))
        };
        let with = |header: u64| count(header).map(|count| (header, count));
        let code = match self.encoding {
            Encoding::Bytes => return with(0),
            Encoding::Array { number, is_shaped: true } => return with(number.is_none().into()),
            Encoding::Array { number, is_shaped: false } => u64::from(number.is_none()),
        };
        // The shape takes as many bytes as its number needs.
        [1, 2, 4].into_iter().find_map(|width| {
            with(code + 1 + width).filter(|&(_, count)| shape_bytes(count) == width)
        })
    }

    /// Fails unless the bytes before an array's numbers say what it is.
    fn check_header(&self, record: u64, offset: u64, count: u32) -> Result<(), ReadError> {
        let Encoding::Array { number, is_shaped } = self.encoding else { return Ok(()) };
        let mut expected = Vec::new();
        if number.is_none() {
            expected.push(code_of(self.number));
        }
        if !is_shaped {
            let (logarithm, width) = match shape_bytes(count) {
                1 => (0, 1),
                2 => (1, 2),
                _ => (2, 4),
            };
            // One dimension, and the type of the shape.
            expected.push(1 << 2 | logarithm);
            expected.extend(count.to_le_bytes().into_iter().take(width));
        }
        let mut found = vec![0; expected.len()];
        self.read_exact(offset, &mut found)?;
        if found == expected { Ok(()) } else { Err(self.defect(offset, self.array(record))) }
    }

    fn array(&self, record: u64) -> TokensDefect {
        TokensDefect::RecordArray { record, number: self.number.name() }
    }

    /// The numbers of a column of `size` bytes in sample `sample`.
    fn count(&self, sample: u64, size: u64) -> Result<u32, ReadError> {
        let count = self.split(size).map(|(_, count)| count);
        count.ok_or_else(|| self.defect((1 + sample) * NUMBER_BYTES, self.array(sample)))
    }
}

impl TokenRecords for Mds {
    fn location(&self) -> &Location {
        self.source.location()
    }

    fn format(&self) -> TokenFormat {
        TokenFormat::Mds
    }

    fn number(&self) -> TokenType {
        self.number
    }

    fn lengths(&self, add: &mut dyn FnMut(u32) -> Result<(), ReadError>) -> Result<(), ReadError> {
        // The size of the only column without a fixed one follows from the places of samples.
        let is_alone = self.sizes == u64::from(self.size.is_none());
        let others = self.fixed_others.saturating_add(self.sizes * NUMBER_BYTES);
        let mut first = 0;
        let mut bytes = Vec::new();
        while first < self.samples {
            let count = READ_AT_ONCE.min(self.samples - first);
            let at = (1 + first) * NUMBER_BYTES;
            self.source.read_range_into(at, (count + 1) * NUMBER_BYTES, &mut bytes)?;
            let places: Vec<u64> =
                bytes.as_chunks().0.iter().map(|place| u32::from_le_bytes(*place).into()).collect();
            for (pair, sample) in places.windows(2).zip(first..) {
                let (start, end) = self.checked(sample, pair[0], pair[1])?;
                let size = match (end - start).checked_sub(others).filter(|_| is_alone) {
                    Some(size) => size,
                    // Fails where the sample is too short.
                    None => self.column(sample)?.1,
                };
                add(self.count(sample, size)?)?;
            }
            first += count;
        }
        Ok(())
    }

    fn read(
        &self,
        record: u64,
        first: u64,
        count: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let (offset, size) = self.column(record)?;
        let split = self.split(size).filter(|&(_, have)| first + count <= have.into());
        let (header, have) = split.ok_or_else(|| self.defect(offset, self.array(record)))?;
        self.check_header(record, offset, have)?;
        let item = self.number.bytes() as u64;
        let before = out.len();
        let bytes = usize::try_from(count * item).unwrap_or(usize::MAX);
        out.resize(before.saturating_add(bytes), 0);
        self.read_exact(offset + header + first * item, &mut out[before..])
    }

    fn offset(&self, record: u64) -> u64 {
        self.sample(record).map_or((1 + record) * NUMBER_BYTES, |(start, _)| start)
    }
}

/// The place of the column of tokens: the named one, or the only one that can have them.
fn column_of(shard: &Shard, source: &Source, name: Option<&str>) -> Result<usize, ReadError> {
    let columns = shard.column_names.len();
    if shard.column_encodings.len() != columns || shard.column_sizes.len() != columns {
        let reason = "not one encoding and one size for each column".to_owned();
        return Err(defect(source, 0, TokensDefect::Index { reason }));
    }
    let can = |&place: &usize| Encoding::named(&shard.column_encodings[place]).is_some();
    let named = |place: &usize| name.is_none_or(|name| shard.column_names[*place] == name);
    let found: Vec<usize> = (0..columns).filter(can).collect();
    match found.iter().copied().filter(named).collect::<Vec<_>>()[..] {
        [place] => Ok(place),
        _ => {
            let found = found.iter().map(|&place| shard.column_names[place].clone()).collect();
            let name = name.map(str::to_owned);
            Err(defect(source, 0, TokensDefect::NoColumn { name, found }))
        }
    }
}

/// The bytes that a shape takes.
const fn shape_bytes(count: u32) -> u64 {
    match count {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

/// Each type with its code in arrays of any type.
const CODES: [(u8, TokenType); 8] = [
    (8, TokenType::U8),
    (9, TokenType::I8),
    (16, TokenType::U16),
    (17, TokenType::I16),
    (32, TokenType::U32),
    (33, TokenType::I32),
    (64, TokenType::U64),
    (65, TokenType::I64),
];

fn type_with(code: u8) -> Option<TokenType> {
    CODES.into_iter().find(|(known, _)| *known == code).map(|(_, number)| number)
}

fn code_of(number: TokenType) -> u8 {
    CODES.into_iter().find(|(_, known)| *known == number).map_or(0, |(code, _)| code)
}
