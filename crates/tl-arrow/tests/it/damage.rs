//! Damaged files: typed errors, or the same values.

use tbl_io::{ParquetDefect, ReadError, SampleSource, SampleSourceExt, Source, Stores};
use tl_arrow::RowSource;

use crate::support::{Case, read_all, sha256};

#[test]
fn every_truncation_is_an_error_that_names_the_file() {
    for name in ["datasets_5_2", "pyarrow_2", "duckdb_2"] {
        let case = Case::of(name);
        let bytes = case.bytes();
        for end in 0..bytes.len() {
            let error = case.open_bytes(bytes[..end].to_vec()).unwrap_err();
            assert!(error.is_damage(), "{error}");
            assert!(matches!(error, ReadError::Parquet { .. }), "{error:?}");
        }
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

/// Reads everything of a file with damage; images must be those of the intact file or errors.
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
                if expected == Some(&hash) {
                    outcome.same += 1;
                } else {
                    outcome.other += 1;
                }
            }
        }
    }
}

/// Bytes of a file outside its images: footer, indexes, page headers, levels, lengths.
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
fn flipped_bits_of_the_structure_give_errors_or_the_same_images() {
    for name in ["datasets_5_2", "pyarrow_plain"] {
        let case = Case::of(name);
        let bytes = case.bytes();
        let mut outcome = Outcome::default();
        let places = structure(&case);
        for (flip, &at) in places.iter().enumerate() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (flip % 8);
            read_damaged(&case, damaged, &mut outcome);
        }
        assert_eq!(outcome.other, 0, "{name}: {outcome:?}");
        assert!(
            outcome.refused > 100 && outcome.errors > 100 && outcome.same > 1000,
            "{outcome:?}"
        );
    }
}

#[test]
fn flipped_bits_of_compressed_files_are_no_panics() {
    for name in [
        "pyarrow_default",
        "pyarrow_2",
        "polars",
        "duckdb_1",
        "duckdb_2",
        "pyarrow_types",
        "pyarrow_nested",
    ] {
        let case = Case::of(name);
        let bytes = case.bytes();
        let mut outcome = Outcome::default();
        for flip in 0..500 {
            let mut damaged = bytes.clone();
            let at = flip * bytes.len() / 500;
            damaged[at] ^= 1 << (flip % 8);
            read_damaged(&case, damaged, &mut outcome);
        }
        assert!(outcome.same > 100, "{name}: {outcome:?}");
        if name == "pyarrow_2" {
            // Its pages have checksums.
            assert_eq!(outcome.other, 0, "{outcome:?}");
        }
    }
}

#[test]
fn an_index_that_lies_is_caught_by_the_headers_of_pages() {
    let case = Case::of("datasets_5_2");
    let bytes = case.bytes();
    let samples = case.open();
    let intact = read_all(&samples);
    let last = samples.stored(11).unwrap().unwrap();
    let pages_end = usize::try_from(last.offset + last.len).unwrap();
    let mut lies = 0;
    for at in structure(&case).into_iter().filter(|&at| at >= pages_end) {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let Ok(samples) = case.open_bytes(damaged) else { continue };
            for (read, intact) in read_all(&samples).into_iter().zip(&intact) {
                let intact = intact.as_ref().ok();
                match read {
                    Ok(bytes) => assert_eq!(Some(&bytes), intact),
                    Err(error) => {
                        let ReadError::Sample { source, .. } = error else { panic!("{error}") };
                        let counts = matches!(
                            *source,
                            ReadError::Parquet { source: ParquetDefect::Count { .. }, .. }
                        );
                        lies += usize::from(counts);
                    }
                }
            }
        }
    }
    assert!(lies > 50, "{lies}");
}

#[test]
fn sizes_are_checked_before_memory_is_taken() {
    let case = Case::of("pyarrow_default");
    let intact = case.bytes();
    // The length of the footer.
    let mut bytes = intact.clone();
    let at = bytes.len() - 8;
    bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = case.open_bytes(bytes).unwrap_err().to_string();
    let limit = intact.len() - 12;
    let expected = format!("length of the footer is {}, expected at most {limit}", u32::MAX);
    assert!(error.ends_with(&expected), "{error}");
}

#[test]
fn other_files_are_told_by_their_ends() {
    let open = |bytes: &[u8]| {
        let source = Source::from_bytes("a", bytes.to_vec());
        RowSource::open(&Stores::new(), source).unwrap_err().to_string()
    };
    assert_eq!(
        open(b"PAR1"),
        "a: at byte 0: the file has 4 bytes, expected at least 12 of a Parquet file"
    );
    assert_eq!(
        open(b"PAR1 and no end"),
        "a: at byte 11: expected PAR1, found  end; was the file copied completely?"
    );
    assert_eq!(
        open(b"PAR1\0\0\0\0PARE"),
        "a: at byte 4: the footer is encrypted, expected a plain one"
    );
    assert_eq!(
        open(b"PARE\0\0\0\0PARE"),
        "a: at byte 4: the footer is encrypted, expected a plain one"
    );
    assert_eq!(open(b"PAR1\0\0\0\0PAR1"), "a: at byte 4: footer ends early");
}
