//! Row indexes of JPEG samples, from conversion to training.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tbl_io::{NewSample, SampleSource, SampleSourceExt, StreamWriter, TblFile, WriteOptions};
use tl_decode::{DecodeError, Image, JpegDecoder, JpegRequest, Limits, Rect, RowIndex};

use crate::support::{Run, files_below, photos, tar, tl, write};

/// The start of a progressive frame: no photograph has these bytes elsewhere.
const PROGRESSIVE: [u8; 2] = [0xFF, 0xC2];

/// An archive of the photographs, a picture that is not a JPEG, and a photograph cut short; with it
/// which samples can have a row index.
fn archive(folder: &Path) -> (PathBuf, Vec<bool>) {
    let mut files = files_below(&photos());
    files.retain(|(name, _)| name.ends_with(".jpg"));
    let is_progressive = |bytes: &[u8]| bytes.windows(2).any(|window| window == PROGRESSIVE);
    let mut indexed: Vec<_> = files.iter().map(|(_, bytes)| !is_progressive(bytes)).collect();
    assert!(indexed.contains(&false) && indexed.contains(&true));
    indexed.extend([false; 2]);
    let cut = files[0].1[..files[0].1.len() / 2].to_vec();
    files.push(("textures/y.bmp".to_owned(), b"BM, and no more".to_vec()));
    files.push(("textures/z.jpg".to_owned(), cut));
    let members: Vec<_> =
        files.iter().map(|(name, bytes)| (name.as_bytes(), bytes.as_slice())).collect();
    (write(folder, "in.tar", &tar(&members)), indexed)
}

fn convert(from: &Path, to: &Path, options: &[&str]) -> Run {
    let fixed = ["convert".as_ref(), from.as_os_str(), "-o".as_ref(), to.as_os_str()];
    tl(fixed.into_iter().chain(options.iter().map(|option| option.as_ref())))
}

fn info(path: &Path) -> Value {
    let text = tl(["info".as_ref(), path, "--json".as_ref()]).text();
    serde_json::from_str(&text).expect("it is JSON")
}

fn count(indexed: &[bool]) -> usize {
    indexed.iter().filter(|indexed| **indexed).count()
}

/// The row index of each sample.
fn row_indexes(path: &Path) -> Vec<Option<Vec<u8>>> {
    let file = tbl_io::open(path).expect("it opens");
    let read = |index| {
        let mut bytes = Vec::new();
        file.row_index_into(index, &mut bytes).expect("it is readable").then_some(bytes)
    };
    (0..file.sample_count()).map(read).collect()
}

#[test]
fn a_conversion_stores_them_and_says_how_many() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (input, indexed) = archive(folder.path());
    let whole = count(&indexed);
    for (name, jobs) in [("a.tbl", "1"), ("b.tbl", "3")] {
        let run = convert(&input, &at(name), &["--jpeg-index", "-j", jobs]);
        assert_eq!(run.code, Some(0));
        let lines: Vec<_> = run.stderr.lines().collect();
        assert!(lines[0].contains("y.bmp): kept without dimensions: "), "{}", run.stderr);
        assert!(lines[1].contains("z.jpg): kept without index: "), "{}", run.stderr);
        let said = format!(": {} samples, {whole} of them with an index, ", indexed.len());
        assert!(lines[2].contains(&said), "{}", run.stderr);
        assert_eq!(lines.len(), 3, "{}", run.stderr);
    }
    assert!(fs::read(at("a.tbl")).unwrap() == fs::read(at("b.tbl")).unwrap());
    let found = row_indexes(&at("a.tbl"));
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), indexed);

    let (rows, bytes) =
        (&info(&at("a.tbl"))["row_index"], fs::metadata(at("a.tbl")).unwrap().len());
    let (samples, spent) = (rows["samples"].as_u64(), rows["bytes"].as_u64().unwrap());
    assert_eq!(samples, Some(whole as u64));
    let share = rows["share"].as_f64().unwrap();
    assert!((share * bytes as f64 - spent as f64).abs() < 1e-3 && share < 0.02, "{rows}");
    let text = tl([Path::new("info"), &at("a.tbl")]).text();
    let line =
        format!("row index    {whole} samples, {spent} bytes ({:.2} % of the file)", share * 100.0);
    assert!(text.contains(&line), "{text}");
    assert_eq!(info(&input)["row_index"], Value::Null);
}

#[test]
fn samples_keep_theirs_from_file_to_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (input, indexed) = archive(folder.path());
    let whole = count(&indexed);
    convert(&input, &at("a.tbl"), &["--jpeg-index", "-q"]);
    let same = |name: &str| {
        assert!(fs::read(at(name)).unwrap() == fs::read(at("a.tbl")).unwrap(), "{name}");
    };
    let run = convert(&at("a.tbl"), &at("b.tbl"), &[]);
    assert!(run.stderr.contains(&format!("{whole} of them with an index")), "{}", run.stderr);
    same("b.tbl");
    let shards = at("shards");
    tl([Path::new("split"), &at("a.tbl"), "-o".as_ref(), &shards, "--shards=3".as_ref()]).good();
    let mut parts: Vec<_> =
        files_below(&shards).into_iter().map(|(name, _)| shards.join(name)).collect();
    parts.sort();
    let mut merge = vec!["merge".into(), "-o".into(), at("merged.tbl")];
    merge.extend(parts);
    tl(merge).good();
    same("merged.tbl");
    tl([Path::new("repair"), &at("a.tbl"), "-o".as_ref(), &at("repaired.tbl")]).good();
    same("repaired.tbl");
    let mut bytes = fs::read(at("a.tbl")).unwrap();
    let first = row_indexes(&at("a.tbl")).swap_remove(0).expect("the first one has one");
    let at_byte = bytes.windows(first.len()).position(|window| window == first).unwrap();
    bytes[at_byte + 20] ^= 1;
    let bad = write(folder.path(), "bad.tbl", &bytes);
    let run = tl([Path::new("verify"), &bad]);
    let found = String::from_utf8(run.stdout).unwrap();
    assert!(found.contains("sample 0 (") && found.contains("CRC-32C of row index is "), "{found}");
    let run = tl([Path::new("repair"), &bad, "-o".as_ref(), &at("repaired.tbl"), "-f".as_ref()]);
    let said = String::from_utf8(run.stdout).unwrap();
    assert!(said.contains(": 12 kept, ") && said.contains(": 1 without the row index "), "{said}");
    assert_eq!(row_indexes(&at("repaired.tbl")).iter().flatten().count(), whole - 1);
    let refused = convert(&bad, &at("refused.tbl"), &[]).error(1);
    assert!(refused.contains("row index block") && refused.contains("tl repair"), "{refused}");
    convert(&at("repaired.tbl"), &at("healed.tbl"), &["--jpeg-index", "-q"]);
    same("healed.tbl");
    // An archive cannot store them, so the way back has to index again.
    convert(&at("a.tbl"), &at("back.tar"), &["-q"]).good();
    convert(&at("back.tar"), &at("plain.tbl"), &["-q"]);
    assert_eq!(row_indexes(&at("plain.tbl")), vec![None; indexed.len()]);
    convert(&at("plain.tbl"), &at("again.tbl"), &["-q", "--jpeg-index"]);
    same("again.tbl");
    assert_eq!(
        tl([Path::new("digest"), &at("plain.tbl")]).text(),
        tl([Path::new("digest"), &at("a.tbl")]).text()
    );
}

/// A file of two photographs with these row indexes.
fn file_of(path: &Path, photos: &[Vec<u8>], row_indexes: [&[u8]; 2]) {
    let options = WriteOptions { sync: false, overwrite: true, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(path, options).expect("the folder is writable");
    for (photo, row_index) in photos.iter().zip(row_indexes) {
        let format = tbl_format::SampleFormat::Jpeg;
        let sample = NewSample { format, row_index: Some(row_index), ..NewSample::new(photo) };
        writer.write_sample(&sample).expect("it is writable");
    }
    writer.finish().expect("it is writable");
}

#[test]
fn a_row_index_that_is_not_the_photographs_own_is_found_by_decoding() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (input, _) = archive(folder.path());
    convert(&input, &at("a.tbl"), &["--jpeg-index", "-q"]);
    let (made, file) = (row_indexes(&at("a.tbl")), TblFile::open(at("a.tbl")).unwrap());
    let mut photos = [Vec::new(), Vec::new()];
    for (index, photo) in (0..).zip(&mut photos) {
        file.read_into(index, photo).unwrap();
    }
    let [Some(first), Some(second)] = &made[..2] else { panic!("no row indexes") };
    let verify = |more: &[&str]| {
        let path = at("two.tbl");
        tl(["verify".as_ref(), path.as_os_str()]
            .into_iter()
            .chain(more.iter().map(|arg| arg.as_ref())))
    };
    file_of(&at("two.tbl"), &photos, [first, second]);
    verify(&["--decode"]).text();
    for decode in ["exact", "fast"] {
        let path = at("two.tbl");
        let train = |row_indexes| {
            file_of(&path, &photos, row_indexes);
            let fixed = ["bench".as_ref(), path.as_os_str(), "--decode".as_ref(), decode.as_ref()];
            let more = ["--recipe=imagenet-train", "--size=32", "--seconds=0", "--batch-size=2"];
            tl(fixed.into_iter().chain(more.map(OsStr::new)))
        };
        train([first, second]).good();
        let refused = train([second, second]).error(1);
        assert!(refused.contains("sample 0") && refused.contains("row index"), "{refused}");
    }
    let mut wrong = second.clone();
    wrong[40] ^= 1;
    for (first, second, bad) in [(second, second, 0), (first, &wrong, 1), (first, &vec![9; 30], 1)]
    {
        file_of(&at("two.tbl"), &photos, [first, second]);
        // As far as the file's checksums go, that is what was written.
        verify(&[]).text();
        let run = verify(&["--decode"]);
        let found = String::from_utf8(run.stdout.clone()).unwrap();
        assert!(found.starts_with(&format!("sample {bad} at byte ")), "{found}");
        assert!(found.contains(": row index of ") && found.lines().count() == 1, "{found}");
        assert!(run.error(1).contains("1 of 2 samples bad"));
    }
}

/// Decodes three parts of each sample of the file with its own row index, without one and with that
/// of the sample before.
fn decode_parts(path: &Path) -> usize {
    let made = row_indexes(path);
    let file = TblFile::open(path).expect("it opens");
    let (mut decoder, mut bytes) = (JpegDecoder::new(Limits::default()), Vec::new());
    let mut decode = |bytes: &[u8], region, index: Option<&[u8]>| -> Result<_, DecodeError> {
        let mut image = Image::new();
        let index = index.map(RowIndex::parse).transpose()?;
        let request = JpegRequest { region: Some(region), index, ..JpegRequest::default() };
        decoder.decode(bytes, &request, &mut image).map(|_| image.data)
    };
    let mut compared = 0;
    for index in 0..made.len() {
        let Some(own) = &made[index] else { continue };
        file.read_into(index as u64, &mut bytes).expect("it is whole");
        let entry = file.entry(index as u64).expect("it is whole");
        let (width, height) = (entry.width, entry.height);
        for (top, rows) in
            [(0, height), (height / 3, height / 3), (height - height / 4, height / 4)]
        {
            let (x, width) = (width / 5, width / 2);
            let region = Rect { x, y: top, width, height: rows };
            let expected = decode(&bytes, region, None).expect("it decodes");
            let found = decode(&bytes, region, Some(own)).expect("it decodes with its row index");
            assert!(found == expected, "sample {index}");
            if let Some(another) = index.checked_sub(1).and_then(|before| made[before].as_ref()) {
                let error = decode(&bytes, region, Some(another));
                let error = error.expect_err("it is another one's");
                assert!(error.to_string().contains("row index"), "sample {index}: {error}");
            }
            compared += 1;
        }
    }
    compared
}

#[test]
fn a_photograph_decodes_with_its_own_row_index_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tbl");
    let (input, indexed) = archive(folder.path());
    convert(&input, &path, &["--jpeg-index", "-q"]);
    assert_eq!(decode_parts(&path), 3 * count(&indexed));
}

#[tl_testdata::needs("imagenet")]
#[test]
fn many_photographs_decode_with_their_row_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tbl");
    convert(&tl_testdata::path!("imagenet"), &path, &["--jpeg-index", "-q"]).good();
    assert_eq!(decode_parts(&path), 3 * 678);
}

#[test]
fn batches_do_not_depend_on_them() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    convert(&photos(), &at("plain.tbl"), &["-q"]).good();
    convert(&photos(), &at("indexed.tbl"), &["-q", "--jpeg-index"]).good();
    let digest = |name: &str, recipe: &str, decode: &str| {
        let data = at(name);
        let fixed = ["bench".as_ref(), data.as_os_str()];
        let more = format!(
            "--recipe {recipe} --decode {decode} --size 48 --batch-size 5 --seconds 0 --digest --json"
        );
        let run = tl(fixed.into_iter().chain(more.split(' ').map(OsStr::new)));
        let line: Value = serde_json::from_str(&run.text()).expect("it is JSON");
        line["digest"].as_str().expect("there is one").to_owned()
    };
    for recipe in ["imagenet-train", "imagenet-eval"] {
        for decode in ["exact", "fast"] {
            let [plain, indexed] =
                ["plain.tbl", "indexed.tbl"].map(|name| digest(name, recipe, decode));
            assert_eq!(plain, indexed, "{recipe}, {decode}");
        }
    }
}

#[test]
fn targets_without_a_place_for_them_are_usage_errors() {
    for to in ["raw", "tbl1", "tar"] {
        let run = tl(["convert", "x", "-o", "y", "--jpeg-index", "--to", to]);
        assert!(run.error(2).contains("are for TBL version 2"));
    }
}
