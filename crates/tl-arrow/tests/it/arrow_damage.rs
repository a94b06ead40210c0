//! Damaged Arrow files and streams: typed errors, or the same values.

use tbl_io::{ParquetDefect, ReadError, SampleSource, SampleSourceExt};

use crate::support::{Case, read_all, sha256};

#[test]
fn every_truncation_of_a_file_is_an_error_that_names_it() {
    for name in ["pyarrow_file", "pyarrow_lz4", "polars_file"] {
        let case = Case::arrow(name);
        let bytes = case.bytes();
        for end in 0..bytes.len() {
            let error = case.open_bytes(bytes[..end].to_vec()).unwrap_err();
            assert!(error.is_damage(), "{error}");
            assert!(matches!(error, ReadError::Parquet { .. }), "{error:?}");
        }
    }
}

#[test]
fn a_truncated_stream_is_an_error_or_has_all_rows_before_its_end() {
    for name in ["datasets_5_2", "pyarrow_stream", "pyarrow_zstd", "pyarrow_dictionaries"] {
        let case = Case::arrow(name);
        let bytes = case.bytes();
        let intact = read_all(&case.open());
        let intact: Vec<_> = intact.iter().map(|read| read.as_deref().unwrap()).collect();
        let mut opened = Vec::new();
        for end in 0..bytes.len() {
            let samples = match case.open_bytes(bytes[..end].to_vec()) {
                Ok(samples) => samples,
                Err(error) => {
                    let is_one = matches!(error, ReadError::Parquet { .. });
                    // A schema without features and without rows has no column of images.
                    let is_empty = error.to_string().contains(": no column has images");
                    assert!(is_one && (error.is_damage() || is_empty), "{end} {error:?}");
                    continue;
                }
            };
            assert_eq!(samples.notes().last(), Some(&tbl_io::Note::NoStreamEnd));
            for (read, intact) in read_all(&samples).into_iter().zip(&intact) {
                assert_eq!(read.unwrap(), *intact);
            }
            opened.push(samples.sample_count());
        }
        // After the schema, and after each dictionary and record batch.
        assert!(opened.is_sorted(), "{name}: {opened:?}");
        assert!(opened.len() < 20 && opened.last() == Some(&12), "{name}: {opened:?}");
    }
}

/// The outcome of reading everything of a damaged file.
#[derive(Debug, Default)]
struct Outcome {
    refused: usize,
    errors: usize,
    same: usize,
    other: usize,
}

/// Reads everything of a file with damage.
fn read_damaged(case: &Case, bytes: Vec<u8>, outcome: &mut Outcome) {
    let samples = match case.open_bytes(bytes) {
        Ok(samples) => samples,
        Err(error) => {
            assert!(error.to_string().contains(&case.name), "{error}");
            outcome.refused += 1;
            return;
        }
    };
    let images = case.texts("images");
    for (index, read) in (0..).zip(read_all(&samples)) {
        let mut fields = Vec::new();
        let field_error = samples.read_fields(index, &mut fields).err();
        let entry_error = samples.entry(index).err();
        for error in [field_error, entry_error].into_iter().flatten() {
            assert_eq!(error.sample_index(), Some(index), "{error}");
        }
        match read {
            Err(error) => {
                assert_eq!(error.sample_index(), Some(index), "{error}");
                outcome.errors += 1;
            }
            Ok(bytes) => {
                let hash = Some(sha256(&bytes));
                let expected = usize::try_from(index).ok().and_then(|row| images.get(row));
                let is_same = expected == Some(&hash);
                *(if is_same { &mut outcome.same } else { &mut outcome.other }) += 1;
            }
        }
    }
}

/// Bytes of a file outside its images.
fn structure(case: &Case) -> Vec<usize> {
    let bytes = case.bytes();
    let mut is_structure = vec![true; bytes.len()];
    let samples = case.open();
    for index in 0..samples.sample_count() {
        if let Ok(Some(stored)) = samples.stored(index) {
            let start = usize::try_from(stored.offset).unwrap();
            let end = start + usize::try_from(stored.len).unwrap();
            is_structure[start..end].fill(false);
        }
    }
    (0..bytes.len()).filter(|&at| is_structure[at]).collect()
}

#[test]
fn flipped_bits_of_the_structure_are_no_panics() {
    let mut flips = 0;
    for case in Case::all_arrow() {
        let bytes = case.bytes();
        let mut outcome = Outcome::default();
        let places = structure(&case);
        let step = (places.len() / 400).max(1);
        for (flip, &at) in places.iter().step_by(step).enumerate() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (flip % 8);
            read_damaged(&case, damaged, &mut outcome);
            flips += 1;
        }
        assert!(outcome.refused > 5, "{}: {outcome:?}", case.name);
        assert!(outcome.same > 100, "{}: {outcome:?}", case.name);
    }
    assert!(flips > 3000, "{flips}");
}

#[test]
fn compressed_buffers_are_checked() {
    let case = Case::arrow("pyarrow_lz4");
    let mut outcome = Outcome::default();
    let bytes = case.bytes();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        read_damaged(&case, damaged, &mut outcome);
    }
    assert!(outcome.refused > 100 && outcome.errors > 100 && outcome.same > 1000, "{outcome:?}");
}

#[test]
fn sizes_are_checked_before_memory_is_taken() {
    let case = Case::arrow("pyarrow_file");
    let intact = case.bytes();
    let end = intact.len();
    let mut bytes = intact;
    bytes[end - 10..end - 6].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = case.open_bytes(bytes).unwrap_err().to_string();
    let limit = end - 18;
    let expected = format!("length of the footer is {}, expected at most {limit}", u32::MAX);
    assert!(error.ends_with(&expected), "{error}");

    // A compressed buffer that states 1 TiB.
    let case = Case::arrow("pyarrow_zstd");
    let intact = case.bytes();
    let image = read_all(&case.open())[0].as_ref().unwrap().len();
    let at = (0..intact.len() - 8).find(|&at| {
        let length = u64::from_le_bytes(intact[at..at + 8].try_into().unwrap());
        at > 400 && length > image as u64 && length < 10_000 && intact[at + 8..].starts_with(ZSTD)
    });
    let at = at.unwrap();
    let mut bytes = intact;
    bytes[at..at + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let error = case.open_bytes(bytes).unwrap_err();
    let ReadError::Parquet { source: ParquetDefect::TooLarge { found, .. }, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(found, 1 << 40);
}

/// The first bytes of a frame of Zstandard.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
