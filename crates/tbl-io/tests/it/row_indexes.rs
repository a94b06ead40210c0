//! Row indexes: written, read, carried from file to file, and refused when they are damaged or
//! belong to other bytes.

use std::error::Error;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use tbl_format::FormatError;
use tbl_format::checksum::crc32c;
use tbl_io::{
    AsStored, Compression, ConvertEvent, ConvertOptions, Entry, Finding, Labels, NewSample,
    Prepare, Prepared, ReadError, ReadOptions, RepairOptions, RowIndex, RowIndexTotals,
    SampleSource, SampleSourceExt, Selection, Source, StreamWriter, Target, TblFile, TblVersion,
    WriteOptions,
};

/// Bytes in front of the first row index of a block: both headers, the run, one entry a sample.
const fn block_front(samples: usize) -> usize {
    16 + 16 + 16 + 8 * samples
}

fn bytes_of(sample: u64) -> Vec<u8> {
    format!("the bytes of sample {sample}, over and over").repeat(3).into_bytes()
}

/// Every third sample has none, and no two of them are equal.
fn row_index_of(sample: u64) -> Option<Vec<u8>> {
    let rows = usize::try_from(sample % 7).unwrap() + 1;
    (!sample.is_multiple_of(3)).then(|| sample.to_le_bytes().repeat(rows))
}

fn write(path: &Path, options: WriteOptions, samples: u64) {
    let options = WriteOptions { sync: false, ..options };
    let mut writer = StreamWriter::create(path, options).unwrap();
    for sample in 0..samples {
        let (key, row_index) = (format!("{sample:04}.jpg"), row_index_of(sample));
        let (key, row_index) = (Some(key.as_bytes()), row_index.as_deref());
        writer
            .write_sample(&NewSample { key, row_index, ..NewSample::new(&bytes_of(sample)) })
            .unwrap();
    }
    let indexed = (0..samples).filter_map(row_index_of).count() as u64;
    let expected = if options.version == TblVersion::V2 { indexed } else { 0 };
    assert_eq!(writer.finish().unwrap().row_indexes, expected);
}

/// A file of `samples` samples in memory.
fn file_bytes(samples: u64) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("t.tbl"), WriteOptions::default(), samples);
    std::fs::read(folder.path().join("t.tbl")).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<TblFile, ReadError> {
    TblFile::from_source(Source::from_bytes("t.tbl", bytes), ReadOptions::default())
}

fn read(source: &dyn SampleSource, index: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let mut row_index = b"of the sample before".to_vec();
    let found = source.row_index_into(index, &mut row_index)?;
    assert!(found || row_index == b"of the sample before");
    Ok(found.then_some(row_index))
}

/// The row index of every sample of the file at `path`.
fn read_all(path: &Path) -> Vec<Option<Vec<u8>>> {
    let source = tbl_io::open(path).unwrap();
    (0..source.sample_count()).map(|index| read(&*source, index).unwrap()).collect()
}

fn convert<P: Prepare>(from: &[&Path], to: &Path, target: Target, new: impl Fn() -> P + Sync) {
    let sources: Vec<_> = from.iter().map(|path| tbl_io::open(path).unwrap()).collect();
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let mut options = ConvertOptions::new(target);
    options.sync = false;
    tbl_io::convert(&selection, to, &options, new, &mut |_| ControlFlow::Continue(())).unwrap();
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    let [none, lz4, zstd] = crate::tbl::compressions();
    for (compression, sample_count) in [(none, None), (lz4, None), (zstd, Some(20))] {
        let overwrite = true;
        let options = WriteOptions { compression, sample_count, overwrite, ..Default::default() };
        write(&path, options, 20);
        assert_eq!(read_all(&path), (0..20).map(row_index_of).collect::<Vec<_>>());
        let file = TblFile::open(&path).unwrap();
        let sizes = (0..20).filter_map(row_index_of).map(|row_index| row_index.len());
        // Sample 0 has none, so that the table starts at sample 1.
        let bytes = (block_front(19) + sizes.sum::<usize>()) as u64;
        assert_eq!(file.row_index_totals().unwrap(), RowIndexTotals { samples: 13, bytes });
        assert!(matches!(read(&file, 20), Err(ReadError::SampleOutOfRange { index: 20, .. })));
        file.verify_structure().unwrap();
    }
}

/// The file is never made again: readers of every later version must read it the same, and the
/// writer must keep making the same bytes.
#[test]
fn a_file_of_an_earlier_version_reads_the_same_and_is_written_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let golden = tl_testdata::shipped!("tbl/v2_row_indexes.tbl");
    assert_eq!(read_all(&golden), (0..5).map(row_index_of).collect::<Vec<_>>());
    write(&folder.path().join("t.tbl"), WriteOptions::default(), 5);
    assert!(std::fs::read(folder.path().join("t.tbl")).unwrap() == std::fs::read(golden).unwrap());
}

#[test]
fn a_container_without_a_place_for_them_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("1.tbl"), WriteOptions { version: TblVersion::V1, ..Default::default() }, 5);
    write(&at("2.tbl"), WriteOptions::default(), 5);
    convert(&[&at("2.tbl")], &at("3.tar"), Target::Tar, AsStored::default);
    for name in ["1.tbl", "3.tar"] {
        assert_eq!(read_all(&at(name)), vec![None; 5], "{name}");
    }
    let plain = at("plain.tbl");
    let mut writer = StreamWriter::create(&plain, WriteOptions::default()).unwrap();
    writer.write_sample(&NewSample { row_index: Some(&[]), ..NewSample::new(b"x") }).unwrap();
    writer.finish().unwrap();
    assert_eq!(read_all(&plain), [None]);
    assert_eq!(TblFile::open(&plain).unwrap().row_index_totals().unwrap().bytes, 0);
}

#[test]
fn more_than_a_block_holds_are_all_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    let options = WriteOptions { sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&path, options).unwrap();
    // 9 MiB of row indexes in blocks of at most 4, and a gap longer than a block has samples.
    let has_one = |sample: u64| !(300..70_000).contains(&sample);
    let row_index = |sample: u64| sample.to_le_bytes().repeat(2_000);
    for sample in 0..70_300_u64 {
        let bytes = sample.to_le_bytes();
        let row_index = has_one(sample).then(|| row_index(sample));
        let row_index = row_index.as_deref();
        writer.write_sample(&NewSample { row_index, ..NewSample::new(&bytes) }).unwrap();
    }
    assert_eq!(writer.finish().unwrap().row_indexes, 600);
    let file = TblFile::open(&path).unwrap();
    for sample in (0..310).chain(65_000..70_300) {
        let expected = has_one(sample).then(|| row_index(sample));
        assert!(read(&file, sample).unwrap() == expected, "sample {sample}");
    }
    assert_eq!(file.row_index_totals().unwrap().samples, 600);
}

#[test]
fn splitting_and_merging_keep_them_with_their_samples() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("whole.tbl"), WriteOptions::default(), 20);
    let sources = [tbl_io::open(at("whole.tbl")).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let target = Target::Tbl2(Compression::AsStored);
    for (name, range) in [("b.tbl", 7..20), ("a.tbl", 0..7)] {
        let (part, options) = (selection.part(range), ConvertOptions::new(target));
        tbl_io::convert(&part, &at(name), &options, AsStored::default, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap();
    }
    assert_eq!(read_all(&at("b.tbl")), (7..20).map(row_index_of).collect::<Vec<_>>());
    convert(&[&at("a.tbl"), &at("b.tbl")], &at("merged.tbl"), target, AsStored::default);
    let [whole, merged] = ["whole.tbl", "merged.tbl"].map(|name| std::fs::read(at(name)).unwrap());
    assert!(whole == merged);
}

/// Makes a row index of a sample's own bytes, keeps the stored one, makes none or fails.
struct Index;

impl Prepare for Index {
    const COSTLY: bool = true;

    fn prepare(
        &mut self,
        entry: &Entry<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Prepared, Box<dyn Error + Send + Sync>> {
        let row_index = match crc32c(bytes) % 8 {
            0 => RowIndex::None,
            1 => RowIndex::Failed("no".into()),
            2..5 => RowIndex::AsStored,
            _ => RowIndex::Made(crc32c(bytes).to_le_bytes().to_vec()),
        };
        Ok(Prepared { row_index, ..Prepared::as_stored(entry) })
    }

    fn check_row_index(
        &mut self,
        bytes: &[u8],
        row_index: &[u8],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        if row_index == crc32c(bytes).to_le_bytes() {
            Ok(())
        } else {
            Err("another image's".into())
        }
    }
}

#[test]
fn what_the_caller_makes_is_stored_whatever_the_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write(&at("in.tbl"), WriteOptions::default(), 130);
    let sources = [tbl_io::open(at("in.tbl")).unwrap()];
    let labels = Labels::resolve(&sources).unwrap();
    let selection = Selection::all(&sources, &labels).unwrap();
    let mut options = ConvertOptions::new(Target::Tbl2(Compression::None));
    for (workers, name) in [(1, "1.tbl"), (3, "3.tbl")] {
        options.workers = NonZeroUsize::new(workers).unwrap();
        let mut failed = Vec::new();
        let summary = tbl_io::convert(&selection, &at(name), &options, || Index, &mut |event| {
            if let ConvertEvent::Unindexed { index, .. } = event {
                failed.push(index);
            }
            ControlFlow::Continue(())
        });
        let summary = summary.unwrap();
        let found = read_all(&at(name));
        let expected: Vec<_> = (0..130)
            .map(|sample| match crc32c(&bytes_of(sample)) % 8 {
                0 | 1 => None,
                2..5 => row_index_of(sample),
                _ => Some(crc32c(&bytes_of(sample)).to_le_bytes().to_vec()),
            })
            .collect();
        assert_eq!(found, expected);
        let refused = (0..130).filter(|&sample| crc32c(&bytes_of(sample)) % 8 == 1);
        assert!(failed.len() > 5 && failed.iter().copied().eq(refused));
        let indexed = expected.iter().flatten().count() as u64;
        assert_eq!(
            (summary.row_indexes, summary.unindexed_samples),
            (indexed, failed.len() as u64)
        );
    }
    let [one, three] = ["1.tbl", "3.tbl"].map(|name| std::fs::read(at(name)).unwrap());
    assert!(one == three);
}

/// Samples that `tbl_io::verify` finds bad in the file at `path`.
fn bad_samples<C: Prepare>(path: &Path, new_check: impl Fn() -> C + Sync) -> Vec<(u64, String)> {
    let mut bad = Vec::new();
    tbl_io::verify(&tbl_io::Stores::new(), &[path], NonZeroUsize::MIN, new_check, &mut |finding| {
        if let Finding::BadSample { index, reason, .. } = finding {
            bad.push((index, reason.to_string()));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    bad
}

#[test]
fn verifying_compares_them_with_the_samples_where_the_caller_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tbl");
    write(&path, WriteOptions::default(), 5);
    assert_eq!(bad_samples(&path, AsStored::default), []);
    let expected = [1, 2, 4].map(|index| (index, "another image's".to_owned()));
    assert_eq!(bad_samples(&path, || Index), expected);
}

/// The offset of the block of row indexes, headers included.
fn block_offset(file: &[u8]) -> usize {
    let magic = b"TBLX\x01\0\x06\0";
    file.windows(magic.len()).position(|window| window == magic).unwrap() - 16
}

#[test]
fn a_flipped_bit_is_an_error_or_the_same_row_index() {
    let whole = file_bytes(5);
    let start = block_offset(&whole);
    // Samples 1 to 4, one of them without.
    let sizes: usize = (0..5).filter_map(row_index_of).map(|row_index| row_index.len()).sum();
    let end = start + block_front(4) + sizes;
    for bit in start * 8..end * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(file) = open(bytes) else { continue };
        file.verify_structure().unwrap_err();
        for sample in 0..5 {
            match read(&file, sample) {
                Ok(Some(found)) => assert_eq!(Some(found), row_index_of(sample), "bit {bit}"),
                // As when the block has become one of another kind, which readers skip.
                Ok(None) => {}
                Err(error) => assert!(error.is_damage(), "bit {bit}: {error}"),
            }
        }
        // In the bytes of a row index nothing is missed.
        if bit / 8 >= start + block_front(4) {
            let damaged = (0..5).filter(|&sample| read(&file, sample).is_err()).count();
            assert_eq!(damaged, 1, "bit {bit}");
        }
    }
}

#[test]
fn the_row_index_of_another_sample_is_refused_by_name() {
    let mut bytes = file_bytes(5);
    let start = block_offset(&bytes);
    // The run starts one sample earlier than it should.
    bytes[start + 32] = 0;
    let file = open(bytes).unwrap();
    match read(&file, 0).unwrap_err() {
        ReadError::Format { offset, source, .. } => {
            assert_eq!(offset, (start + 16) as u64);
            assert!(matches!(source, FormatError::Crc32c { what: "row index", .. }), "{source}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_file_without_the_checksums_they_belong_to_is_refused_by_name() {
    let mut bytes = file_bytes(2);
    let magic = b"TBLX\x01\0\x04\0";
    let list = bytes.windows(magic.len()).position(|window| window == magic).unwrap();
    bytes[list + 6] = 200;
    let error = open(bytes).unwrap_err();
    assert!(error.to_string().contains("unknown block is out of order"), "{error}");
}

#[test]
fn a_repair_keeps_the_good_ones_and_counts_the_lost() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let whole = file_bytes(9);
    let repair = |bytes: &[u8]| {
        std::fs::write(at("bad.tbl"), bytes).unwrap();
        let options = RepairOptions { sync: false, overwrite: true };
        tbl_io::repair(&at("bad.tbl"), &at("good.tbl"), options, AsStored, &mut |_| ()).unwrap()
    };
    assert_eq!(repair(&whole).without_row_index, 0);
    assert!(std::fs::read(at("good.tbl")).unwrap() == whole);

    let mut bytes = whole.clone();
    bytes[block_offset(&whole) + block_front(8)] ^= 1;
    let summary = repair(&bytes);
    assert_eq!((summary.kept, summary.without_row_index), (9, 1));
    let mut expected: Vec<_> = (0..9).map(row_index_of).collect();
    expected[1] = None;
    assert_eq!(read_all(&at("good.tbl")), expected);

    // A run that starts one sample earlier gives no sample the row index of another.
    let mut bytes = whole.clone();
    bytes[block_offset(&whole) + 32] = 0;
    assert_eq!(repair(&bytes).kept, 9);
    assert_eq!(read_all(&at("good.tbl")), vec![None; 9]);
}
