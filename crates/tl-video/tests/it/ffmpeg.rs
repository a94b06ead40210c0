//! Indexes equal what FFmpeg's demuxers and decoders say.

use serde_json::Value;
use tl_video::{Codec, Container, FrameTimes};

use crate::support::Clip;

fn list<'a>(clip: &'a Clip, name: &str) -> &'a Vec<Value> {
    clip.expected[name].as_array().unwrap()
}

#[test]
fn packets_are_those_of_ffmpeg() {
    for clip in Clip::all() {
        let index = clip.index();
        let expected = list(&clip, "packets");
        assert_eq!(index.packet_count(), expected.len() as u64, "{}", clip.name);
        for (number, expected) in (0..).zip(expected) {
            let packet = index.packet(number).unwrap();
            let place = format!("{} {number}", clip.name);
            // FFmpeg guesses the times of AVI; those of decoding are counted.
            let pts = if clip.is_avi() { &expected[1] } else { &expected[0] };
            assert_eq!(Some(packet.pts), pts.as_i64(), "{place}");
            assert_eq!(Some(packet.bytes), expected[3].as_u64(), "{place}");
            assert_eq!(Some(packet.is_key), expected[4].as_bool(), "{place}");
            let start = packet.offset as usize;
            let bytes = &clip.bytes[start..start + packet.bytes as usize];
            assert_eq!(Some(u64::from(crc32fast::hash(bytes))), expected[6].as_u64(), "{place}");
            if clip.name.contains(".m") {
                let is_mkv = clip.name.ends_with(".mkv");
                assert!(is_mkv || Some(packet.offset) == expected[2].as_u64(), "{place}");
            }
        }
        assert_eq!(index.packet(index.packet_count()), None);
    }
}

#[test]
fn packets_that_are_not_shown_are_those_that_ffmpeg_discards() {
    for clip in Clip::all() {
        let index = clip.index();
        let shown: Vec<u64> =
            (0..index.frame_count()).map(|frame| index.frame(frame).unwrap().packet).collect();
        for (number, expected) in (0..).zip(list(&clip, "packets")) {
            let is_shown = shown.contains(&number);
            assert_eq!(Some(!is_shown), expected[5].as_bool(), "{} {number}", clip.name);
        }
    }
}

#[test]
fn frames_are_shown_at_the_times_of_ffmpeg() {
    for clip in Clip::all() {
        let index = clip.index();
        let expected = list(&clip, "frames");
        assert_eq!(index.frame_count(), expected.len() as u64, "{}", clip.name);
        if clip.is_avi() {
            assert_eq!(index.info().times, FrameTimes::Counted);
            continue;
        }
        assert_eq!(index.info().times, FrameTimes::Stored);
        for (number, expected) in (0..).zip(expected) {
            let frame = index.frame(number).unwrap();
            assert_eq!(Some(frame.pts), expected[0].as_i64(), "{} {number}", clip.name);
        }
        let last = expected.last().unwrap();
        let end = last[0].as_i64().unwrap() + last[1].as_i64().unwrap();
        assert_eq!(index.end_pts(), end, "{}", clip.name);
        assert_eq!(Some(index.first_pts()), expected[0][0].as_i64());
        assert_eq!(index.frame(index.frame_count()), None);
    }
}

#[test]
fn properties_are_those_of_ffmpeg() {
    for clip in Clip::all() {
        let index = clip.index();
        let info = index.info();
        let expected = &clip.expected;
        let name = &clip.name;
        let number = |name: &str| expected[name].as_u64();
        assert_eq!(Some(u64::from(info.width)), number("width"), "{name}");
        assert_eq!(Some(u64::from(info.height)), number("height"), "{name}");
        let ratio = [info.sample_aspect_ratio.numerator, info.sample_aspect_ratio.denominator];
        let stated = if expected["sample_aspect_ratio"].is_null() {
            [1, 1]
        } else {
            [0, 1].map(|at| expected["sample_aspect_ratio"][at].as_u64().unwrap() as u32)
        };
        assert_eq!(ratio, stated, "{name}");
        // FFmpeg's angle is counter-clockwise.
        let rotation = (720 - expected["rotation"].as_i64().unwrap()) % 360;
        assert_eq!(i64::from(info.rotation), rotation, "{name}");
        let base = [info.time_base.numerator, info.time_base.denominator].map(u64::from);
        assert_eq!(base.map(Some), [0, 1].map(|at| expected["time_base"][at].as_u64()), "{name}");
        if let Some(matrix) = info.color.matrix {
            assert_eq!(Some(u64::from(matrix)), number("matrix"), "{name}");
        }
        if let Some(full_range) = info.color.full_range {
            assert_eq!(Some(if full_range { 2 } else { 1 }), number("range"), "{name}");
        }
        let codec = match expected["codec"].as_str().unwrap() {
            "h264" => Codec::H264,
            "hevc" => Codec::H265,
            "libdav1d" => Codec::Av1,
            "vp8" => Codec::Vp8,
            "vp9" => Codec::Vp9,
            other => panic!("{other}"),
        };
        assert_eq!(info.codec, codec, "{name}");
        let container = match name.rsplit_once('.').unwrap().1 {
            "mp4" | "mov" => Container::Mp4,
            "mkv" | "webm" => Container::Matroska,
            _ => Container::Avi,
        };
        assert_eq!(index.container(), container, "{name}");
    }
}

#[test]
fn colours_and_configurations_are_found() {
    let color = |name| Clip::of(name).index().info().color;
    assert_eq!(color("h264_rotated.mov").matrix, Some(1));
    assert_eq!(color("h264_10_bits.mp4").matrix, Some(1));
    assert_eq!(color("h264_10_bits.mp4").full_range, Some(true));
    assert_eq!(color("h264.mkv").matrix, Some(1));
    assert_eq!(color("h264.mkv").full_range, Some(true));
    for clip in Clip::all() {
        let index = clip.index();
        let configuration = &index.info().configuration;
        match (index.info().codec, index.container()) {
            // A version, and profiles.
            (Codec::H264 | Codec::H265, Container::Mp4 | Container::Matroska) => {
                assert_eq!(configuration[0], 1, "{}", clip.name);
            }
            (Codec::Av1, _) => assert_eq!(configuration[0], 0x81, "{}", clip.name),
            (Codec::Vp9, Container::Mp4) => assert_eq!(configuration.len(), 12),
            _ => assert!(configuration.is_empty(), "{}", clip.name),
        }
    }
}

#[test]
fn rates_are_those_of_ffmpeg() {
    for clip in Clip::all() {
        let expected = clip.expected["average_rate"].as_f64().unwrap();
        // FFmpeg counts the frames that an edit list hides, and their time.
        let is_edited = clip.name.contains("_edit.") || clip.name.contains("_edits.");
        let is_cut = is_edited || clip.name == "h264_fragments.mp4";
        let rate = clip.index().average_fps();
        assert!(is_cut || (rate / expected - 1.0).abs() < 0.03, "{} {rate}", clip.name);
    }
}
