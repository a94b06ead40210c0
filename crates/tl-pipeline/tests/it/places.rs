//! The same samples in sources of several kinds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tbl_io::{
    Coco, GivenLabels, HeldBytes, InMemory, Items, SampleSource, Stores, TarOptions, TarWriter,
    open_coco,
};
use tl_pipeline::Dataset;

use crate::arrow_files::{batch_ends, write_arrow};
use crate::memory::Stored;
use crate::parquet_files::{Form, Row, block_ends, write_parquet};

/// A kind of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A source of the tests.
    Watched,
    /// An archive, with labels that are given by name.
    Tar,
    Csv,
    Jsonl,
    /// A folder with a metadata file.
    Metadata,
    /// Paths of images, with labels that are given in order.
    Images,
    /// Annotations of COCO, with labels that are given by name.
    Coco,
    /// Bytes of the program, with labels that are given in order.
    Memory,
    /// An Arrow file, with labels that are given in order.
    Arrow,
    /// An Arrow stream that is compressed, with labels that are given in order.
    ArrowStream,
    /// Two Parquet files, with labels that are given in order.
    Parquet(Form),
}

impl Place {
    pub(crate) const ALL: [Self; 14] = [
        Self::Watched,
        Self::Tar,
        Self::Csv,
        Self::Jsonl,
        Self::Metadata,
        Self::Images,
        Self::Coco,
        Self::Memory,
        Self::Arrow,
        Self::ArrowStream,
        Self::Parquet(Form::Plain),
        Self::Parquet(Form::Packed),
        Self::Parquet(Form::Snappy),
        Self::Parquet(Form::Gzip),
    ];

    /// Rows of Arrow and Parquet files.
    pub(crate) const ROWS: [Self; 6] = [
        Self::Arrow,
        Self::ArrowStream,
        Self::Parquet(Form::Plain),
        Self::Parquet(Form::Packed),
        Self::Parquet(Form::Snappy),
        Self::Parquet(Form::Gzip),
    ];

    /// The sample after each block of a source of this many, if it has blocks.
    pub(crate) fn block_ends(self, samples: usize) -> Option<Vec<u64>> {
        match self {
            Self::Parquet(form) => Some(block_ends(form, &halves(samples))),
            Self::Arrow | Self::ArrowStream => Some(batch_ends(samples)),
            Self::Watched
            | Self::Tar
            | Self::Csv
            | Self::Jsonl
            | Self::Metadata
            | Self::Images
            | Self::Coco
            | Self::Memory => None,
        }
    }

    /// Opens samples that are files in `folder`, which is written by the first call. `watched` opens
    /// the source of the tests.
    pub(crate) fn open(
        self,
        samples: Vec<Stored>,
        folder: &Path,
        watched: impl FnOnce(Vec<Stored>) -> Dataset,
    ) -> Dataset {
        if self == Self::Watched {
            return watched(samples);
        }
        if !folder.join("samples").exists() {
            self.write(&samples, folder);
        }
        let path = |name: &str| folder.join(name);
        let open = |name: &str| Dataset::open(&[path(name)]).unwrap();
        let labels = samples.iter().map(|sample| sample.label.unwrap());
        let in_order = GivenLabels::in_order(labels.clone().collect());
        let names = samples.iter().map(|sample| sample.key.clone().into_bytes());
        let by_name = GivenLabels::by_name(names.zip(labels).collect());
        match self {
            Self::Watched | Self::Csv => open("list.csv"),
            Self::Jsonl => open("list.jsonl"),
            Self::Metadata => open("samples"),
            Self::Arrow => open("plain.arrow").with_labels(&in_order).unwrap(),
            Self::ArrowStream => open("packed.arrow").with_labels(&in_order).unwrap(),
            Self::Tar => open("a.tar").with_labels(&by_name).unwrap(),
            Self::Images => {
                let paths: Vec<PathBuf> =
                    samples.iter().map(|sample| path("samples").join(&sample.key)).collect();
                Dataset::open(&paths).unwrap().with_labels(&in_order).unwrap()
            }
            Self::Coco => {
                let options = Coco { images: Some((&path("samples")).into()), ..Coco::default() };
                let listed = open_coco(&Stores::new(), path("list.json"), &options).unwrap();
                from_source(Box::new(listed)).with_labels(&by_name).unwrap()
            }
            Self::Parquet(form) => {
                let mut first = 0;
                let mut files = Vec::new();
                for (number, rows) in halves(samples.len()).into_iter().enumerate() {
                    let file = path(&format!("{number}.parquet"));
                    let samples = &samples[first..first + rows];
                    if !file.exists() {
                        let rows: Vec<Row> = samples.iter().map(row).collect();
                        write_parquet(&file, form, &rows);
                    }
                    files.push(file);
                    first += rows;
                }
                Dataset::open(&files).unwrap().with_labels(&in_order).unwrap()
            }
            Self::Memory => {
                let held = |sample: Stored| Some(Arc::new(sample.bytes) as HeldBytes);
                let samples = InMemory::files(Items::each(samples.into_iter().map(held).collect()));
                from_source(Box::new(samples)).with_labels(&in_order).unwrap()
            }
        }
    }

    fn write(self, samples: &[Stored], folder: &Path) {
        let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
        std::fs::create_dir_all(folder.join("samples")).unwrap();
        let mut archive = TarWriter::create(&folder.join("a.tar"), TarOptions::default()).unwrap();
        let mut rows = [String::from("path,label\n"), String::new(), String::new(), String::new()];
        for (id, Stored { key, label, bytes, .. }) in samples.iter().enumerate() {
            std::fs::write(folder.join("samples").join(key), bytes).unwrap();
            archive.append(key.as_bytes(), bytes).unwrap();
            let label = label.unwrap();
            let comma = if id > 0 { "," } else { "" };
            rows[0] += &format!("samples/{key},{label}\n");
            rows[1] += &format!("{{\"path\": \"samples/{key}\", \"label\": {label}}}\n");
            rows[2] += &format!("{{\"file_name\": \"{key}\", \"label\": {label}}}\n");
            rows[3] += &format!("{comma}{{\"file_name\": \"{key}\", \"id\": {id}}}");
        }
        archive.finish().unwrap();
        let row = |sample: &Stored| Row {
            name: sample.key.clone(),
            image: sample.bytes.clone(),
            label: String::new(),
            text: String::new(),
        };
        let all: Vec<Row> = samples.iter().map(row).collect();
        write_arrow(&folder.join("plain.arrow"), Form::Plain, &all);
        write_arrow(&folder.join("packed.arrow"), Form::Packed, &all);
        let [csv, jsonl, metadata, images] = rows;
        write("list.csv", csv);
        write("list.jsonl", jsonl);
        write("list.json", format!("{{\"annotations\": [], \"images\": [{images}]}}"));
        if self == Self::Metadata {
            write("samples/metadata.jsonl", metadata);
        }
    }
}

/// The samples of two files, none of which is empty.
fn halves(samples: usize) -> Vec<usize> {
    let half = samples / 2;
    [half, samples - half].into_iter().filter(|&rows| rows > 0).collect()
}

fn row(sample: &Stored) -> Row {
    let (name, image) = (sample.key.clone(), sample.bytes.clone());
    Row { name, image, label: String::new(), text: String::new() }
}

fn from_source(source: Box<dyn SampleSource>) -> Dataset {
    Dataset::from_sources(vec![source]).unwrap()
}
