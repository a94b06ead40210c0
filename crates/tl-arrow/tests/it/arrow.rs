//! Arrow files and streams: their ends, their first bytes, and columns that the caller selects.

use tbl_io::{Note, SampleSource, SampleSourceExt, Source, Stores};
use tl_arrow::{RowOptions, RowSource};

use crate::support::{Case, read_all, sha256};

#[test]
fn a_stream_without_an_end_mark_has_its_rows_and_a_note() {
    let case = Case::of("datasets_5_2.arrow");
    let bytes = case.bytes();
    assert_eq!(bytes[bytes.len() - 8..], [255, 255, 255, 255, 0, 0, 0, 0]);
    let samples = case.open_bytes(bytes[..bytes.len() - 8].to_vec()).unwrap();
    assert_eq!((samples.sample_count(), samples.notes()), (12, vec![Note::NoStreamEnd]));
    // Streams one after the other would lose the rows of all but the first.
    let error = case.open_bytes([&*bytes, &*bytes].concat()).unwrap_err().to_string();
    let length = bytes.len();
    let end = format!(
        "at byte {length}: number of bytes after the end of the stream is {length}, expected at most 0"
    );
    assert!(error.ends_with(&end), "{error}");
}

#[test]
fn files_are_told_by_their_first_bytes() {
    let is = |bytes: &[u8]| RowSource::is(&Source::from_bytes("a", bytes.to_vec())).unwrap();
    assert!(is(b"ARROW1\0\0"));
    assert!(is(b"PAR1"));
    assert!(is(&Case::of("datasets_5_2.arrow").bytes()));
    assert!(!is(b"ARROW"));
    assert!(!is(&[0xff; 4096]));
    assert!(!is(b"FEA1 of another format"));
    let mut bytes = Case::of("datasets_5_2.arrow").bytes();
    bytes.truncate(300);
    assert!(is(&bytes));
    // The metadata are those of a record batch, and not of a schema.
    let mut bytes = Case::of("datasets_5_2.arrow").bytes();
    let second = bytes.windows(4).skip(1).position(|bytes| bytes == [0xff; 4]).unwrap();
    assert!(!is(&bytes.split_off(second + 1)));
    let open = |bytes: &[u8]| {
        let source = Source::from_bytes("a", bytes.to_vec());
        RowSource::open(&Stores::new(), source).unwrap_err().to_string()
    };
    assert_eq!(
        open(b"ARROW1\0\0"),
        "a: at byte 0: the file has 8 bytes, expected at least 18 of an Arrow file"
    );
    assert_eq!(
        open(b"ARROW1\0\0 and no footer"),
        "a: at byte 16: expected ARROW1, found footer; was the file written and copied completely?"
    );
}

#[test]
fn columns_are_selected_under_other_names() {
    let open = |case: &Case, columns: &[(&str, &str)], features: Option<&str>| {
        let owned = |&(stored, name): &(&str, &str)| (stored.to_owned(), name.to_owned());
        let columns = Some(columns.iter().map(owned).collect());
        let features = features.map(str::to_owned);
        let options = RowOptions { columns, features, ..RowOptions::default() };
        let source = Source::from_bytes("a", case.bytes());
        RowSource::open_with(&Stores::new(), source, &options)
    };
    let case = Case::of("pyarrow_types.arrow");
    let features = r#"{"info": {"features": {"image": {"_type": "Image"},
        "class": {"_type": "ClassLabel", "names": ["no", "yes"]}}}}"#;
    let columns = [("mask", "image"), ("label", "class"), ("text", "txt")];
    let samples = open(&case, &columns, Some(features)).unwrap();
    assert_eq!((samples.class_names().len(), samples.declares_classes()), (2, true));
    let mut fields = Vec::new();
    samples.read_fields(0, &mut fields).unwrap();
    assert_eq!(fields.len(), 1);
    assert_eq!(fields[0].extension, b"txt");
    let hash = sha256(read_all(&samples)[0].as_ref().unwrap());
    assert_eq!(Some(&*hash), case.expected["masks"][0].as_str());
    // Of two columns of classes none is chosen, which is said.
    let features = r#"{"info": {"features": {"image": {"_type": "Image"},
        "fine": {"_type": "ClassLabel", "names": ["no", "yes"]},
        "coarse": {"_type": "ClassLabel", "names": ["off", "on"]}}}}"#;
    let columns = [("mask", "image"), ("label", "fine"), ("text", "coarse")];
    let samples = open(&case, &columns, Some(features)).unwrap();
    assert_eq!(samples.stored_labels().unwrap(), Some(Vec::new()));
    let notes: Vec<_> = samples.notes().iter().map(ToString::to_string).collect();
    let expected = "samples have no label: the columns coarse, fine have labels; name that of the \
                    samples (label=)";
    assert_eq!(notes, [expected]);
    let error = open(&case, &[("masks", "image")], None).unwrap_err().to_string();
    assert!(error.starts_with("a: no column masks, the columns are photo, mask, "), "{error}");
    // Rows of Parquet files too.
    let samples = open(&Case::of("pyarrow_2.parquet"), &[("image", "photo")], None).unwrap();
    assert_eq!(samples.stored_labels().unwrap(), Some(Vec::new()));
    assert_eq!(read_all(&samples).len(), 12);
}
