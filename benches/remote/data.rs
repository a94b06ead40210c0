//! The photographs as TBL files.

use std::path::{Path, PathBuf};

use tbl_io::{IndexOptions, NewSample, Stores, StreamWriter, WriteOptions, index_shards};
use tempfile::TempDir;
use tl_benches::{is_measuring, photographs};

/// The bucket of the store, a folder of the files.
const BUCKET: &str = "bench";

/// The shard index, a file in the bucket.
const INDEX: &str = "train.tlidx";

/// Shards of one data set, in a folder that is removed with this.
pub(crate) struct Shards {
    folder: TempDir,
    /// Photographs in all of them.
    pub(crate) len: usize,
    /// Bytes of the photographs.
    pub(crate) bytes: u64,
    /// The number of shards.
    pub(crate) count: usize,
}

impl Shards {
    /// All photographs, repeated until they exceed the read-ahead.
    pub(crate) fn write() -> Self {
        let (count, len) = if is_measuring() { (16, 5440) } else { (2, 32) };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bucket = folder.path().join(BUCKET);
        std::fs::create_dir(&bucket).expect("a new folder");
        let mut photographs = photographs(usize::MAX);
        if photographs.len() > 100 {
            // Those of testdata are larger than the median of ImageNet.
            photographs.retain(|photograph| photograph.set == "imagenet");
        }
        let mut all = photographs.iter().cycle().take(len);
        let mut bytes = 0;
        for shard in 0..count {
            let path = bucket.join(name(shard));
            let mut writer =
                StreamWriter::create(&path, WriteOptions::default()).expect("a new file");
            for photograph in all.by_ref().take(len / count) {
                writer.write_sample(&NewSample::new(&photograph.bytes)).expect("space on the disk");
                bytes += photograph.bytes.len() as u64;
            }
            writer.finish().expect("space on the disk");
        }
        Self { folder, len: len / count * count, bytes, count }
    }

    /// The folder with the bucket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the index of the shards as objects of `stores`.
    pub(crate) fn index(&self, stores: &Stores) {
        let path = self.folder().join(BUCKET).join(INDEX);
        let options = IndexOptions { sync: false, overwrite: true, update: false };
        index_shards(stores, &self.urls(), &path, options).expect("the server answers");
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        (0..self.count).map(|shard| self.folder().join(BUCKET).join(name(shard))).collect()
    }

    pub(crate) fn urls(&self) -> Vec<PathBuf> {
        (0..self.count).map(|shard| format!("s3://{BUCKET}/{}", name(shard)).into()).collect()
    }
}

/// The URL of the shards' index.
pub(crate) fn index_url() -> PathBuf {
    format!("s3://{BUCKET}/{INDEX}").into()
}

fn name(shard: usize) -> String {
    format!("train-{shard:02}.tbl")
}
