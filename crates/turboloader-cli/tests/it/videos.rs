//! Videos: described from their index, and stored with it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tbl_io::{NewSample, SampleSource, SampleSourceExt, StreamWriter, TblFile, WriteOptions};
use tl_video::{Limits, VideoIndex};

use crate::support::{Run, tar, tl, write};

fn clip(name: &str) -> PathBuf {
    tl_testdata::shipped!("video").join(name)
}

fn info(paths: &[&Path]) -> Run {
    tl([Path::new("info")].into_iter().chain(paths.iter().copied()))
}

#[test]
fn a_video_is_described_with_the_cost_of_a_random_frame() {
    let path = clip("h264_b.mp4");
    let expected = "kind         video, MP4
codec        H.264 (avc1)
size         96 x 64
frames       40
rate         25 frames/s, constant
duration     1.600 s
groups       4 of 4 to 12 pictures
file         6071
video        4791
random frame decodes 5.1 others on average, 11 at most; 0.9 KB read
";
    let text = info(&[&path]).text();
    assert_eq!(text.split_once('\n').unwrap().1, expected);
    let text = tl([Path::new("info"), &path, Path::new("--json")]).text();
    let facts: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(facts["schema"], "tl.info.video/1");
    assert_eq!(facts["groups"], json!({"count": 4, "shortest": 4, "longest": 12}));
    assert_eq!(
        facts["random_frame"],
        json!({"decoded": 6.1, "most_decoded": 12, "bytes": 896.0, "most_bytes": 1720})
    );
    let all = ["h264_rate.mp4", "h264_rotated.mov", "h264.avi", "vp9.webm", "av1_10_bits.mkv"];
    let all = all.map(clip);
    let text = info(&all.each_ref().map(PathBuf::as_path)).text();
    for part in [
        "rate         24.212 frames/s, variable",
        "rotation     270 degrees clockwise",
        "video, AVI",
        "without stored times",
        "codec        VP9 (V_VP9)",
        "video, Matroska",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_damaged_video_is_one_line_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(clip("h264_b.mp4")).unwrap();
    let cut = write(folder.path(), "cut.mp4", &whole[..3000]);
    let line = info(&[&cut]).error(1);
    assert!(line.ends_with("cut.mp4: MP4: `mdat` at byte 40 needs 4799 bytes, found 2960"));
}

/// The clips of `testdata`, in an archive.
fn archive(folder: &Path) -> PathBuf {
    let names = ["av1.mp4", "h264_b.mp4", "h264_open.mp4", "h264_opendml.avi", "vp9.webm"];
    let clips = names.map(|name| fs::read(clip(name)).expect("a clip"));
    let members = names.iter().zip(&clips);
    let members: Vec<_> =
        members.map(|(name, bytes)| (name.as_bytes(), bytes.as_slice())).collect();
    write(folder, "clips.tar", &tar(&members))
}

fn convert(from: &Path, to: &Path, options: &[&str]) -> Run {
    let fixed = ["convert".as_ref(), from.as_os_str(), "-o".as_ref(), to.as_os_str()];
    tl(fixed.into_iter().chain(options.iter().map(|option| option.as_ref())))
}

fn verify(path: &Path, decode: bool) -> Run {
    let fixed = [Path::new("verify"), path];
    tl(fixed.into_iter().chain(decode.then_some(Path::new("--decode"))))
}

#[test]
fn indexes_are_stored_with_videos_and_kept_in_copies() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = convert(&archive(folder.path()), &at("a.tbl"), &["--video-index", "--jpeg-index"]);
    assert!(run.stderr.contains(": 5 samples, 5 of them with an index, "), "{}", run.stderr);
    let file = TblFile::open(at("a.tbl")).unwrap();
    let mut bytes = Vec::new();
    let mut stored = Vec::new();
    for index in 0..file.sample_count() {
        file.read_into(index, &mut bytes).unwrap();
        assert!(file.row_index_into(index, &mut stored).unwrap());
        let length = bytes.len() as u64;
        let read = VideoIndex::from_bytes(&stored, length, &Limits::default()).unwrap();
        assert_eq!(read, VideoIndex::open(&bytes, &Limits::default()).unwrap());
    }
    assert!(info(&[&at("a.tbl")]).text().contains("video index  5 samples, "));
    for decode in [false, true] {
        assert!(verify(&at("a.tbl"), decode).text().contains(": good: 5 samples, "));
    }
    for options in [&["-q"][..], &["-q", "--jpeg-index"]] {
        convert(&at("a.tbl"), &at("b.tbl"), &[options, &["-f"]].concat());
        assert!(fs::read(at("a.tbl")).unwrap() == fs::read(at("b.tbl")).unwrap());
    }
    convert(&at("clips.tar"), &at("shards"), &["--each", "--video-index", "-q"]).good();
    assert!(info(&[&at("shards/clips.tbl")]).text().contains("video index  5 samples, "));
}

#[test]
fn a_video_that_cannot_be_indexed_is_kept_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(clip("h264_b.mp4")).unwrap();
    let cut = &whole[..whole.len() - 100];
    let archive = tar(&[(b"a.mp4", &whole), (b"b.mp4", cut), (b"c.txt", b"no video")]);
    let archive = write(folder.path(), "clips.tar", &archive);
    let to = folder.path().join("clips.tbl");
    let run = convert(&archive, &to, &["--video-index"]);
    assert!(run.stderr.contains("(b.mp4): kept without index: MP4: "), "{}", run.stderr);
    assert!(run.stderr.contains(": 2 samples, 1 of them with an index, "), "{}", run.stderr);
    assert!(verify(&to, false).text().contains("good: 2 samples"));
    let run = verify(&to, true);
    let found = String::from_utf8(run.stdout).unwrap();
    assert!(found.contains("sample 1 (b.mp4)") && found.contains(": MP4: "), "{found}");
}

/// A file of one clip with this index.
fn file_of(path: &Path, clip: &[u8], index: &[u8]) {
    let options = WriteOptions { sync: false, overwrite: true, ..WriteOptions::default() };
    let mut writer = StreamWriter::create(path, options).expect("the folder is writable");
    let sample = NewSample { row_index: Some(index), ..NewSample::new(clip) };
    writer.write_sample(&sample).expect("it is writable");
    writer.finish().expect("it is writable");
}

#[test]
fn an_index_that_is_not_the_videos_own_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clip.tbl");
    let clips = ["h264_b.mp4", "h264_open.mp4"].map(|name| fs::read(clip(name)).unwrap());
    let [own, other] = clips.each_ref().map(|clip| {
        VideoIndex::open(clip, &Limits::default()).unwrap().to_bytes(clip.len() as u64)
    });
    let [clip, _] = &clips;
    file_of(&path, clip, &own);
    verify(&path, false).text();
    let intact = fs::read(&path).unwrap();
    // Right by the checksums of the file, but not the index that the video has.
    let mut forged = own.clone();
    *forged.last_mut().unwrap() ^= 1;
    for (index, decode) in [(&other, false), (&other, true), (&forged, false)] {
        file_of(&path, clip, index);
        let run = verify(&path, decode);
        let found = String::from_utf8(run.stdout.clone()).unwrap();
        assert!(found.starts_with("sample 0 at byte "), "{found}");
        assert!(found.contains(": video index of "), "{found}");
        assert!(run.error(1).contains("1 of 1 samples bad"));
    }
    // Damaged in the file.
    let place = intact.windows(own.len()).position(|window| window == own).unwrap();
    for at in [0, 20, own.len() - 1] {
        let mut damaged = intact.clone();
        damaged[place + at] ^= 4;
        fs::write(&path, damaged).unwrap();
        let found = String::from_utf8(verify(&path, false).stdout).unwrap();
        assert!(found.contains("CRC-32C of row index is "), "{found}");
    }
}

#[test]
fn frames_that_do_not_decode_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut clip = fs::read(clip("h264_b.mp4")).unwrap();
    let index = VideoIndex::open(&clip, &Limits::default()).unwrap();
    let packet = index.packet(13).unwrap();
    let start = usize::try_from(packet.offset).unwrap();
    // The header of the slice, after its length: a type of slice that does not exist.
    clip[start + 5] = 0;
    let archive = write(folder.path(), "clips.tar", &tar(&[(b"a.mp4", &clip)]));
    assert!(verify(&archive, false).text().contains("good: 1 samples"));
    let found = String::from_utf8(verify(&archive, true).stdout).unwrap();
    assert!(found.contains("sample 0 (a.mp4)"), "{found}");
    assert!(found.contains(&format!("packet 13 at byte {}: H.264: ", packet.offset)), "{found}");
}

/// A folder of clips of one kind.
fn folder_of(folder: &Path, names: &[&str]) -> PathBuf {
    let to = folder.join("clips");
    fs::create_dir_all(&to).expect("the temporary folder is writable");
    for name in names {
        fs::copy(clip(name), to.join(name)).expect("the temporary folder is writable");
    }
    to
}

#[test]
fn doctor_names_long_groups_and_what_short_ones_would_decode() {
    let folder = tempfile::tempdir().unwrap();
    let clips = folder_of(folder.path(), &["h264_b.mp4", "h264_open.mp4"]);
    let doctor = |path: &Path, more: &[&str]| {
        let fixed = ["doctor".as_ref(), path.as_os_str()];
        tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref()))).text()
    };
    let text = doctor(&clips, &[]);
    assert!(text.contains("codecs    H.264 2\nframes    80 in 3.2 s\n"), "{text}");
    assert!(text.contains("\ngroups of pictures are long: a random frame decodes "), "{text}");
    let found: Value = serde_json::from_str(&doctor(&clips, &["--json"])).unwrap();
    assert_eq!((&found["schema"], &found["videos"]), (&json!("tl.doctor.videos/1"), &json!(2)));
    assert_eq!(found["longest_group"], 12);
    let times = found["decoded_per_frame"].as_f64().unwrap() / 1.5;
    let advice = found["advice"].as_str().unwrap();
    assert!(advice.contains(&format!("{times:.1} times fewer pictures")), "{advice}");
    let short = tempfile::tempdir().unwrap();
    let text = doctor(&folder_of(short.path(), &["av1.mp4"]), &[]);
    assert!(text.contains("a frame decodes 0.5 others on average"), "{text}");
    assert!(text.ends_with("groups of pictures are short enough for random frames\n"), "{text}");
}

/// The pixels of a sheet, three bytes each, and its width.
fn sheet(path: &Path) -> (Vec<u8>, usize) {
    let file = std::io::BufReader::new(fs::File::open(path).expect("a sheet"));
    let mut reader = png::Decoder::new(file).read_info().expect("a header");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a small sheet")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    (pixels, info.width as usize)
}

#[test]
fn previews_show_frames_of_a_video_and_one_of_each_video() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("sheet.png");
    let preview = |path: &Path, more: &[&str]| {
        let fixed = ["preview".as_ref(), path.as_os_str(), "-fo".as_ref(), to.as_os_str()];
        tl(fixed.into_iter().chain(more.iter().map(|arg| arg.as_ref())))
    };
    preview(&clip("h264_rotated.mov"), &["-n", "1", "--size", "96"]).good();
    let (pixels, width) = sheet(&to);
    // The first frame, turned upright: 64 x 96 pixels in the middle of a cell of 96.
    let bytes = fs::read(clip("h264_rotated.mov")).unwrap();
    let index = VideoIndex::open(&bytes, &Limits::default()).unwrap();
    let mut compared = 0;
    turboloader::video::show_frames(&index, &bytes[..], &[0], &mut |_, image| {
        assert_eq!((image.width, image.height), (64, 96));
        for (y, row) in image.data.chunks_exact(3 * 64).enumerate() {
            let start = 3 * ((8 + y) * width + 8 + 16);
            assert!(pixels[start..start + row.len()] == *row, "row {y}");
            compared += 1;
        }
    })
    .unwrap();
    assert_eq!(compared, 96);
    preview(&clip("h264_b.mp4"), &["-n", "12"]).good();
    let line = preview(&clip("h264_b.mp4"), &["--ops"]).error(2);
    assert!(line.contains("are for data sets, not one video"), "{line}");
    // One without a decoder is shown by its caption.
    let run = preview(&folder_of(folder.path(), &["h264_b.mp4", "vp8.webm"]), &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mut damaged = fs::read(clip("h264_b.mp4")).unwrap();
    damaged.truncate(3000);
    write(&folder.path().join("clips"), "cut.mp4", &damaged);
    let run = preview(&folder.path().join("clips"), &[]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("1 of 3 samples do not decode, the first: "), "{}", run.stderr);
    assert!(run.stderr.contains("(cut.mp4): MP4: "), "{}", run.stderr);
}

#[test]
fn videos_that_share_a_name_up_to_its_first_dot_have_a_note() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["run.back.mp4", "run.front.mp4", "walk.mp4", "walk.txt"] {
        let bytes =
            if name.ends_with("txt") { Ok(b"text".to_vec()) } else { fs::read(clip("vp9.mp4")) };
        fs::write(folder.path().join(name), bytes.unwrap()).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let note = "1 samples have several videos; one is decoded, such as run.back.mp4, and the others are \
                fields";
    assert_eq!(tl(["ls", path]).stderr, format!("tl: {path}: {note}\n"));
}

#[test]
fn files_that_only_their_names_make_videos_are_bad() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(clip("vp9.mp4"), folder.path().join("a.mp4")).unwrap();
    fs::write(folder.path().join("b.mp4"), b"").unwrap();
    fs::write(folder.path().join("c.avi"), b"not a video at all").unwrap();
    let run = tl(["verify", "--decode", folder.path().to_str().unwrap()]);
    let text = format!("{}{}", String::from_utf8_lossy(&run.stdout), run.stderr);
    for name in ["b.mp4", "c.avi"] {
        let part = format!("({name}) at byte 0: not an MP4, MOV, Matroska, WebM or AVI file");
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(text.contains("2 of 3 samples bad"), "{text}");
}

#[test]
fn a_folder_of_lerobot_says_who_opens_it() {
    let folder: PathBuf = tl_testdata::shipped!("lerobot");
    let line = tl([Path::new("info"), &folder]).error(2);
    assert!(line.ends_with(
        "a data set of LeRobot is opened by `LeRobotDataset` in Python, `LeRobot` in Rust"
    ));
}
