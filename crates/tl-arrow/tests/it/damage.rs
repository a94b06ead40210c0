//! Damaged files: typed errors, or the same values.

use tbl_io::{Note, ReadError, RowsDefect, SampleSource, SampleSourceExt, Source, Stores};
use tl_arrow::RowSource;

use crate::support::{Case, read_all, sha256};

#[test]
fn every_truncation_is_an_error_that_names_the_file() {
    for file in [
        "datasets_5_2.parquet",
        "pyarrow_2.parquet",
        "duckdb_2.parquet",
        "spark_2.parquet",
        "pyarrow_file.arrow",
        "pyarrow_lz4.arrow",
        "polars_file.arrow",
    ] {
        let case = Case::of(file);
        let bytes = case.bytes();
        for end in 0..bytes.len() {
            let error = case.open_bytes(bytes[..end].to_vec()).unwrap_err();
            assert!(error.is_damage(), "{error}");
            assert!(matches!(error, ReadError::Rows { .. }), "{error:?}");
        }
    }
}

#[test]
fn a_truncated_stream_is_an_error_or_has_all_rows_before_its_end() {
    for name in ["datasets_5_2", "pyarrow_stream", "pyarrow_zstd", "pyarrow_dictionaries"] {
        let case = Case::of(&format!("{name}.arrow"));
        let bytes = case.bytes();
        let intact = read_all(&case.open());
        let intact: Vec<_> = intact.iter().map(|read| read.as_deref().unwrap()).collect();
        let mut opened = Vec::new();
        for end in 0..bytes.len() {
            let samples = match case.open_bytes(bytes[..end].to_vec()) {
                Ok(samples) => samples,
                Err(error) => {
                    let is_one = matches!(error, ReadError::Rows { .. });
                    // A schema without features and without rows has no column of images.
                    let is_empty = error.to_string().contains(": no column has images");
                    assert!(is_one && (error.is_damage() || is_empty), "{end} {error:?}");
                    continue;
                }
            };
            assert_eq!(samples.notes().last(), Some(&Note::NoStreamEnd));
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
    flips: usize,
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

/// Changes a bit of each of these places in turn, and reads everything.
fn flip(case: &Case, places: impl Iterator<Item = usize>) -> Outcome {
    let bytes = case.bytes();
    let mut outcome = Outcome::default();
    for (flip, at) in places.enumerate() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (flip % 8);
        read_damaged(case, damaged, &mut outcome);
        outcome.flips += 1;
    }
    outcome
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
    for file in ["datasets_5_2.parquet", "pyarrow_plain.parquet", "spark_plain.parquet"] {
        let case = Case::of(file);
        let outcome = flip(&case, structure(&case).into_iter());
        assert_eq!(outcome.other, 0, "{file}: {outcome:?}");
        assert!(outcome.refused > 100 && outcome.errors > 100, "{file}: {outcome:?}");
        assert!(outcome.same > 1000, "{file}: {outcome:?}");
    }
}

#[test]
fn flipped_bits_of_arrow_files_are_no_panics() {
    let mut flips = 0;
    for case in Case::files("arrow") {
        let places = structure(&case);
        let step = (places.len() / 400).max(1);
        let outcome = flip(&case, places.into_iter().step_by(step));
        assert!(outcome.refused > 5, "{}: {outcome:?}", case.name);
        assert!(outcome.same > 100, "{}: {outcome:?}", case.name);
        flips += outcome.flips;
    }
    assert!(flips > 3000, "{flips}");
}

#[test]
fn flipped_bits_of_compressed_files_are_no_panics() {
    for (name, has_checksums) in [
        ("pyarrow_default", false),
        ("pyarrow_2", true),
        ("polars", false),
        ("duckdb_1", false),
        ("duckdb_2", false),
        ("pyarrow_types", false),
        ("pyarrow_nested", false),
        ("spark_2", true),
        ("spark_lz4", true),
        ("spark_nulls", true),
    ] {
        let case = Case::of(&format!("{name}.parquet"));
        let length = case.bytes().len();
        let outcome = flip(&case, (0..500).map(|flip| flip * length / 500));
        assert!(outcome.same > 100, "{name}: {outcome:?}");
        assert!(outcome.other == 0 || !has_checksums, "{name}: {outcome:?}");
    }
}

#[test]
fn compressed_buffers_are_checked() {
    let case = Case::of("pyarrow_lz4.arrow");
    let outcome = flip(&case, 0..case.bytes().len());
    assert!(outcome.refused > 100 && outcome.errors > 100 && outcome.same > 1000, "{outcome:?}");
}

#[test]
fn an_index_that_lies_is_caught_by_the_headers_of_pages() {
    let case = Case::of("datasets_5_2.parquet");
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
                            ReadError::Rows { source: RowsDefect::Count { .. }, .. }
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
    // The length of the footer, and the bytes after it and around it.
    for (file, after, around) in [("pyarrow_default.parquet", 4, 12), ("pyarrow_file.arrow", 6, 18)]
    {
        let case = Case::of(file);
        let mut bytes = case.bytes();
        let at = bytes.len() - after - 4;
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let limit = bytes.len() - around;
        let error = case.open_bytes(bytes).unwrap_err().to_string();
        let expected = format!("length of the footer is {}, expected at most {limit}", u32::MAX);
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn a_buffer_that_states_a_tebibyte_is_refused() {
    let case = Case::of("pyarrow_zstd.arrow");
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
    let ReadError::Rows { source: RowsDefect::TooLarge { found, .. }, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(found, 1 << 40);
}

/// The first bytes of a frame of Zstandard.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

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
