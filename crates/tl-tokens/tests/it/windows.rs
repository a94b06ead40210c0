//! Windows against slices.

use std::num::NonZeroU32;

use proptest::prelude::*;
use tbl_io::{ReadError, SampleSource, SampleSourceExt, Source, Stores};
use tl_tokens::{EpochOffset, Piece, TokenFile, TokenOptions, TokenSource, TokenType, Windows};

use crate::files::{open, u16s};

fn windows(length: u32, stride: Option<u32>, targets: bool, offset: EpochOffset) -> Windows {
    let length = NonZeroU32::new(length).unwrap();
    let stride = stride.and_then(NonZeroU32::new);
    Windows { targets, stride, offset, ..Windows::new(length) }
}

proptest! {
    #[test]
    fn windows_are_the_slices_that_fit_at_every_offset(
        tokens in prop::collection::vec(any::<u16>(), 0..60),
        length in 1u32..12,
        stride in prop::option::of(1u32..15),
        targets: bool,
        random: bool,
    ) {
        let offset = if random { EpochOffset::Random } else { EpochOffset::None };
        let windows = windows(length, stride, targets, offset);
        let file = open("a.bin", u16s(&tokens), Some(TokenType::U16)).unwrap();
        let source = TokenSource::new(file, windows.into()).unwrap();
        let step = stride.unwrap_or(length) as usize;
        let span = length as usize + usize::from(targets);
        let slices = |offset: usize| -> Vec<&[u16]> {
            let rest = tokens.get(offset..).unwrap_or_default();
            let starts = (0..rest.len()).step_by(step);
            starts.filter_map(|start| rest.get(start..start + span)).collect()
        };
        // As many as there are at the offset with the fewest.
        let offsets = windows.offsets();
        let mut pieces = Vec::new();
        let expected = (0..offsets).map(|offset| slices(offset as usize).len()).min().unwrap();
        prop_assert_eq!(source.sample_count(), expected as u64);
        for offset in 0..offsets {
            for (index, slice) in slices(offset as usize).into_iter().take(expected).enumerate() {
                source.pieces(index as u64, offset, &mut pieces).unwrap();
                let Piece { first, count, .. } = pieces[0];
                let bytes = source.file().read(first, count, &mut Vec::new(), <[u8]>::to_vec);
                prop_assert_eq!(bytes.unwrap(), u16s(slice));
            }
        }
        let mut bytes = Vec::new();
        for index in 0..source.sample_count() {
            source.read_into(index, &mut bytes).unwrap();
            let slice = slices(0)[usize::try_from(index).unwrap()];
            prop_assert_eq!(&bytes, &u16s(slice));
            prop_assert_eq!(source.view(index).unwrap().unwrap(), &bytes[..]);
            let facts = source.facts(index).unwrap();
            prop_assert_eq!((facts.offset, facts.bytes), (index * step as u64 * 2, span as u64 * 2));
        }
        let past = source.read_into(source.sample_count(), &mut bytes).unwrap_err();
        prop_assert!(matches!(past, ReadError::SampleOutOfRange { .. }), "{}", past);
    }
}

#[test]
fn a_file_that_is_cut_short_is_an_error_and_never_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    let tokens: Vec<u16> = (1..=20_000).collect();
    std::fs::write(&path, u16s(&tokens)).unwrap();
    let options = TokenOptions { number: Some(TokenType::U16), ..TokenOptions::default() };
    let file = TokenFile::open(&Stores::new(), Source::open(&path).unwrap(), &options).unwrap();
    let source =
        TokenSource::new(file, windows(1000, None, true, EpochOffset::None).into()).unwrap();
    assert_eq!(source.sample_count(), 19);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(21_001).unwrap();
    let mut bytes = Vec::new();
    let mut pieces = Vec::new();
    for index in (0..source.sample_count()).rev() {
        source.pieces(index, 0, &mut pieces).unwrap();
        let Piece { first, count, .. } = pieces[0];
        let mapped = source.file().read(first, count, &mut Vec::new(), <[u8]>::to_vec);
        let read = source.read_into(index, &mut bytes);
        if index >= 10 {
            let is_cut = |error: &ReadError| error.to_string().contains("became shorter");
            assert!(mapped.as_ref().is_err_and(is_cut), "{index}: {mapped:?}");
            assert!(read.as_ref().is_err_and(is_cut), "{index}: {read:?}");
        }
    }
    source.read_into(9, &mut bytes).unwrap();
    assert_eq!(bytes, u16s(&tokens[9000..10_001]));
}

#[test]
fn a_terabyte_without_data_opens_and_reads_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let options = TokenOptions { number: Some(TokenType::U16), ..TokenOptions::default() };
    let file = TokenFile::open(&Stores::new(), Source::open(&path).unwrap(), &options).unwrap();
    assert!(!file.is_remote(), "it is mapped");
    let source =
        TokenSource::new(file, windows(2048, None, true, EpochOffset::None).into()).unwrap();
    assert_eq!(source.sample_count(), (1 << 28) - 1);
    let mut bytes = Vec::new();
    source.read_into((1 << 28) - 2, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 2 * 2049]);
}
