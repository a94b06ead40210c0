//! Files of tokens: whatever the bytes are, opening ends with an error or with tokens that lie in the
//! file.

use std::num::NonZeroU32;

use tbl_io::{SampleSource, Source, Stores};
use tl_tokens::{
    Long, PackedRows, Packing, Sequences, TokenFile, TokenOptions, TokenSource, Windows,
};

/// The names of the files that the first byte chooses among.
const NAMES: [&str; 4] = ["fuzz.bin", "fuzz.idx", "fuzz.npy", "fuzz.safetensors"];

/// Documents and windows that are read of one file.
const MOST: u64 = 64;

/// Opens the bytes after the first as the file that the first byte names, and reads its windows,
/// or its documents as they are packed. An index belongs to tokens of 64 bytes.
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
    let item = file.number().bytes();
    let length = NonZeroU32::new(3).expect("not zero");
    let sequences = if kind < 128 {
        Windows::new(length).into()
    } else {
        let long = if kind < 192 { Long::Split } else { Long::Truncate };
        let strategy =
            [Packing::FirstFit, Packing::BestFit, Packing::Split][usize::from(kind) / 4 % 3];
        Sequences::Packed(PackedRows { strategy, long, ..PackedRows::new(length) })
    };
    let Ok(samples) = TokenSource::new(file, sequences) else { return };
    let mut bytes = Vec::new();
    for index in 0..samples.sample_count().min(MOST) {
        match samples.read_into(index, &mut bytes) {
            Ok(()) if sequences.has_documents() => assert!((1..=3 * item).contains(&bytes.len())),
            Ok(()) => assert_eq!(bytes.len(), 4 * item),
            // A document whose place is damaged is found when it is read.
            Err(error) => assert!(sequences.has_documents(), "{error}"),
        }
    }
}
