//! Rows of images for files that the libraries of the formats write, and what is read of them.

use proptest::prelude::*;
use tbl_io::{SampleSource, SampleSourceExt};

/// A row: no structure, or a structure with or without bytes.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) image: Option<Option<Vec<u8>>>,
    pub(crate) path: Option<String>,
    pub(crate) label: Option<i64>,
    pub(crate) caption: Option<String>,
}

pub(crate) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let image = prop_oneof![
        1 => Just(None),
        1 => Just(Some(None)),
        6 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Some(Some(bytes))),
        // Bytes that hardly compress, and copies of them.
        3 => (0_u32..4, 0_usize..5_000).prop_map(|(seed, len)| Some(Some(noise(seed, len)))),
    ];
    // Few different texts, so that dictionaries are worth it; the long ones do not fit into views.
    let text = || prop::option::of("[a-c]{0,2}|(abc){4}[ab]");
    let row = (image, text(), prop::option::of(-3_i64..4), text());
    let row = row.prop_map(|(image, path, label, caption)| {
        // An image of its own, so that the column is one of images.
        let image = image.map(|bytes| bytes.map(|bytes| [&b"\xff\xd8\xff"[..], &bytes].concat()));
        let path = path.filter(|_| image.is_some());
        Row { image, path, label, caption }
    });
    prop::collection::vec(row, 1..60)
}

fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed) << 1 | 1;
    let next = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Checks that a file has these rows; the name of the file is `a`.
pub(crate) fn check_samples(samples: &dyn SampleSource, rows: &[Row]) {
    assert_eq!(samples.sample_count(), rows.len() as u64);
    let labels = rows.iter().map(|row| row.label.unwrap_or(-1)).collect();
    assert_eq!(samples.stored_labels().unwrap(), Some(labels));
    // Against the order of the file, so that no page or buffer is found because it was the last one.
    for (index, row) in rows.iter().enumerate().rev() {
        let index = index as u64;
        let mut bytes = Vec::new();
        let read = samples.read_into(index, &mut bytes);
        match row.image.as_ref().and_then(Option::as_ref) {
            Some(image) => {
                read.unwrap();
                assert_eq!(&bytes, image, "row {index}");
                let facts = samples.facts(index).unwrap();
                assert_eq!(facts.bytes, image.len() as u64);
                assert!(samples.view(index).unwrap().is_none_or(|view| view == image));
                let key = samples.entry(index).unwrap().key.unwrap().into_owned();
                let path = row.path.clone().filter(|path| !path.is_empty());
                let expected = path.unwrap_or_else(|| format!("a#{index}.jpg"));
                assert_eq!(String::from_utf8(key).unwrap(), expected);
            }
            None => drop(read.unwrap_err()),
        }
        let mut fields = Vec::new();
        samples.read_fields(index, &mut fields).unwrap();
        let found = fields.iter().map(|field| str::from_utf8(&field.bytes).unwrap());
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(row.caption.as_deref()));
    }
}
