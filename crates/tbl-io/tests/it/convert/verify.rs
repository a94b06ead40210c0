//! The findings of a data set's check, and the oddities that pass it.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use tbl_io::{
    AsStored, Compression, ConvertError, ConvertEvent, Finding, IndexOptions, Labels, Location,
    NewSample, Oddity, Selection, Stores, StreamWriter, Target, VerifySummary, WriteOptions,
    index_shards, verify,
};

use crate::tar_bytes::Archive;

use super::{borrow, convert, labelled, open, quick, see, write_tar};

/// The findings as text, and the summary.
fn check(path: &Path) -> (Vec<String>, VerifySummary) {
    check_all(&[path])
}

/// As [`check`] for several files.
fn check_all(paths: &[&Path]) -> (Vec<String>, VerifySummary) {
    let mut found = Vec::new();
    let summary =
        verify(&Stores::new(), paths, NonZeroUsize::MIN, AsStored::default, &mut |finding| {
            match finding {
                Finding::Damage { shard, reason } => {
                    found.push(format!("{}damage: {reason}", named(shard)));
                }
                Finding::BadSample { shard, index, .. } => {
                    found.push(format!("{}sample {index}", named(shard)));
                }
                Finding::Oddity { shard, oddity } => {
                    found.push(format!("{}{oddity}", named(shard)));
                }
                Finding::Progress { .. } | _ => {}
            }
            ControlFlow::Continue(())
        });
    (found, summary.unwrap())
}

/// The file name of the shard that a finding names, as a prefix.
fn named(shard: Option<&Location>) -> String {
    let name = shard.and_then(|shard| Path::new(shard.as_os_str()).file_name());
    name.map_or(String::new(), |name| format!("{}: ", name.display()))
}

#[test]
fn several_shards_are_one_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("0.tar"), &[(b"a.jpg", b"1"), (b"b.jpg", b"2")]);
    let one = Archive::new().member(b"b.jpg", b"3").member(b"../c.jpg", b"4");
    std::fs::write(at("1.tar"), one.member(b"d.jpg", b"5").finish()).unwrap();
    write_tar(&at("3.tar"), &[(b"e.jpg", b"6")]);
    let cut = std::fs::read(at("3.tar")).unwrap();
    std::fs::write(at("3.tar"), &cut[..2 * 512]).unwrap();
    let expected = ["3.tar: no end marker", "2 samples are called b.jpg", "1.tar: sample 3"];
    let shards = |summary: VerifySummary| (summary.shards, summary.samples, summary.bad_samples);
    let ranges = [at("{0..1}.tar"), at("3.tar")];
    let index = at("all.tlidx");
    index_shards(&Stores::new(), &ranges, &index, IndexOptions::default()).unwrap();
    for paths in [&ranges[..], std::slice::from_ref(&index)] {
        let paths: Vec<&Path> = paths.iter().map(|path| &**path).collect();
        let (found, summary) = check_all(&paths);
        assert_eq!(found, expected);
        assert_eq!(shards(summary), (3, 6, 1));
    }
    // A shard that cannot be opened does not keep the others from being checked.
    std::fs::write(at("0.tar"), [b'x'; 1024]).unwrap();
    let (found, summary) = check_all(&[&ranges[0], &ranges[1]]);
    assert!(found[0].starts_with("0.tar: damage: at byte 0: "), "{found:?}");
    assert_eq!(found[1..], ["3.tar: no end marker", "1.tar: sample 1"]);
    assert_eq!((shards(summary), summary.damaged_structures), ((3, 4, 1), 1));
    let end = &mut |_: Finding<'_>| ControlFlow::Continue(());
    let alone = verify(&Stores::new(), &[at("0.tar")], NonZeroUsize::MIN, AsStored::default, end);
    assert!(matches!(alone, Err(ConvertError::Read(error)) if error.is_damage()));
}

#[test]
fn a_sound_file_of_each_kind_is_good() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("in.tar"), &borrow(&labelled()));
    convert(&[at("in.tar")], &at("a.tbl"), &quick(Target::Tbl2(Compression::Lz4)));
    convert(&[at("in.tar")], &at("b.tbl"), &quick(Target::Tbl1));
    for name in ["in.tar", "a.tbl", "b.tbl"] {
        let (found, summary) = check(&at(name));
        assert_eq!(found, [""; 0], "{name}");
        assert!(summary.is_good() && summary.samples == 20, "{name}");
    }
}

#[test]
fn every_flipped_byte_that_means_anything_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let members = labelled();
    write_tar(&at("in.tar"), &borrow(&members[..8].to_vec()));
    convert(&[at("in.tar")], &at("a.tbl"), &quick(Target::Tbl2(Compression::None)));
    let whole = std::fs::read(at("a.tbl")).unwrap();
    let mut unseen = Vec::new();
    for position in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[position] ^= 0x10;
        std::fs::write(at("bad.tbl"), &damaged).unwrap();
        let mut bad = 0;
        let end = verify(
            &Stores::new(),
            &[at("bad.tbl")],
            NonZeroUsize::MIN,
            AsStored::default,
            &mut |finding| {
                bad += u32::from(matches!(
                    finding,
                    Finding::Damage { .. } | Finding::BadSample { .. }
                ));
                ControlFlow::Continue(())
            },
        );
        if end.is_ok() && bad == 0 {
            unseen.push(position);
        }
    }
    // The reserved bytes of the first metadata block's header, which mean nothing.
    let metadata = u64::from_le_bytes(whole[24..32].try_into().unwrap()) as usize;
    assert_eq!(unseen, [metadata + 14, metadata + 15], "of {} bytes", whole.len());
}

#[test]
fn whoever_hears_of_findings_can_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.tar");
    write_tar(&path, &borrow(&labelled()));
    let mut heard = 0;
    let end = verify(&Stores::new(), &[&path], NonZeroUsize::MIN, AsStored::default, &mut |_| {
        heard += 1;
        if heard == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(end, Err(ConvertError::Stopped)), "{end:?}");
    assert_eq!(heard, 3);
}

#[test]
fn members_behind_the_end_are_damage_and_other_bytes_are_odd() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    write_tar(&path, &[(b"a.jpg", b"1"), (b"b.jpg", &[2; 2000]), (b"c.jpg", b"3")]);
    let mut bytes = std::fs::read(&path).unwrap();
    // Two blocks of zeros where the second member starts: what follows them is its body.
    bytes[1024..2048].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let (found, summary) = check(&path);
    let damage = "damage: at byte 3584: a header after the end of the archive: members are cut off";
    assert_eq!(found, [damage, "bytes from byte 2048 on are not part of the archive"]);
    assert!(!summary.is_good());
    bytes[2048..].fill(b'x');
    std::fs::write(&path, &bytes).unwrap();
    let (found, summary) = check(&path);
    assert_eq!(found, ["bytes from byte 2048 on are not part of the archive"]);
    assert!(summary.is_good());
}

#[test]
fn oddities_are_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_tar(&at("twice.tar"), &[(b"a.jpg", b"1"), (b"b.jpg", b"2"), (b"a.jpg", b"3")]);
    let mut bytes = std::fs::read(at("twice.tar")).unwrap();
    bytes.truncate(6 * 512);
    std::fs::write(at("twice.tar"), bytes).unwrap();
    let (found, summary) = check(&at("twice.tar"));
    assert_eq!(found, ["no end marker", "2 samples are called a.jpg"]);
    assert!(summary.is_good() && summary.oddities == 2);

    let options = WriteOptions { sync: false, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(&at("a.tbl"), options).unwrap();
    for bytes in [b"12345678", b"abcdefgh", b"ABCDEFGH"] {
        writer.write_sample(&NewSample::new(bytes)).unwrap();
    }
    writer.finish().unwrap();
    let mut bytes = std::fs::read(at("a.tbl")).unwrap();
    // The third sample's entry now points to the second one's bytes.
    let second: [u8; 24] = bytes[64 + 24..64 + 48].try_into().unwrap();
    bytes[64 + 48..64 + 72].copy_from_slice(&second);
    std::fs::write(at("a.tbl"), bytes).unwrap();
    let (found, _) = check(&at("a.tbl"));
    let offset = u64::from_le_bytes(*second.first_chunk().unwrap());
    let overlap = Oddity::Overlap { first: 1, second: 2, offset }.to_string();
    assert!(found.contains(&overlap), "{found:?}");
}

#[test]
fn a_name_that_leaves_its_folder_is_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.tar");
    let archive = Archive::new().member(b"a.jpg", b"1").member(b"../b.jpg", b"2");
    std::fs::write(&path, archive.member(b"/c.jpg", b"3").finish()).unwrap();
    let (found, summary) = check(&path);
    assert_eq!(found, ["sample 1", "sample 2"]);
    assert_eq!((summary.bad_samples, summary.is_good()), (2, false));
    for target in [Target::Tar, Target::Tbl1, Target::Tbl2(Compression::None)] {
        let options = quick(target);
        let sources = open(std::slice::from_ref(&path));
        let labels = Labels::resolve(&sources).unwrap();
        let selection = Selection::all(&sources, &labels).unwrap();
        let to = folder.path().join("out");
        let go_on = &mut |_: ConvertEvent<'_>| ControlFlow::Continue(());
        let result = tbl_io::convert(&selection, &to, &options, AsStored::default, go_on);
        assert!(matches!(result, Err(ConvertError::Read(error)) if error.is_damage()));
        assert!(!to.exists());
    }
}

#[test]
fn names_and_labels_that_new_samples_cannot_have_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut writer = StreamWriter::create(&at("a.tbl"), WriteOptions::default()).unwrap();
    writer.set_class_names(&["cat".to_owned(), "dog".to_owned()]);
    let samples = [("", 7), ("./a.jpg", 1), ("a//b.jpg", 2), ("a/", 0), (".", i64::MAX)];
    for (key, label) in samples {
        let bytes = key.as_bytes();
        let sample = NewSample { key: Some(bytes), label: Some(label), ..NewSample::new(bytes) };
        let encoded = writer.encoder().encode(&sample).unwrap();
        writer.write(&encoded, bytes).unwrap();
    }
    writer.finish().unwrap();
    let target = quick(Target::Tbl2(Compression::None));
    convert(&[at("a.tbl")], &at("b.tbl"), &target);
    convert(&[at("a.tbl"), at("b.tbl")], &at("c.tbl"), &target);
    let seen = see(&open(&[at("a.tbl")]));
    let expected = samples.map(|(key, label)| (Some(key.as_bytes().to_vec()), Some(label)));
    assert!(seen.iter().map(|seen| (seen.key.clone(), seen.label)).eq(expected));
    assert_eq!(see(&open(&[at("b.tbl")])), seen);
    assert_eq!(see(&open(&[at("c.tbl")])), [&seen[..], &seen[..]].concat());
    // A plain `tar cf x.tar .` names members so.
    write_tar(&at("d.tar"), &[(b"./x/a.jpg", b"1"), (b"./y/b.jpg", b"2")]);
    convert(&[at("d.tar")], &at("d.tbl"), &target);
    assert_eq!(see(&open(&[at("d.tbl")])), see(&open(&[at("d.tar")])));
}
