//! Files of tokens: whatever the bytes are, opening ends with an error or with tokens that lie in the
//! file.

use std::num::NonZeroU32;

use tbl_io::{SampleSource, Source, Stores};
use tl_tokens::{TokenFile, TokenOptions, TokenSource, Windows};

/// The names of the files that the first byte chooses among.
const NAMES: [&str; 4] = ["fuzz.bin", "fuzz.idx", "fuzz.npy", "fuzz.safetensors"];

/// Documents and windows that are read of one file.
const MOST: u64 = 64;

/// Opens the bytes after the first as the file that the first byte names, and reads its windows and
/// documents. An index belongs to tokens of 64 bytes.
pub fn tokens(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let name = NAMES[usize::from(kind) % NAMES.len()];
    let source = Source::from_bytes(name, bytes.to_vec());
    let file = if name.ends_with("idx") {
        TokenFile::open_megatron(Source::from_bytes("fuzz.bin", vec![1; 64]), &source)
    } else {
        TokenFile::open(&Stores::new(), source, &TokenOptions::default())
    };
    let Ok(file) = file else { return };
    if let Some(documents) = file.documents() {
        for document in 0..documents.len().min(MOST) {
            if let Ok((first, count)) = documents.place(document) {
                file.range(first, count).expect("a place lies within the tokens");
            }
        }
    }
    let windows = TokenSource::new(file, Windows::new(NonZeroU32::new(3).expect("not zero")));
    let mut bytes = Vec::new();
    for index in 0..windows.sample_count().min(MOST) {
        windows.read_into(index, &mut bytes).expect("its length was checked");
        assert_eq!(bytes.len(), 4 * windows.file().number().bytes());
    }
}
