//! The order of windows that Megatron-LM cached in three files of NumPy.
//!
//! The document index lists documents in the order of an epoch, one epoch after the other. The sample
//! index has for each sample a place in this list and a token of the document there: a sample reaches
//! from its place to that of the next one, and has one further token for targets. The shuffle index
//! lists samples in the order of training.

use std::ffi::OsStr;

use tbl_io::{Location, ReadError, Source, Stores, TokensDefect};

use crate::documents::Documents;
use crate::file::TokenFile;
use crate::format;
use crate::mix::mix;
use crate::number::TokenType;
use crate::rows::Piece;

/// The ends of the names of the three files.
const NAMES: [&str; 3] = ["-document_index.npy", "-sample_index.npy", "-shuffle_index.npy"];

/// Numbers at both ends of a file that tell it from others.
const HASHED: u64 = 512;

/// An order: the documents and tokens of each sample, and the sample at each place.
#[derive(Debug)]
pub(crate) struct MegatronOrder {
    documents: TokenFile,
    samples: TokenFile,
    shuffle: TokenFile,
    pub(crate) id: u64,
}

impl MegatronOrder {
    /// Opens the three files whose paths begin with `prefix`, or of which `prefix` is one.
    pub(crate) fn open(stores: &Stores, prefix: &OsStr) -> Result<Self, ReadError> {
        let prefix = Location::new(prefix);
        let text = prefix.as_os_str().as_encoded_bytes();
        let stem = NAMES.iter().find_map(|name| text.strip_suffix(name.as_bytes()));
        let stem = stem.unwrap_or(text);
        let name =
            &stem[stem.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)..];
        let open = |end: &str| {
            let location = prefix.folder().join(&[name, end.as_bytes()].concat());
            stores.open_existing(&location)?.ok_or_else(|| {
                let text = "expected the three files of Megatron-LM's order: document_index.npy, \
                            sample_index.npy and shuffle_index.npy after the same prefix";
                let source = std::io::Error::new(std::io::ErrorKind::NotFound, text);
                ReadError::Io { location, source }
            })
        };
        let [documents, samples, shuffle] = NAMES;
        Self::new(open(documents)?, open(samples)?, open(shuffle)?)
    }

    fn new(documents: Source, samples: Source, shuffle: Source) -> Result<Self, ReadError> {
        let list = |source| format::npy_table(source, 1);
        let [documents, samples, shuffle] =
            [list(documents)?, format::npy_table(samples, 2)?, list(shuffle)?];
        let count = shuffle.len();
        let need = count.checked_add(1).and_then(|places| places.checked_mul(2));
        if need != Some(samples.len()) {
            let found = samples.len() / 2;
            return Err(samples.defect(0, TokensDefect::OrderLength { found, count }));
        }
        let mut order = Self { documents, samples, shuffle, id: 0 };
        order.id = order.hash()?;
        Ok(order)
    }

    /// A number that tells this order from others.
    fn hash(&self) -> Result<u64, ReadError> {
        let mut id = 0;
        for file in [&self.documents, &self.samples, &self.shuffle] {
            let count = file.len();
            id = mix(id, count);
            for number in (0..count.min(HASHED)).chain(count.saturating_sub(HASHED)..count) {
                id = mix(id, self.number(file, number, u64::MAX)?);
            }
        }
        Ok(id)
    }

    /// The number of samples.
    pub(crate) fn count(&self) -> u64 {
        self.shuffle.len()
    }

    /// Adds the pieces of sample `sample`, which exists: `span` tokens, of which the last is the
    /// further one for targets if there are `targets`.
    pub(crate) fn pieces(
        &self,
        documents: &Documents,
        sample: u64,
        span: u64,
        targets: bool,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), ReadError> {
        let stored = self.number(&self.shuffle, sample, self.count())?;
        let at = |place: u64, most: u64| self.number(&self.samples, 2 * stored + place, most);
        let places = self.documents.len();
        let [first, last] = [at(0, places)?, at(2, places)?];
        let [mut start, last_end] = [at(1, u64::MAX)?, at(3, u64::MAX)?];
        let wrong = |found| {
            let offset = self.samples.range(2 * stored, 0).map_or(0, |(offset, _)| offset);
            self.samples.defect(offset, TokensDefect::OrderSample { sample, found, expected: span })
        };
        let mut found = 0;
        for place in first..=last {
            let document = self.number(&self.documents, place, documents.len())?;
            let (token, length) = documents.place(document)?;
            let further = last_end.saturating_add(targets.into());
            let end = if place < last { length } else { further };
            let count = end.checked_sub(start).filter(|_| end <= length);
            let count = count.ok_or_else(|| wrong(end))?;
            found += count;
            if found > span {
                break;
            }
            if count > 0 {
                pieces.push(Piece { first: token + start, count, continues: false });
            }
            start = 0;
        }
        if found == span { Ok(()) } else { Err(wrong(found)) }
    }

    /// Number `place` of a file, which must be less than `most`.
    fn number(&self, file: &TokenFile, place: u64, most: u64) -> Result<u64, ReadError> {
        let mut bytes = [0; size_of::<i64>()];
        let kind = file.number();
        let mut buffer = Vec::new();
        let convert = |stored: &[u8]| kind.convert(stored, TokenType::I64, &mut bytes);
        let converted = file.read(place, 1, &mut buffer, convert)?;
        let number = u64::try_from(i64::from_ne_bytes(bytes)).ok();
        let number = number.filter(|&number| converted.is_ok() && number < most);
        number.ok_or_else(|| {
            let offset = file.range(place, 1).map_or(0, |(offset, _)| offset);
            let value = i64::from_ne_bytes(bytes);
            file.defect(offset, TokensDefect::OrderNumber { value, most })
        })
    }
}
