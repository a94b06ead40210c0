//! `decode`: pixels out, or one line that says why not.

use std::fs;

use crate::support::{photos, tar, tl, write};

#[test]
fn a_photograph_becomes_a_ppm() {
    let photo = photos().join("animals/chelsea.jpg");
    let ppm = tl(["decode".as_ref(), photo.as_os_str(), "--ppm".as_ref()]).good();
    let header = b"P6\n";
    assert!(ppm.starts_with(header));
    let text = String::from_utf8_lossy(&ppm[..20]).into_owned();
    let size: Vec<usize> =
        text.split_ascii_whitespace().skip(1).take(2).map(|side| side.parse().unwrap()).collect();
    let header = format!("P6\n{} {}\n255\n", size[0], size[1]);
    assert_eq!(ppm.len(), header.len() + size[0] * size[1] * 3);

    let line = tl(["decode".as_ref(), photo.as_os_str()]).text();
    assert!(
        line.contains(&format!("{}x{} JPEG, 3 channels of 8 bits", size[0], size[1])),
        "{line}"
    );
}

#[test]
fn a_sample_decodes_like_the_file_it_came_from() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let photo = photos().join("science/microaneurysms.png");
    let bytes = fs::read(&photo).expect("the photograph is there");
    let members: [(&[u8], &[u8]); 2] = [(b"a.jpg", b"no image"), (b"b.png", &bytes)];
    let archive = write(folder.path(), "in.tar", &tar(&members));
    let of = |index: &str| {
        let args = ["decode".as_ref(), archive.as_os_str(), "--ppm".as_ref(), "--index".as_ref()];
        tl(args.into_iter().chain([index.as_ref()]))
    };
    let file = tl(["decode".as_ref(), photo.as_os_str(), "--ppm".as_ref()]).good();
    assert!(of("1").good() == file, "the pixels differ");
    let message = of("0").error(1);
    assert!(message.contains("in.tar: sample 0 (a.jpg): "), "{message}");
    let out = folder.path().join("out.ppm");
    let args = ["decode".as_ref(), photo.as_os_str(), "--ppm".as_ref(), "-o".as_ref()];
    tl(args.into_iter().chain([out.as_os_str()])).good();
    assert!(fs::read(&out).expect("it was written") == file, "the pixels differ");
}

#[test]
fn damaged_images_are_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = fs::read(photos().join("animals/chelsea.jpg")).expect("the photograph is there");
    for (name, bytes) in [
        ("empty.jpg", &b""[..]),
        ("text.jpg", b"not an image"),
        ("half.jpg", &whole[..whole.len() / 2]),
        ("head.jpg", &whole[..20]),
    ] {
        let path = write(folder.path(), name, bytes);
        let message = tl(["decode".as_ref(), path.as_os_str(), "--ppm".as_ref()]).error(1);
        assert!(message.contains(name), "{message}");
    }
    let message = tl(["decode", "/no/such.jpg"]).error(2);
    assert!(message.contains("/no/such.jpg: No such file"), "{message}");
    let message = tl(["decode".as_ref(), folder.path().as_os_str()]).error(2);
    assert!(message.contains("directory"), "{message}");
}
