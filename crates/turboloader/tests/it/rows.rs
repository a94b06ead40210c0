//! Parquet, Arrow and token files in stores, over sockets of this machine: the batches of local files, and
//! what they cost.

use std::fs::{self, File};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int64Array, RecordBatch, StructArray};
use arrow_ipc::writer::FileWriter;
use tbl_io::{AsStored, ConvertOptions, IndexOptions, Labels, Selection, Stores, index_shards};
use tl_pipeline::{Columns, TokenNumber, TokenWork};
use tl_store_server::Dialect;
use tl_tokens::{TokenOptions, TokenType, Windows};
use turboloader::{Blocks, Dataset, Loader, LoaderConfig, Shuffle, Work};

use crate::remote::{Server, config, copy, rows, served};

/// Photographs in a Parquet file of several megabytes, in plain pages with an offset index.
fn write_parquet(root: &Path) -> PathBuf {
    let photos = tl_testdata::shipped!("photos");
    let folder = tempfile::tempdir().unwrap();
    for number in 10..30 {
        copy(&photos, &folder.path().join(format!("class {number}")));
    }
    let sources = [tbl_io::open(folder.path()).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let target = tl_pipeline::parquet_target().unwrap();
    let options = ConvertOptions { sync: false, ..ConvertOptions::new(target) };
    let mut on_event = |_: tbl_io::ConvertEvent<'_>| ControlFlow::Continue(());
    let path = root.join("photos.parquet");
    tbl_io::convert(&selection, &path, &options, AsStored::default, &mut on_event).unwrap();
    path
}

/// The samples of a data set in an Arrow file, in record batches of ten.
/// Rows of a record batch.
const ROWS_OF_BATCH: usize = 10;

fn write_arrow(path: &Path, samples: &Dataset) {
    let mut images = Vec::new();
    let mut labels = Vec::new();
    for index in 0..samples.len() {
        let mut image = Vec::new();
        samples.read_into(index, &mut image).unwrap();
        images.push(image);
        labels.push(samples.label(index).unwrap());
    }
    let image = |images: &[Vec<u8>]| -> ArrayRef {
        let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values(images));
        let fields = vec![("bytes", bytes)];
        Arc::new(StructArray::try_from(fields).unwrap())
    };
    let batches =
        images.chunks(ROWS_OF_BATCH).zip(labels.chunks(ROWS_OF_BATCH)).map(|(images, labels)| {
            let label: ArrayRef = Arc::new(Int64Array::from(labels.to_vec()));
            RecordBatch::try_from_iter([("image", image(images)), ("label", label)]).unwrap()
        });
    write_batches(path, &batches.collect::<Vec<_>>());
}

fn write_batches(path: &Path, batches: &[RecordBatch]) {
    let mut writer =
        FileWriter::try_new(File::create(path).unwrap(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

/// Requests since the last call.
struct Requests<'a> {
    server: &'a Server,
    before: u64,
}

impl Requests<'_> {
    fn take(&mut self) -> u64 {
        let counts = self.server.service.counts();
        let now = counts.gets + counts.heads;
        now - std::mem::replace(&mut self.before, now)
    }
}

#[test]
fn images_of_parquet_and_arrow_files_cost_a_request_each_and_together_few() {
    let root = tempfile::tempdir().unwrap();
    let parquet = write_parquet(root.path());
    let samples = Dataset::open(&[&parquet]).unwrap().len();
    assert!(samples >= 200 && fs::metadata(&parquet).unwrap().len() > 5 << 20, "{samples}");
    let arrow = root.path().join("photos.arrow");
    write_arrow(&arrow, &Dataset::open(&[&parquet]).unwrap());
    let block = Shuffle::Block { blocks: Blocks::Source, window: 2 };
    for dialect in [Dialect::S3, Dialect::Http] {
        let server = served(root.path(), dialect, |_| {});
        let stores = server.stores().add_to(tl_pipeline::stores());
        let indexed = root.path().join("photos.tlidx");
        let options = IndexOptions { sync: false, overwrite: true, update: false };
        index_shards(&stores, &[server.url("photos.parquet")], &indexed, options).unwrap();
        server.service.objects.put("b/photos.tlidx", fs::read(&indexed).unwrap());
        let mut requests = Requests { server: &server, before: 0 };
        for (name, local) in
            [("photos.parquet", &parquet), ("photos.tlidx", &parquet), ("photos.arrow", &arrow)]
        {
            for shuffle in [Shuffle::None, block, Shuffle::Full] {
                let config = || LoaderConfig { sampler: shuffle.into(), ..config(Work::Bytes) };
                let local = Loader::new(Dataset::open(&[local]).unwrap(), config()).unwrap();
                requests.take();
                let opened = Dataset::open_in(&stores, &[server.url(name)]).unwrap();
                let opening = requests.take();
                let remote = Loader::new(opened, config()).unwrap();
                let found = rows(remote.epoch(1));
                let reading = requests.take();
                println!("{dialect:?} {name} {shuffle}: {opening} and {reading} of {samples}");
                // The metadata of a record batch and its labels and offsets are in two places.
                let batches = samples.div_ceil(ROWS_OF_BATCH as u64);
                let most = if name.ends_with(".arrow") { 5 + 3 * batches } else { 5 };
                assert!(opening <= most, "{name}: {opening}");
                let most = if shuffle == Shuffle::Full { samples } else { samples / 3 };
                assert!(reading <= most, "{dialect:?} {name} {shuffle}: {reading} of {samples}");
                assert!(found == rows(local.epoch(1)), "{dialect:?} {name} {shuffle}");
            }
        }
    }
}

/// All that the batches of columns of an epoch have.
fn columns(dataset: Dataset, shuffle: Shuffle) -> Vec<Vec<u8>> {
    let sampler = shuffle.into();
    let config = LoaderConfig { sampler, ..config(Work::Columns(Columns::default())) };
    let loader = Loader::new(dataset, config).unwrap();
    let mut found = Vec::new();
    for batch in loader.epoch(1) {
        let batch = batch.unwrap();
        found.push(batch.indices().iter().flat_map(|index| index.to_le_bytes()).collect());
        found.extend(batch.columns().map(|column| column.bytes.to_vec()));
    }
    found
}

#[test]
fn tables_of_a_store_make_the_batches_of_local_files() {
    let root = tempfile::tempdir().unwrap();
    let tables = tl_testdata::shipped!("parquet/tables");
    fs::copy(tables.join("pyarrow_nulls.parquet"), root.path().join("a.parquet")).unwrap();
    let numbers = |first: i64| -> RecordBatch {
        let whole: ArrayRef = Arc::new(Int64Array::from_iter(first..first + 20_000));
        let halves = (0..20_000).map(|n| (n % 3 > 0).then(|| f64::from(n) / 2.0));
        let halves: ArrayRef = Arc::new(Float64Array::from_iter(halves));
        RecordBatch::try_from_iter([("whole", whole), ("half", halves)]).unwrap()
    };
    write_batches(&root.path().join("a.arrow"), &[numbers(0), numbers(20_000)]);
    for dialect in [Dialect::S3, Dialect::Http] {
        let server = served(root.path(), dialect, |_| {});
        let stores = server.stores().add_to(tl_pipeline::stores());
        let mut requests = Requests { server: &server, before: 0 };
        for name in ["a.parquet", "a.arrow"] {
            for shuffle in [Shuffle::None, Shuffle::Full] {
                let expected = columns(Dataset::open(&[root.path().join(name)]).unwrap(), shuffle);
                requests.take();
                let opened = Dataset::open_in(&stores, &[server.url(name)]).unwrap();
                let opening = requests.take();
                assert!(columns(opened, shuffle) == expected, "{dialect:?} {name} {shuffle}");
                let reading = requests.take();
                println!("{dialect:?} {name} {shuffle}: {opening} and {reading}");
                assert!(opening <= 6, "{name}: {opening}");
                assert!(reading <= 60, "{dialect:?} {name} {shuffle}: {reading}");
            }
        }
    }
}

#[test]
fn windows_of_tokens_cost_a_request_each_and_neighbours_come_together() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a.bin");
    let number = |n: u32| n.wrapping_mul(40_503).to_le_bytes();
    let tokens: Vec<u8> = (0..1_000_000).flat_map(|n| [number(n)[0], number(n)[1]]).collect();
    fs::write(&path, tokens).unwrap();
    let windows = Windows::new(NonZeroU32::new(1024).unwrap());
    let options = TokenOptions { number: Some(TokenType::U16), ..TokenOptions::default() };
    let work = || Work::Tokens(TokenWork { number: TokenNumber::Stored });
    for dialect in [Dialect::S3, Dialect::Http] {
        let server = served(root.path(), dialect, |_| {});
        let remote = server.stores().add_to(tl_pipeline::stores());
        let mut requests = Requests { server: &server, before: 0 };
        for shuffle in [Shuffle::None, Shuffle::Full] {
            let mut all = |stores: &Stores, location: &str| {
                let opened =
                    Dataset::open_tokens(stores, &[location], &options, windows.into()).unwrap();
                let opening = requests.take();
                let count = opened.len();
                let config = LoaderConfig { sampler: shuffle.into(), ..config(work()) };
                let loader = Loader::new(opened, config).unwrap();
                let mut found = Vec::new();
                for batch in loader.epoch(1) {
                    let batch = batch.unwrap();
                    for row in 0..batch.len() {
                        found.push(batch.token_row::<u16>(row).unwrap().tokens.to_vec());
                    }
                }
                (found, opening, requests.take(), count)
            };
            let (expected, ..) = all(&tl_pipeline::stores(), path.to_str().unwrap());
            let (found, opening, reading, count) = all(&remote, &server.url("a.bin"));
            assert!(found == expected, "{dialect:?} {shuffle}");
            println!("{dialect:?} {shuffle}: {opening} and {reading} of {count}");
            assert!(opening <= 2, "{opening}");
            let most = if shuffle == Shuffle::Full { count } else { count / 8 };
            assert!(reading <= most, "{dialect:?} {shuffle}: {reading} of {count}");
        }
    }
}
