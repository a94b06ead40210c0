//! Documents that a token ends, against a loop over the tokens.

use proptest::prelude::*;
use tl_tokens::{TokenFile, TokenType};

use crate::files::{index, open, tokens, u16s};
use tbl_io::{ReadError, Source, TokensDefect};

fn lengths(file: &TokenFile) -> Vec<u64> {
    let documents = file.documents().unwrap();
    let place = |document| documents.place(document).unwrap();
    let mut next = 0;
    let length = |document| {
        let (first, length) = place(document);
        assert_eq!(first, next);
        next += length;
        length
    };
    (0..documents.len()).map(length).collect()
}

proptest! {
    #[test]
    fn documents_reach_to_their_end_token(
        values in prop::collection::vec(0u16..6, 0..700),
        kind in prop::sample::select(TokenType::ALL.to_vec()),
        end in 0u16..7,
    ) {
        let mut bytes = vec![0; values.len() * kind.bytes()];
        TokenType::U16.convert(&u16s(&values), kind, &mut bytes).unwrap();
        let file = open("a.bin", bytes, Some(kind)).unwrap().with_ends(end.into()).unwrap();
        let mut expected: Vec<u64> =
            values.split_inclusive(|&token| token == end).map(|part| part.len() as u64).collect();
        expected.retain(|&length| length > 0);
        prop_assert_eq!(lengths(&file), expected);
        prop_assert_eq!(tokens(&file).len(), values.len());
    }
}

#[test]
fn pieces_of_the_file_join() {
    // More tokens than a thread looks at in one go, with ends around every border.
    let count = (9 << 20) + 5;
    let mut values = vec![1u8; count];
    let mut places: Vec<usize> =
        [1, 2].into_iter().flat_map(|piece| (piece << 22) - 1..=(piece << 22) + 1).collect();
    places.extend([7, count - 2]);
    places.iter().for_each(|&place| values[place] = 9);
    places.sort_unstable();
    let file = open("a.bin", values, Some(TokenType::U8)).unwrap().with_ends(9).unwrap();
    let mut start = 0;
    let mut expected: Vec<u64> = places
        .into_iter()
        .map(|place| {
            let length = place + 1 - start;
            start = place + 1;
            length as u64
        })
        .collect();
    expected.push((count - start) as u64);
    assert_eq!(lengths(&file), expected);
}

#[test]
fn an_end_token_replaces_an_index_and_must_fit() {
    let megatron = Source::from_bytes("a.bin", u16s(&[1, 2, 9, 4, 5]));
    let file =
        TokenFile::open_megatron(megatron, &Source::from_bytes("a.idx", index(8, &[2, 3], 2)));
    assert_eq!(lengths(&file.unwrap().with_ends(9).unwrap()), [3, 2]);
    let file = open("a.bin", vec![0; 4], Some(TokenType::U16)).unwrap();
    let error = file.with_ends(1 << 16).unwrap_err();
    let ReadError::Tokens { source: TokensDefect::Value { value, wanted }, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((&*value, wanted), ("65536", "u16"));
}
