//! The files of `testdata/parquet` and `testdata/arrow`, and what they hold.

use std::path::PathBuf;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tbl_io::{ListOptions, Manifest, ReadError, SampleSource, Source, SourceKind, Stores};
use tl_arrow::RowSource;

pub(crate) fn folder(format: &str) -> PathBuf {
    tl_testdata::shipped!("").join(format)
}

/// A file and what it holds.
pub(crate) struct Case {
    /// The name of the file without its extension.
    pub(crate) name: String,
    /// The extension of the file.
    format: &'static str,
    pub(crate) expected: Value,
}

impl Case {
    /// All files.
    pub(crate) fn all() -> Vec<Self> {
        ["parquet", "arrow"].into_iter().flat_map(Self::files).collect()
    }

    /// The files of a format, which has both the name of their folder and their extension.
    pub(crate) fn files(format: &'static str) -> Vec<Self> {
        let text = std::fs::read(folder(format).join("expected.json")).unwrap();
        let Value::Object(cases) = serde_json::from_slice(&text).unwrap() else { panic!() };
        cases.into_iter().map(|(name, expected)| Self { name, format, expected }).collect()
    }

    /// The file of this name.
    pub(crate) fn of(file: &str) -> Self {
        Self::all().into_iter().find(|case| case.file() == file).unwrap()
    }

    pub(crate) fn file(&self) -> String {
        format!("{}.{}", self.name, self.format)
    }

    pub(crate) fn kind(&self) -> SourceKind {
        if self.format == "parquet" { SourceKind::Parquet } else { SourceKind::Arrow }
    }

    pub(crate) fn path(&self) -> PathBuf {
        folder(self.format).join(self.file())
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    pub(crate) fn stores(&self) -> Stores {
        // The files with two columns of images.
        let image = (self.name == "pyarrow_types").then(|| "photo".to_owned());
        let manifest = Manifest { image, ..Manifest::default() };
        Stores::new().with_list_options(ListOptions { manifest, ..ListOptions::default() })
    }

    pub(crate) fn open(&self) -> RowSource {
        RowSource::open(&self.stores(), Source::open(self.path()).unwrap()).unwrap()
    }

    /// As [`open`](Self::open), of these bytes in memory instead of the file's.
    pub(crate) fn open_bytes(&self, bytes: Vec<u8>) -> Result<RowSource, ReadError> {
        RowSource::open(&self.stores(), Source::from_bytes(self.path(), bytes))
    }

    pub(crate) fn texts(&self, what: &str) -> Vec<Option<String>> {
        let values = self.expected[what].as_array().unwrap();
        values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of all samples, or the errors of those that cannot be read.
pub(crate) fn read_all(samples: &dyn SampleSource) -> Vec<Result<Vec<u8>, ReadError>> {
    let read = |index| {
        let mut bytes = Vec::new();
        samples.read_into(index, &mut bytes).map(|()| bytes)
    };
    (0..samples.sample_count()).map(read).collect()
}
