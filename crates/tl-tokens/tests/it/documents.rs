//! Documents in rows: each token where it belongs, once.

use std::num::NonZeroU32;

use proptest::prelude::*;
use tbl_io::{ReadError, SampleSource, SampleSourceExt, Source, TokensDefect};
use tl_tokens::{
    DocumentRows, Fill, Long, PackedRows, Packing, Piece, Sequences, TokenFile, TokenSource,
    TokenType,
};

use crate::files::{index, open};

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

/// Documents of these lengths, whose tokens are numbered through the file.
fn megatron(lengths: &[u32]) -> TokenFile {
    let total: u32 = lengths.iter().sum();
    let tokens: Vec<u8> = (0..total).flat_map(u32::to_le_bytes).collect();
    let lengths: Vec<i32> = lengths.iter().map(|&length| length.try_into().unwrap()).collect();
    let tokens = Source::from_bytes("a.bin", tokens);
    TokenFile::open_megatron(tokens, &Source::from_bytes("a.idx", index(4, &lengths, 4))).unwrap()
}

fn packed(length: u32, window: u32, strategy: Packing, long: Long) -> Sequences {
    let window = number(window);
    Sequences::Packed(PackedRows { window, strategy, long, ..PackedRows::new(number(length)) })
}

fn rows(source: &TokenSource) -> Vec<Vec<Piece>> {
    let row = |row| {
        let mut pieces = Vec::new();
        source.pieces(row, 0, &mut pieces).unwrap();
        pieces
    };
    (0..source.sample_count()).map(row).collect()
}

/// Document and place of every token that is to be in a row.
fn expected(lengths: &[u32], most: u32) -> Vec<u64> {
    let mut tokens = Vec::new();
    let mut first = 0;
    for &length in lengths {
        tokens.extend(first..first + u64::from(length.min(most)));
        first += u64::from(length);
    }
    tokens
}

proptest! {
    #[test]
    fn every_document_is_there_exactly_once(
        lengths in prop::collection::vec(0u32..30, 0..120),
        capacity in 1u32..24,
        window in 1u32..50,
        strategy in prop::sample::select(vec![Packing::FirstFit, Packing::BestFit, Packing::Split]),
        long in prop::sample::select(vec![Long::Truncate, Long::Split]),
    ) {
        let source =
            TokenSource::new(megatron(&lengths), packed(capacity, window, strategy, long)).unwrap();
        let rows = rows(&source);
        let ends: Vec<u64> = lengths
            .iter()
            .scan(0, |end, &length| {
                *end += u64::from(length);
                Some(*end)
            })
            .collect();
        let cuts = long == Long::Split || strategy == Packing::Split;
        let mut tokens = Vec::new();
        for (number, row) in rows.iter().enumerate() {
            let used: u64 = row.iter().map(|piece| piece.count).sum();
            prop_assert!((1..=u64::from(capacity)).contains(&used));
            if strategy == Packing::Split && number + 1 < rows.len() {
                prop_assert_eq!(used, u64::from(capacity));
            }
            for piece in row {
                let end = piece.first + piece.count;
                tokens.extend(piece.first..end);
                // The document that has the piece.
                let document = ends.partition_point(|&end| end <= piece.first);
                prop_assert!(end <= ends[document]);
                prop_assert_eq!(piece.continues, end < ends[document]);
            }
            prop_assert!(row.is_sorted_by_key(|piece| piece.first));
        }
        if strategy == Packing::Split {
            prop_assert!(tokens.is_sorted());
        }
        tokens.sort_unstable();
        prop_assert_eq!(tokens, expected(&lengths, if cuts { u32::MAX } else { capacity }));
    }

    #[test]
    fn a_document_per_row_is_the_document_of_its_number(
        lengths in prop::collection::vec(0u32..30, 0..40),
        capacity in 1u32..24,
        split: bool,
    ) {
        let long = if split { Long::Split } else { Long::Truncate };
        let fill = Fill::default();
        let of = DocumentRows { length: number(capacity), targets: true, long, fill };
        let source = TokenSource::new(megatron(&lengths), Sequences::Documents(of)).unwrap();
        let rows = rows(&source);
        prop_assert!(rows.iter().all(|row| row.len() == 1));
        let mut tokens: Vec<u64> =
            rows.iter().flat_map(|row| row[0].first..row[0].first + row[0].count).collect();
        if !split {
            prop_assert_eq!(rows.len(), lengths.len());
            let counts = rows.iter().map(|row| row[0].count);
            prop_assert!(counts.eq(lengths.iter().map(|&length| u64::from(length.min(capacity)))));
        }
        tokens.sort_unstable();
        prop_assert_eq!(tokens, expected(&lengths, if split { u32::MAX } else { capacity }));
    }
}

#[test]
fn bytes_of_a_row_are_its_tokens_without_padding() {
    let packed = packed(6, 10, Packing::FirstFit, Long::Truncate);
    let source = TokenSource::new(megatron(&[2, 5, 3, 1]), packed).unwrap();
    let mut bytes = Vec::new();
    source.read_into(0, &mut bytes).unwrap();
    let tokens: Vec<u8> = [0u32, 1, 7, 8, 9, 10].iter().flat_map(|t| t.to_le_bytes()).collect();
    assert_eq!(bytes, tokens);
    let facts = source.facts(1).unwrap();
    assert_eq!((facts.offset, facts.bytes), (8, 20));
    assert!(source.view(0).unwrap().is_none() && source.stored(0).unwrap().is_none());
    let past = source.read_into(2, &mut bytes).unwrap_err();
    assert!(matches!(past, ReadError::SampleOutOfRange { sample_count: 2, .. }), "{past}");
}

#[test]
fn long_documents_and_files_without_documents_are_named() {
    let check = |result: Result<(), ReadError>, expected: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    };
    let long = "a.idx: at byte 38: document 1 has 7 tokens, expected at most the 6 of a row";
    let packed = packed(6, 10, Packing::BestFit, Long::Error);
    check(TokenSource::new(megatron(&[6, 7]), packed).map(drop), long);
    let fill = Fill::default();
    let rows = DocumentRows { length: number(6), targets: true, long: Long::Error, fill };
    let source = TokenSource::new(megatron(&[6, 7]), Sequences::Documents(rows)).unwrap();
    let mut pieces = Vec::new();
    source.pieces(0, 0, &mut pieces).unwrap();
    check(source.pieces(1, 0, &mut pieces), long);
    let raw = open("a.bin", vec![0; 8], Some(TokenType::U16)).unwrap();
    let none = "a.bin: at byte 0: no documents: expected a Megatron-LM index (.idx) next to the tokens, or the \
         end token";
    check(TokenSource::new(raw, packed).map(drop), none);
}

#[test]
fn lengths_that_are_damaged_fail_packing_by_document() {
    let tokens = Source::from_bytes("a.bin", vec![0; 40]);
    let file = |lengths: &[i32]| {
        TokenFile::open_megatron(tokens.clone(), &Source::from_bytes("a.idx", index(4, lengths, 4)))
    };
    for strategy in [Packing::FirstFit, Packing::BestFit, Packing::Split] {
        let packed = packed(4, 2, strategy, Long::Truncate);
        let error = TokenSource::new(file(&[3, 3, -4]).unwrap(), packed).unwrap_err();
        let ReadError::Tokens { source: TokensDefect::Document { document, length, .. }, .. } =
            error
        else {
            panic!("{error}");
        };
        assert_eq!((document, length), (2, -4));
        let error = TokenSource::new(file(&[3, 3, 50]).unwrap(), packed).unwrap_err();
        assert!(error.to_string().contains("document 2 has 50 tokens"), "{error}");
    }
    // A length and a place may be those of the file apart, and not together.
    let mut index = index(4, &[3, 3, 4], 4);
    index[34 + 12 + 16] = 28;
    let file = TokenFile::open_megatron(tokens, &Source::from_bytes("a.idx", index)).unwrap();
    let packed = packed(4, 2, Packing::FirstFit, Long::Truncate);
    let source = TokenSource::new(file, packed).unwrap();
    let mut pieces = Vec::new();
    source.pieces(0, 0, &mut pieces).unwrap();
    let error = source.pieces(2, 0, &mut pieces).unwrap_err().to_string();
    assert!(error.contains("document 2 has 4 tokens from byte 28 on"), "{error}");
}

#[test]
fn rows_beyond_what_memory_is_taken_for_are_a_limit() {
    let count = i32::MAX / 4;
    let tokens = Source::from_bytes("a.bin", vec![0; usize::try_from(count).unwrap()]);
    let index = Source::from_bytes("a.idx", index(1, &[count], 1));
    let file = TokenFile::open_megatron(tokens, &index).unwrap();
    let pieces = packed(1, 2, Packing::BestFit, Long::Split);
    let error = TokenSource::new(file, pieces).unwrap_err();
    assert!(matches!(error, ReadError::Limit { .. }), "{error}");
}

/// Lengths as documents have them: many short ones and some very long.
fn realistic(count: usize) -> Vec<u32> {
    let mut state = 7u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u32 % 1000
    };
    (0..count).map(|_| 20 + uniform() * uniform() / 700 * (1 + uniform() / 300)).collect()
}

#[test]
fn windows_of_documents_cost_few_rows() {
    let lengths = realistic(200_000);
    let file = |window, strategy| {
        let packed = packed(2048, window, strategy, Long::Split);
        let lengths: Vec<i32> = lengths.iter().map(|&length| length.try_into().unwrap()).collect();
        // Packing looks at lengths alone, and none is more than the file's.
        let tokens = Source::from_bytes("a.bin", vec![0; 1 << 16]);
        let index = Source::from_bytes("a.idx", index(1, &lengths, 1));
        let file = TokenFile::open_megatron(tokens, &index).unwrap();
        TokenSource::new(file, packed).unwrap().sample_count()
    };
    let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    let whole = file(200_000, Packing::BestFit);
    let windows = file(100_000, Packing::BestFit);
    assert!(whole <= windows && windows * 1000 <= whole * 1005, "{windows} rows, {whole} at once");
    assert!(whole * 2048 * 100 <= total * 101, "{whole} rows for {total} tokens");
    assert_eq!(file(100, Packing::Split), total.div_ceil(2048));
    let first = file(100_000, Packing::FirstFit);
    assert!(whole <= first && first * 100 <= whole * 105, "{first} rows by first fit");
}
