//! Every truncation and changed bytes: a typed error, or tokens that lie in the file.

use proptest::prelude::*;
use tbl_io::{ReadError, Source, Stores, TokensDefect};
use tl_tokens::{TokenFile, TokenOptions};

use crate::files::{index, llm_c, npy, safetensors, u16s};

/// Opens a file; an index with the tokens that belong to it.
fn open(name: &str, bytes: &[u8]) -> Result<TokenFile, ReadError> {
    let source = Source::from_bytes(name, bytes.to_vec());
    if name.ends_with("idx") {
        let tokens = Source::from_bytes("a.bin", u16s(&[1, 2, 3, 4, 5, 6]));
        return TokenFile::open_megatron(tokens, &source);
    }
    TokenFile::open(&Stores::new(), source, &TokenOptions::default())
}

fn whole() -> [(&'static str, Vec<u8>); 4] {
    let dictionary = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n";
    let header = r#"{"ids": {"dtype": "U16", "shape": [3], "data_offsets": [0, 6]}}"#;
    [
        ("a.bin", llm_c(20_240_520, 1, 3, &u16s(&[1, 2, 3]))),
        ("a.idx", index(8, &[1, 2, 3], 2)),
        ("a.npy", npy(dictionary, &u16s(&[1, 2, 3]))),
        ("a.safetensors", safetensors(header, &u16s(&[1, 2, 3]))),
    ]
}

/// Reads everything that a file promises.
fn read(name: &str, bytes: &[u8]) {
    let file = match open(name, bytes) {
        Ok(file) => file,
        Err(ReadError::Tokens { .. }) => return,
        Err(error) => panic!("{name}: {error}"),
    };
    let most = bytes.len().max(12) as u64;
    assert!(file.len() * file.number().bytes() as u64 <= most);
    let tokens = file.read(0, file.len(), &mut Vec::new(), <[u8]>::to_vec).unwrap();
    assert_eq!(tokens.len() as u64, file.len() * file.number().bytes() as u64);
    for document in 0..file.documents().map_or(0, |documents| documents.len().min(99)) {
        match file.documents().unwrap().place(document) {
            Ok((first, count)) => drop(file.range(first, count).unwrap()),
            Err(ReadError::Tokens { source: TokensDefect::Document { .. }, .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn every_truncation_is_an_error_that_names_a_byte() {
    for (name, bytes) in whole() {
        open(name, &bytes).unwrap();
        for length in 0..bytes.len() {
            let error = open(name, &bytes[..length]).unwrap_err();
            let ReadError::Tokens { offset, .. } = &error else { panic!("{name}: {error}") };
            assert!(*offset <= length as u64, "{name} of {length} bytes: {error}");
            assert!(error.to_string().starts_with(&format!("{name}: at byte")), "{error}");
        }
        let longer = [&bytes[..], &[0; 64]].concat();
        // A safetensors file may have more tensors than its header lists.
        assert_eq!(open(name, &longer).is_ok(), name == "a.safetensors", "{name}");
    }
}

#[test]
fn every_changed_bit_gives_an_error_or_tokens_of_the_file() {
    for (name, bytes) in whole() {
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                read(name, &changed);
            }
        }
    }
}

proptest! {
    #[test]
    fn several_changed_bytes_do_too(
        file in 0usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (name, mut bytes) = whole()[file].clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len().min(256));
            bytes[place] = byte;
        }
        read(name, &bytes);
    }
}
