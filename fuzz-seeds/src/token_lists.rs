//! Lists of files of tokens, and orders of their windows: whatever the bytes are, samples are read or
//! there is an error.

use std::num::NonZeroU32;
use std::sync::Arc;

use tbl_io::Stores;
use tl_tokens::{
    DocumentRows, Fill, Long, PackedRows, Sequences, TokenOptions, TokenType, Windows, open_all_in,
};

use crate::files::{Files, split};

/// Samples that are read of a file, and files that are read of a list.
const MOST: u64 = 64;

/// The documents of the corpus whose order is read have 1, 2, .. tokens.
const DOCUMENTS: u16 = 16;

/// Opens the bytes after the first as the `index.json` of LitData or MDS, and those after a zero byte
/// as each file that it lists. The first byte selects the options and the sequences.
pub fn token_list(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let (index, file) = split(bytes);
    let files = Files(vec![("index.json", index.to_vec()), ("", file.to_vec())]);
    let length = NonZeroU32::new(3).expect("not zero");
    let long = Long::Split;
    let fill = Fill::default();
    let sequences = match kind / 4 % 3 {
        0 => Sequences::Documents(DocumentRows { length, targets: false, long, fill }),
        1 => Sequences::Packed(PackedRows { long, ..PackedRows::new(length) }),
        _ => Windows::new(length).into(),
    };
    let options = TokenOptions {
        number: (kind & 1 > 0).then_some(TokenType::U16),
        column: (kind & 2 > 0).then(|| "tokens".to_owned()),
        ..TokenOptions::default()
    };
    read(files, "mem://b/index.json", &options, sequences);
}

/// Reads the three files of an order of Megatron-LM over a corpus that does not change. The first two
/// bytes are the numbers of bytes of the first two files, in units of 4; the bit after them is
/// whether samples have targets.
pub fn token_order(data: &[u8]) {
    let Some((&[first, second, targets], bytes)) = data.split_first_chunk() else { return };
    let (documents, bytes) = bytes.split_at((4 * usize::from(first)).min(bytes.len()));
    let (samples, shuffle) = bytes.split_at((4 * usize::from(second)).min(bytes.len()));
    let tokens = (0..DOCUMENTS * (DOCUMENTS + 1) / 2).flat_map(u16::to_le_bytes).collect();
    let files = Files(vec![
        ("-document_index.npy", documents.to_vec()),
        ("-sample_index.npy", samples.to_vec()),
        ("-shuffle_index.npy", shuffle.to_vec()),
        ("corpus.bin", tokens),
        ("corpus.idx", corpus_index()),
    ]);
    let windows =
        Windows { targets: targets & 1 > 0, ..Windows::new(NonZeroU32::new(5).expect("not zero")) };
    let order = Some("mem://b/order".into());
    let options = TokenOptions { order, ..TokenOptions::default() };
    read(files, "mem://b/corpus.bin", &options, windows.into());
}

/// The index of Megatron-LM of the corpus.
fn corpus_index() -> Vec<u8> {
    let lengths = || 1..=i32::from(DOCUMENTS);
    let starts = lengths().map(|length| i64::from(length * (length - 1)));
    let count = u64::from(DOCUMENTS);
    let mut index = b"MMIDIDX\0\0".to_vec();
    index.extend(1_u64.to_le_bytes());
    index.push(8);
    index.extend([count, count + 1].map(u64::to_le_bytes).concat());
    index.extend(lengths().flat_map(i32::to_le_bytes));
    index.extend(starts.flat_map(i64::to_le_bytes));
    index.extend((0..=i64::from(DOCUMENTS)).flat_map(i64::to_le_bytes));
    index
}

fn read(files: Files, location: &str, options: &TokenOptions, sequences: Sequences) {
    let stores = Stores::new().with("mem", Arc::new(files));
    let opened = open_all_in(&stores, &[location], options, sequences, |_, _| Ok(None));
    let sources = match opened {
        Ok(sources) => sources,
        Err(error) => {
            assert!(error.to_string().starts_with("mem://b/"), "{error}");
            return;
        }
    };
    let mut bytes = Vec::new();
    for source in sources.iter().take(usize::try_from(MOST).expect("few")) {
        for index in 0..source.sample_count().min(MOST) {
            if let Err(error) = source.read_into(index, &mut bytes) {
                assert_eq!(error.sample_index(), Some(index), "{error}");
            }
        }
    }
}
