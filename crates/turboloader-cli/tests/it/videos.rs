//! Videos: described from their index.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Run, tl, write};

fn clip(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/video").join(name)
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
