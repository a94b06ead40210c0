//! Each feature of the TAR formats, on archives built for it.

use tbl_format::path::PathDefect;
use tbl_io::{
    Field, MemberKind, ReadError, ReadLimits, SampleSource, SampleSourceExt, Source, TarArchive,
    TarDefect,
};

use crate::tar_bytes::{Archive, Header};

fn open(bytes: Vec<u8>) -> Result<TarArchive, ReadError> {
    TarArchive::new(Source::from_bytes("test.tar", bytes), ReadLimits::default())
}

/// Names and bodies of all samples.
fn contents(archive: &TarArchive) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..archive.sample_count())
        .map(|index| {
            let mut bytes = Vec::new();
            archive.read_into(index, &mut bytes).unwrap();
            (archive.entry(index).unwrap().key.unwrap().into_owned(), bytes)
        })
        .collect()
}

fn check(bytes: Vec<u8>, expected: &[(&[u8], &[u8])]) -> TarArchive {
    let archive = open(bytes).unwrap();
    let found = contents(&archive);
    let found: Vec<(&[u8], &[u8])> =
        found.iter().map(|(name, body)| (&name[..], &body[..])).collect();
    assert_eq!(found, expected);
    archive
}

fn check_defect(bytes: Vec<u8>, expected_offset: u64, expected: TarDefect) {
    match open(bytes) {
        Err(ReadError::Tar { offset, source, .. }) => {
            assert_eq!((offset, source), (expected_offset, expected));
        }
        other => panic!("{other:?}, expected {expected:?}"),
    }
}

#[test]
fn ustar_names_have_a_prefix_and_gnu_ones_do_not() {
    let mut ustar = Header::new(b"file.jpg", 2);
    ustar.set(345, b"some/long/prefix");
    let mut gnu = Header::new(b"file.png", 2).gnu();
    gnu.set(345, b"12574544345\0");
    let mut star = Header::new(b"file.bmp", 2);
    star.set(345, &[b'p'; 131]).set(476, b"12574544345\x0012574544345").set(508, b"tar\0");
    let mut v7 = Header::new(b"last.tif", 2).typed(0);
    v7.set(257, &[0; 8]).set(345, b"garbage");
    let archive = Archive::new()
        .entry(&ustar, b"aa")
        .entry(&gnu, b"bb")
        .entry(&star, b"cc")
        .entry(&v7, b"dd");
    let star_name = [&[b'p'; 131][..], b"/file.bmp"].concat();
    check(
        archive.finish(),
        &[
            (b"some/long/prefix/file.jpg", b"aa"),
            (b"file.png", b"bb"),
            (&star_name, b"cc"),
            (b"last.tif", b"dd"),
        ],
    );
}

#[test]
fn names_that_fill_their_field_have_no_nul() {
    let name = [b'n'; 100];
    let mut header = Header::new(&name, 0);
    header.set(345, &[b'p'; 155]);
    let expected = [&[b'p'; 155][..], b"/", &name].concat();
    check(Archive::new().entry(&header, b"").finish(), &[(&expected, b"")]);
}

#[test]
fn gnu_long_names_apply_to_the_next_member_only() {
    let long = [&[b'd'; 300][..], b"/x.jpg"].concat();
    let archive = Archive::new()
        .entry(
            &Header::new(b"././@LongLink", long.len() as u64 + 1).gnu().typed(b'L'),
            &[&long[..], b"\0"].concat(),
        )
        .entry(&Header::new(b"cut", 3).gnu(), b"one")
        .entry(&Header::new(b"././@LongLink", 5).gnu().typed(b'K'), b"link\0")
        .entry(&Header::new(b"y.jpg", 3).gnu(), b"two");
    check(archive.finish(), &[(&long, b"one"), (b"y.jpg", b"two")]);
}

#[test]
fn pax_path_and_size_win_over_the_header_and_long_names() {
    let archive = Archive::new()
        .entry(&Header::new(b"././@LongLink", 5).gnu().typed(b'L'), b"long\0")
        .pax(
            b'x',
            &[("path", "first.jpg"), ("mtime", "1.5"), ("path", "grün/日本.jpg"), ("size", "700")],
        )
        .entry(&Header::new(b"short.jpg", 3), &[7; 700])
        .member(b"next.jpg", b"next");
    check(archive.finish(), &[("grün/日本.jpg".as_bytes(), &[7; 700]), (b"next.jpg", b"next")]);
}

#[test]
fn global_pax_headers_apply_until_overridden() {
    let archive = Archive::new()
        .pax(b'g', &[("path", "global.jpg"), ("comment", "x")])
        .member(b"a.jpg", b"1")
        .pax(b'x', &[("path", "own.jpg")])
        .member(b"b.jpg", b"2")
        .pax(b'g', &[("path", "other.jpg")])
        .member(b"c.jpg", b"3");
    check(archive.finish(), &[(b"global.jpg", b"1"), (b"own.jpg", b"2"), (b"other.jpg", b"3")]);
}

#[test]
fn sizes_may_be_base_256() {
    let mut header = Header::new(b"a.jpg", 0);
    header.set(124, &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
    check(
        Archive::new().entry(&header, &[9; 513]).member(b"b.jpg", b"b").finish(),
        &[(b"a.jpg", &[9; 513]), (b"b.jpg", b"b")],
    );
}

#[test]
fn an_archive_may_lack_its_end_or_have_others_behind_it() {
    let one = Archive::new().member(b"a.jpg", b"a");
    let archive = check(one.clone().unfinished(), &[(b"a.jpg", b"a")]);
    assert!(!archive.has_end_marker());
    let two = Archive::new().member(b"b.jpg", b"b").finish();
    let archive =
        check([one.clone().finish(), two.clone()].concat(), &[(b"a.jpg", b"a"), (b"b.jpg", b"b")]);
    assert!(archive.has_end_marker());
    // Padded to the 10 KiB that GNU tar writes at once, and the second without an end.
    let mut padded = one.finish();
    padded.resize(10240, 0);
    let archive =
        check([&padded[..], &two[..1024]].concat(), &[(b"a.jpg", b"a"), (b"b.jpg", b"b")]);
    assert!(!archive.has_end_marker());
}

#[test]
fn what_follows_the_end_is_reported() {
    let bytes = Archive::new().member(b"a.jpg", b"a").finish();
    let clean = check(bytes.clone(), &[(b"a.jpg", b"a")]);
    assert_eq!((clean.has_end_marker(), clean.trailing_garbage()), (true, None));
    for garbage in [&b"x"[..], &[1; 511], &[1; 512], &[1; 2000]] {
        let archive = check([&bytes, garbage].concat(), &[(b"a.jpg", b"a")]);
        assert_eq!((archive.has_end_marker(), archive.trailing_garbage()), (true, Some(2048)));
    }
    let one_block = check(bytes[..1536].to_vec(), &[(b"a.jpg", b"a")]);
    assert_eq!((one_block.has_end_marker(), one_block.trailing_garbage()), (false, None));
}

#[test]
fn a_zeroed_header_is_damage_and_not_the_end() {
    let body = [7; 700];
    let archive = Archive::new().member(b"a.jpg", b"a").member(b"b.jpg", &body);
    let archive = archive.member(b"empty.jpg", b"").member(b"c.jpg", b"c");
    let with_zeroed = |offset: usize| {
        let mut bytes = archive.clone().finish();
        bytes[offset..offset + 512].fill(0);
        bytes
    };
    check_defect(with_zeroed(0), 0, TarDefect::ZeroBlock);
    check_defect(with_zeroed(1024), 1024, TarDefect::ZeroBlock);
    // Without bytes after it, it could be a separator, and is reported as odd.
    let found = check(with_zeroed(2560), &[(b"a.jpg", b"a"), (b"b.jpg", &body), (b"c.jpg", b"c")]);
    assert_eq!((found.lone_zero_block(), found.has_end_marker()), (Some(2560), true));
    let mut bytes = archive.finish();
    let whole = open(bytes.clone()).unwrap();
    assert_eq!((whole.lone_zero_block(), whole.trailing_garbage()), (None, None));
    // The marker itself may be damaged at its end: nothing is lost after it.
    *bytes.last_mut().unwrap() = b'\n';
    let stray = open(bytes.clone()).unwrap();
    assert_eq!((stray.sample_count(), stray.has_end_marker()), (4, false));
    assert_eq!(stray.trailing_garbage(), Some(bytes.len() as u64 - 1));
}

#[test]
fn an_empty_archive_has_no_samples_but_an_empty_file_is_none() {
    check(vec![0; 1024], &[]);
    check(vec![0; 10240], &[]);
    check_defect(Vec::new(), 0, TarDefect::Truncated { what: "header", need: 512, have: 0 });
    check_defect(vec![0; 511], 0, TarDefect::Truncated { what: "header", need: 512, have: 511 });
}

#[test]
fn links_directories_and_devices_are_counted() {
    let mut archive = Archive::new().member(b"a.jpg", b"a");
    for flag in *b"123456" {
        // Some archivers leave the size of the target in headers that have no data.
        archive = archive.entry(&Header::new(b"other", 1000).typed(flag), b"");
    }
    archive = archive
        .entry(&Header::new(b"old-style-directory/", 0).typed(0), b"")
        .entry(&Header::new(b"dump", 3).gnu().typed(b'D'), b"Yx\0")
        .entry(&Header::new(b"contiguous.jpg", 1).typed(b'7'), b"c");
    let archive = check(archive.finish(), &[(b"a.jpg", b"a"), (b"contiguous.jpg", b"c")]);
    let counts = archive.member_counts();
    assert_eq!((counts.regular, counts.directories, counts.symbolic_links), (2, 3, 1));
    assert_eq!((counts.hard_links, counts.devices, counts.sparse, counts.unknown), (1, 3, 0, 0));
    assert_eq!(archive.skipped(), []);
}

#[test]
fn a_hard_link_with_data_is_passed_over_by_name() {
    let archive = Archive::new()
        .member(b"a.jpg", b"a")
        .pax(b'x', &[("size", "600")])
        .entry(&Header::new(b"link", 0).typed(b'1'), &[b'x'; 600])
        .member(b"b.jpg", b"b");
    let archive = check(archive.finish(), &[(b"a.jpg", b"a"), (b"b.jpg", b"b")]);
    let skipped: Vec<_> = archive
        .skipped()
        .iter()
        .map(|member| (&member.path[..], member.kind, member.offset))
        .collect();
    assert_eq!(skipped, [(&b"link"[..], MemberKind::HardLink, 2048)]);
}

#[test]
fn sparse_and_unknown_members_are_passed_over_by_name() {
    let mut old_sparse = Header::new(b"old", 600).gnu().typed(b'S');
    old_sparse.set(482, &[1]);
    let mut first_extension = [b'0'; 512];
    first_extension[504] = 1;
    let mut last_extension = [b'0'; 512];
    last_extension[504] = 0;
    let archive = Archive::new()
        .entry(&old_sparse, b"")
        .raw(&first_extension)
        .raw(&last_extension)
        .raw(&[b's'; 600])
        .pax(b'x', &[("GNU.sparse.map", "0,5"), ("GNU.sparse.size", "9")])
        .entry(&Header::new(b"v01", 5), b"12345")
        .pax(
            b'x',
            &[
                ("GNU.sparse.major", "1"),
                ("GNU.sparse.minor", "0"),
                ("GNU.sparse.name", "real-name"),
            ],
        )
        .entry(&Header::new(b"GNUSparseFile.0/x", 5), b"12345")
        .entry(&Header::new(b"volume", 5).gnu().typed(b'M'), b"12345")
        .entry(&Header::new(b"odd", 5).typed(b'Q'), b"12345")
        .member(b"a.jpg", b"a");
    let archive = check(archive.finish(), &[(b"a.jpg", b"a")]);
    let skipped: Vec<_> =
        archive.skipped().iter().map(|member| (&member.path[..], member.kind)).collect();
    assert_eq!(
        skipped,
        [
            (&b"old"[..], MemberKind::Sparse),
            (b"v01", MemberKind::Sparse),
            (b"real-name", MemberKind::Sparse),
            (b"volume", MemberKind::MultiVolume),
            (b"odd", MemberKind::Unknown(b'Q')),
        ]
    );
    assert_eq!((archive.member_counts().sparse, archive.member_counts().unknown), (3, 2));
}

#[test]
fn damage_is_named_with_its_offset() {
    let good = Archive::new().member(b"a.jpg", b"a");
    let mut bytes = good.clone().member(b"b.jpg", b"b").finish();
    let stored =
        u64::from_str_radix(std::str::from_utf8(&bytes[1024 + 148..1024 + 154]).unwrap(), 8)
            .unwrap();
    bytes[1024] ^= 1;
    check_defect(bytes, 1024, TarDefect::Checksum { stored, computed: stored + 1 });

    let mut header = Header::new(b"b.jpg", 1);
    header.set(124, b"9");
    check_defect(
        good.clone().entry(&header, b"b").finish(),
        1024,
        TarDefect::BadNumber { field: "size" },
    );
    let mut header = Header::new(b"b.jpg", 1);
    header.set(124, &[0xff; 12]);
    check_defect(
        good.clone().entry(&header, b"b").finish(),
        1024,
        TarDefect::BadNumber { field: "size" },
    );

    let truncated =
        |need, have| TarDefect::Truncated { what: "member with its padding", need, have };
    let bytes = good.clone().member(b"b.jpg", &[1; 1000]).unfinished();
    check_defect(bytes[..bytes.len() - 1].to_vec(), 1536, truncated(1024, 1023));
    let mut header = Header::new(b"b.jpg", 1);
    header.set(124, &[0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    check_defect(good.clone().entry(&header, b"b").finish(), 1536, truncated(u64::MAX, 1536));

    check_defect(
        good.clone().pax(b'x', &[("path", "b")]).finish(),
        1024,
        TarDefect::Dangling { what: "PAX header" },
    );
    check_defect(
        good.clone().pax(b'x', &[("size", "-1")]).member(b"b", b"").finish(),
        1536,
        TarDefect::BadPaxValue { keyword: "size" },
    );
    let bad_record = good.clone().entry(&Header::new(b"pax", 4).typed(b'x'), b"oops");
    check_defect(bad_record.finish(), 1536, TarDefect::BadPaxRecord);
    let large = good.entry(&Header::new(b"pax", (1 << 20) + 1).typed(b'g'), b"");
    let (what, size, limit) = ("global PAX header", (1 << 20) + 1, 1 << 20);
    check_defect(large.finish(), 1024, TarDefect::MetadataTooLarge { what, size, limit });
}

#[test]
fn compressed_archives_are_called_by_their_name() {
    let mut bytes = vec![b'.'; 2000];
    for (magic, by) in [
        (&b"\x1f\x8b\x08"[..], "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh9", "bzip2"),
    ] {
        bytes[..magic.len()].copy_from_slice(magic);
        check_defect(bytes.clone(), 0, TarDefect::Compressed { by });
    }
}

#[test]
fn fields_come_with_every_image_of_their_group() {
    let archive = Archive::new()
        .member(b"d/1.cls", b"3")
        .member(b"d/1.jpg", b"image")
        .member(b"d/2.jpg", b"other")
        .member(b"d/1.seg.png", b"mask")
        .member(b"d/1.cls", b"4");
    let archive = check(archive.finish(), &[(b"d/1.jpg", b"image"), (b"d/2.jpg", b"other")]);
    let mut fields = Vec::new();
    archive.read_fields(0, &mut fields).unwrap();
    let field =
        |extension: &str, bytes: &str| Field { extension: extension.into(), bytes: bytes.into() };
    assert_eq!(fields, [field("cls", "4"), field("seg.png", "mask")]);
    archive.read_fields(1, &mut fields).unwrap();
    assert_eq!(fields.len(), 2);
    assert_eq!(archive.entry(0).unwrap().label, Some(4));
    assert_eq!(archive.entry(1).unwrap().label, None);
}

#[test]
fn duplicates_and_unprintable_names_are_kept() {
    let members: [(&[u8], &[u8]); 4] =
        [(b"a.jpg", b"1"), (b"a.jpg", b"2"), (b"a\\..\\x.jpg", b"3"), (b"\x1b[2J\xff.jpg", b"")];
    let archive =
        members.iter().fold(Archive::new(), |archive, (name, body)| archive.member(name, body));
    check(archive.finish(), &members);
}

#[test]
fn a_name_that_leaves_its_folder_is_damage_of_its_sample() {
    for (name, defect) in [
        (&b"../../x.jpg"[..], PathDefect::Parent),
        (b"a/../../x.jpg", PathDefect::Parent),
        (b"/abs.jpg", PathDefect::Absolute),
    ] {
        let archive = open(Archive::new().member(b"a.jpg", b"1").member(name, b"2").finish());
        let archive = archive.unwrap();
        assert_eq!(archive.entry(0).unwrap().key.as_deref(), Some(&b"a.jpg"[..]));
        let unsafe_name = |result: Result<(), ReadError>| match result {
            Err(ReadError::Sample { index: 1, key: Some(key), source }) if key == name => {
                let ReadError::Tar { offset: 1024, source, .. } = *source else {
                    panic!("{source}")
                };
                assert_eq!(source, TarDefect::UnsafeName { what: "member name", defect });
            }
            other => panic!("{other:?}"),
        };
        unsafe_name(archive.entry(1).map(drop));
        unsafe_name(archive.facts(1).map(drop));
        unsafe_name(archive.read_into(1, &mut Vec::new()));
        unsafe_name(archive.view(1).map(drop));
        unsafe_name(archive.stored(1).map(drop));
        unsafe_name(archive.read_fields(1, &mut Vec::new()));
    }
    let nul = Archive::new()
        .member(b"a.jpg", b"1")
        .pax(b'x', &[("path", "a.c\0ls")])
        .member(b"a.cls", b"2")
        .finish();
    let error = open(nul).unwrap().read_fields(0, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("unsafe field name: it contains a zero byte"), "{error}");
}

#[test]
fn a_sample_beyond_the_limit_is_refused() {
    let mut limits = ReadLimits::default();
    limits.sample_bytes = 9;
    let bytes = Archive::new().member(b"a.jpg", &[1; 9]).member(b"b.jpg", &[1; 10]).finish();
    let archive = TarArchive::new(Source::from_bytes("test.tar", bytes), limits).unwrap();
    let mut bytes = Vec::new();
    archive.read_into(0, &mut bytes).unwrap();
    let error = archive.read_into(1, &mut bytes).unwrap_err();
    let expected = "test.tar: sample 1 (b.jpg): sample bytes is 10, expected at most 9";
    assert_eq!(error.to_string(), expected);
    assert_eq!(archive.stored(1).unwrap_err().to_string(), expected);
    assert_eq!(archive.view(1).unwrap_err().to_string(), expected);
}

#[test]
fn a_long_global_name_does_not_multiply_memory() {
    let long = "n".repeat(100_000);
    let mut archive = Archive::new().pax(b'g', &[("path", &long)]);
    for _ in 0..1000 {
        archive = archive.member(b"a", b"");
    }
    let error = open(archive.finish()).unwrap_err();
    assert!(matches!(error, ReadError::Limit { what: "bytes of member names", .. }), "{error}");
}

/// Sparse on disk: a member of 5 GiB, one after it, and 16 GiB of zeros after the end.
#[test]
fn members_beyond_4_gib_are_found_and_holes_are_not_read() {
    use std::os::unix::fs::FileExt as _;

    const SIZE: u64 = (5 << 30) + 1;
    let file = tempfile::NamedTempFile::new().unwrap();
    let end = 512 + SIZE.next_multiple_of(512);
    file.as_file().write_all_at(&Header::new(b"huge.jpg", SIZE).block(), 0).unwrap();
    file.as_file().write_all_at(b"last byte", 512 + SIZE - 9).unwrap();
    let behind = Archive::new().member(b"behind.jpg", b"behind").unfinished();
    file.as_file().write_all_at(&behind, end).unwrap();
    file.as_file().set_len(end + (16 << 30)).unwrap();

    let archive = TarArchive::open(file.path()).unwrap();
    assert!(archive.has_end_marker());
    assert_eq!(archive.sample_count(), 2);
    assert_eq!(archive.entry(0).unwrap().bytes, SIZE);
    assert_eq!(archive.entry(1).unwrap().offset, end + 512);
    let mut bytes = Vec::new();
    archive.read_into(1, &mut bytes).unwrap();
    assert_eq!(bytes, b"behind");
    let error = archive.read_into(0, &mut bytes).unwrap_err();
    let ReadError::Sample { index: 0, source, .. } = error else { panic!("{error}") };
    assert!(matches!(*source, ReadError::Limit { need: SIZE, .. }), "{source}");
}
