use super::*;

/// The rows of a file, or its first defect. `step` bytes come at a time.
fn rows(csv: &[u8], step: usize) -> Result<Vec<Vec<String>>, CsvError> {
    struct Steps<'a>(&'a [u8], usize);
    impl Read for Steps<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(buffer.len());
            self.0.read(&mut buffer[..count])
        }
    }
    let defect = |error| {
        let TableError::Csv(defect) = error else { panic!("{error}") };
        defect
    };
    let mut reader = RowReader::new(Steps(csv, step)).map_err(defect)?;
    let mut row = Row::default();
    let mut rows = Vec::new();
    while reader.read(&mut row).map_err(defect)? {
        rows.push(row.cells().map(str::to_owned).collect());
    }
    assert_eq!(reader.position().byte, csv.len() as u64);
    Ok(rows)
}

#[track_caller]
fn check(csv: &str, expected: &[&[&str]]) {
    assert_eq!(rows(csv.as_bytes(), usize::MAX).as_deref().unwrap(), expected, "{csv:?}");
}

#[test]
fn cells_are_those_of_the_grammar() {
    check("", &[]);
    check("a,b\r\n1,\"x\"\r\n", &[&["a", "b"], &["1", "x"]]);
    check("a,b\n1,\"x\"\"y\"\"\"", &[&["a", "b"], &["1", "x\"y\""]]);
    check("\u{feff}\"a\"\r\"1,\r\n\r\n\"\r", &[&["a"], &["1,\r\n\r\n"]]);
    check(",\n\"\",\n", &[&["", ""], &["", ""]]);
    // Blank lines are rows where a row is one cell. The end of the last line starts none.
    check("a\nx\n\ny\n", &[&["a"], &["x"], &[""], &["y"]]);
    check("a\n\n", &[&["a"], &[""]]);
}

#[test]
fn defects_have_a_place() {
    let check = |csv: &[u8], expected: CsvError| {
        assert_eq!(rows(csv, usize::MAX), Err(expected.clone()), "{csv:?}");
        assert_eq!(rows(csv, 1), Err(expected), "{csv:?}");
    };
    let at = |line, byte| Position { line, byte };
    check(b"a,b\r\n1,\"x\r\n2,y\r\n", CsvError::Unclosed { at: at(2, 7) });
    check(b"a,b\r\n1,\"x\"y\r\n", CsvError::AfterQuote { at: at(2, 10) });
    check(b"a,b\r\n1,x\"y\"\r\n", CsvError::StrayQuote { at: at(2, 8) });
    check(b"a\n\"x\ny\" \n", CsvError::AfterQuote { at: at(3, 7) });
    check(b"a,b\n1,2\n\n3,4\n", CsvError::BlankLine { at: at(3, 8), expected: 2 });
    check(b"a,b\n1,2\n\"\"\n", CsvError::Width { at: at(3, 8), found: 1, expected: 2 });
    check(b"\xef\xbb\xbfa\n1,2", CsvError::Width { at: at(2, 5), found: 2, expected: 1 });
    check(b"a,b\n1,\xff\n", CsvError::NotUtf8 { at: at(2, 4), cell: 2 });
    check(b"a,b\n\xc3,\xa9\n", CsvError::NotUtf8 { at: at(2, 4), cell: 1 });
}

#[test]
fn rows_are_bounded() {
    let most = ",".repeat(MAX_COLUMNS - 1);
    assert_eq!(rows(most.as_bytes(), usize::MAX).unwrap()[0].len(), MAX_COLUMNS);
    let at = Position { line: 1, byte: 0 };
    let error = rows(format!("{most},").as_bytes(), usize::MAX).unwrap_err();
    assert_eq!(error, CsvError::Columns { at, limit: MAX_COLUMNS });
    // A quote that is never closed does not take the whole file into memory.
    let mut reader = RowReader::new((&b"a,\""[..]).chain(std::io::repeat(b'x'))).unwrap();
    let error = reader.read(&mut Row::default()).unwrap_err();
    let limit = MAX_ROW_BYTES;
    let expected = CsvError::RowBytes { at, cell: 2, limit };
    assert!(matches!(error, TableError::Csv(error) if error == expected));
}

/// Every short file of the bytes that matter, against a reader that takes everything.
#[test]
fn what_is_accepted_is_what_other_readers_see() {
    const BYTES: [u8; 5] = *b"a,\"\r\n";
    let mut accepted = 0;
    let mut files = 0;
    for len in 0..=7_u32 {
        for number in 0..BYTES.len().pow(len) {
            let digit = |place| BYTES[number / BYTES.len().pow(place) % BYTES.len()];
            let csv: Vec<u8> = (0..len).map(digit).collect();
            let found = rows(&csv, usize::MAX);
            assert_eq!(rows(&csv, 1), found, "{:?}", csv.escape_ascii().to_string());
            files += 1;
            let Ok(mut found) = found else { continue };
            accepted += 1;
            // That reader passes over blank lines.
            found.retain(|row| *row != [""]);
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(csv.as_slice());
            let mut expected: Vec<Vec<String>> =
                reader.deserialize().collect::<Result<_, _>>().unwrap();
            expected.retain(|row| *row != [""]);
            assert_eq!(found, expected, "{:?}", csv.escape_ascii().to_string());
        }
    }
    assert!(accepted > 10_000 && accepted < files, "{accepted} of {files}");
}
