//! Frames equal FFmpeg's to the bit, in whatever order they are decoded.

use std::collections::BTreeMap;

#[cfg(any(feature = "hevc", feature = "vp9"))]
use tl_video::Chroma;
use tl_video::{FrameDecoder, Limits, Picture, VideoError, VideoIndex};

use crate::support::{Clip, open};

fn clips() -> impl Iterator<Item = Clip> {
    Clip::all().into_iter().filter(|clip| {
        let is_av1 = cfg!(feature = "av1") && clip.name.starts_with("av1");
        let is_vp9 = cfg!(feature = "vp9") && clip.name.starts_with("vp9");
        let is_hevc = cfg!(feature = "hevc") && clip.name.starts_with("hevc");
        is_av1 || is_hevc || is_vp9 || clip.name.starts_with("h264")
    })
}

fn checksum(picture: &Picture) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    for plane in picture.views() {
        let bytes = plane.width as usize * plane.height as usize;
        let bytes = bytes * if picture.bit_depth > 8 { 2 } else { 1 };
        assert_eq!(plane.samples.len(), bytes);
        hasher.update(plane.samples);
    }
    hasher.finalize().into()
}

/// The checksums of frames by their numbers.
fn decode(
    decoder: &mut FrameDecoder,
    index: &VideoIndex,
    bytes: &[u8],
    frames: &[u64],
) -> Result<BTreeMap<u64, u64>, VideoError> {
    let mut decoded = BTreeMap::new();
    let plan = index.cost(frames)?;
    decoder.decode(index, &plan, bytes, &mut |frame, picture| {
        assert_eq!(decoded.insert(frame, checksum(&picture)), None, "each frame once");
    })?;
    Ok(decoded)
}

fn new(index: &VideoIndex) -> FrameDecoder {
    FrameDecoder::new(index, &Limits::default()).unwrap()
}

#[test]
fn all_frames_equal_those_of_ffmpeg() {
    for clip in clips() {
        let index = clip.index();
        let frames: Vec<u64> = (0..index.frame_count()).collect();
        let decoded = decode(&mut new(&index), &index, &clip.bytes, &frames);
        let decoded = decoded.unwrap_or_else(|error| panic!("{}: {error}", clip.name));
        let expected = clip.expected["frames"].as_array().unwrap();
        assert_eq!(decoded.len(), expected.len(), "{}", clip.name);
        for (number, expected) in (0..).zip(expected) {
            assert_eq!(Some(decoded[&number]), expected[2].as_u64(), "{} {number}", clip.name);
        }
    }
}

#[test]
fn a_seek_to_any_frame_equals_decoding_in_sequence() {
    for clip in clips() {
        let index = clip.index();
        let expected = clip.expected["frames"].as_array().unwrap();
        // With state of the frame before, which is of no use when seeking backwards.
        let mut kept = new(&index);
        for number in (0..index.frame_count()).rev() {
            for decoder in [&mut kept, &mut new(&index)] {
                let decoded = decode(decoder, &index, &clip.bytes, &[number]);
                let decoded = decoded.unwrap_or_else(|error| panic!("{}: {error}", clip.name));
                let expected = expected[number as usize][2].as_u64().unwrap();
                assert_eq!(decoded[&number], expected, "{} {number}", clip.name);
            }
        }
        // Forwards the state is used.
        for number in (0..index.frame_count()).step_by(3) {
            let decoded = decode(&mut kept, &index, &clip.bytes, &[number]).unwrap();
            let expected = expected[number as usize][2].as_u64().unwrap();
            assert_eq!(decoded[&number], expected, "{} {number}", clip.name);
        }
    }
}

#[test]
fn other_codecs_are_refused_by_name() {
    let decoded: Vec<String> = clips().map(|clip| clip.name).collect();
    for clip in Clip::all().into_iter().filter(|clip| !decoded.contains(&clip.name)) {
        let error = FrameDecoder::new(&clip.index(), &Limits::default()).unwrap_err();
        let index = clip.index();
        let container = index.container();
        let tl_video::VideoInfo { codec, codec_name, .. } = index.info();
        let is_feature = clip.name.starts_with("hevc");
        let more = if is_feature { ": builds with the feature `hevc` have one" } else { "" };
        let expected = format!("{container}: no decoder for {codec} (`{codec_name}`){more}");
        assert_eq!(error.to_string(), expected);
    }
}

#[cfg(feature = "vp9")]
#[test]
fn pictures_of_vp9_have_the_format_of_their_header() {
    let formats = [
        ("vp9.webm", 8, Chroma::Yuv420),
        ("vp9_10_bits.webm", 10, Chroma::Yuv420),
        ("vp9_444.mkv", 8, Chroma::Yuv444),
    ];
    for (name, bits, chroma) in formats {
        let clip = Clip::of(name);
        let index = clip.index();
        let mut pictures = Vec::new();
        let plan = index.cost(&[1]).unwrap();
        let mut decoder = new(&index);
        decoder
            .decode(&index, &plan, &clip.bytes, &mut |_, picture| pictures.push(picture))
            .unwrap();
        assert_eq!((pictures[0].bit_depth, pictures[0].chroma), (bits, chroma), "{name}");
        assert_eq!(pictures[0].color.full_range, Some(false), "{name}");
    }
}

#[test]
fn pictures_have_the_colours_of_their_header() {
    let clip = Clip::of("h264_rotated.mov");
    let index = clip.index();
    // The container says nothing of the range.
    assert_eq!(index.info().color.full_range, None);
    let plan = index.cost(&[0]).unwrap();
    new(&index)
        .decode(&index, &plan, &clip.bytes, &mut |_, picture| {
            assert_eq!(picture.color.matrix, Some(1));
            assert_eq!(picture.color.full_range, Some(true));
        })
        .unwrap();
}

#[test]
fn damaged_packets_are_errors_or_pictures() {
    damage(&["h264_b.mp4", "h264_10_bits.mp4", "h264.avi", "h264_open.avi"]);
}

#[cfg(feature = "vp9")]
#[test]
fn damaged_packets_of_vp9_are_errors_or_pictures() {
    damage(&["vp9.mp4", "vp9_hidden.webm", "vp9_10_bits.webm", "vp9_444.mkv"]);
}

#[cfg(feature = "hevc")]
#[test]
fn damaged_packets_of_hevc_are_errors_or_pictures() {
    damage(&["hevc.mp4", "hevc_10_bits.mkv", "hevc_open.avi"]);
}

#[cfg(feature = "hevc")]
#[test]
fn pictures_of_hevc_have_the_format_of_their_header() {
    let expected = [
        ("hevc.mp4", 8, None, Some(false)),
        ("hevc_10_bits.mkv", 10, Some(1), Some(true)),
        ("hevc_open.avi", 8, None, Some(false)),
    ];
    for (name, bits, matrix, full_range) in expected {
        let clip = Clip::of(name);
        let index = clip.index();
        let plan = index.cost(&[1]).unwrap();
        let mut seen = 0;
        new(&index)
            .decode(&index, &plan, &clip.bytes, &mut |_, picture| {
                seen += 1;
                assert_eq!((picture.bit_depth, picture.chroma), (bits, Chroma::Yuv420), "{name}");
                let size = (index.info().width, index.info().height);
                assert_eq!((picture.width, picture.height), size, "{name}");
                assert_eq!(picture.color.matrix, matrix, "{name}");
                assert_eq!(picture.color.full_range, full_range, "{name}");
            })
            .unwrap();
        assert_eq!(seen, 1, "{name}");
    }
}

/// Checks that decoding the first frame needs so many bytes.
#[cfg(any(feature = "hevc", feature = "vp9"))]
fn needs_memory(name: &str, need: u64) {
    let clip = Clip::of(name);
    let index = clip.index();
    let decoded = |max_decoder_bytes| {
        let limits = Limits { max_decoder_bytes, ..Limits::default() };
        let mut decoder = FrameDecoder::new(&index, &limits).unwrap();
        decode(&mut decoder, &index, &clip.bytes, &[0])
    };
    let text = decoded(100_000).unwrap_err().to_string();
    let expected = format!("limit exceeded: max_decoder_bytes is 100000, this file needs {need}");
    assert_eq!(text, expected);
    decoded(need).unwrap();
}

#[cfg(feature = "hevc")]
#[test]
fn limits_of_decoding_hevc_are_charged() {
    // 128x64 samples: ten pictures and one that is returned, each of three bytes a sample, and notes.
    needs_memory("hevc.mp4", 317_440);
}

#[cfg(feature = "vp9")]
#[test]
fn limits_of_decoding_vp9_are_charged() {
    // Twelve pictures of planes of 256x136 and twice 128x104 samples of two bytes, and notes of 96
    // blocks.
    needs_memory("vp9.mp4", 1_492_992);
}

#[cfg(feature = "av1")]
#[test]
fn damaged_packets_of_av1_are_errors_or_pictures() {
    damage(&["av1.mp4", "av1_10_bits.mkv"]);
}

/// The checksum of a frame, decoded by a new decoder.
fn seek(index: &VideoIndex, bytes: &[u8], frame: u64) -> Result<u64, VideoError> {
    let mut found = Err(VideoError::NoFrame { frame, count: 0 });
    let plan = index.cost(&[frame])?;
    new(index).decode(index, &plan, &bytes, &mut |_, picture| found = Ok(checksum(&picture)))?;
    found
}

#[test]
fn damage_in_an_open_group_changes_no_frame_of_others() {
    let clip = Clip::of("h264_open.avi");
    let index = clip.index();
    let frames = 0..index.frame_count();
    let expected: Vec<u64> =
        frames.clone().map(|frame| seek(&index, &clip.bytes, frame).unwrap()).collect();
    let is_key = |packet: &u64| index.packet(*packet).unwrap().is_key;
    let keys: Vec<u64> = (0..index.packet_count()).filter(is_key).collect();
    let mut errors = 0;
    for damaged in 0..index.packet_count() {
        let packet = index.packet(damaged).unwrap();
        let mut bytes = clip.bytes.clone();
        bytes[packet.offset as usize..(packet.offset + packet.bytes) as usize].fill(0);
        let group = keys.iter().rposition(|key| *key <= damaged).unwrap();
        // Pictures before the key picture of the next group are made of this one.
        let near = keys[group]..keys.get(group + 2).copied().unwrap_or(u64::MAX);
        for frame in frames.clone() {
            match seek(&index, &bytes, frame) {
                Ok(found) if !near.contains(&frame) => {
                    assert_eq!(found, expected[frame as usize], "packet {damaged}, frame {frame}");
                }
                Ok(_) => {}
                Err(error) => {
                    assert!(near.contains(&frame), "packet {damaged}, frame {frame}: {error}");
                    errors += 1;
                }
            }
        }
    }
    assert!(errors > 0);
}

#[test]
fn a_first_group_without_a_key_leaves_the_others_as_they_are() {
    let clip = Clip::of("h264_open.avi");
    let index = clip.index();
    let mut bytes = clip.bytes.clone();
    let at = bytes.windows(4).rposition(|window| window == b"idx1").unwrap() + 8;
    // `AVIIF_KEYFRAME` of the first packet.
    assert_eq!(&bytes[at..at + 8], b"00dc\x10\0\0\0");
    bytes[at + 4] = 0;
    let without = open(&bytes).unwrap();
    let is_key = |packet: &u64| without.packet(*packet).unwrap().is_key;
    let key = (0..without.packet_count()).find(is_key).unwrap();
    assert!(key > 0);
    // Nothing of it can be decoded.
    for number in 0..key {
        let packet = without.packet(number).unwrap();
        bytes[packet.offset as usize..(packet.offset + packet.bytes) as usize].fill(0);
    }
    for frame in key + 4..index.frame_count() {
        let expected = seek(&index, &clip.bytes, frame).unwrap();
        assert_eq!(seek(&without, &bytes, frame).unwrap(), expected, "frame {frame}");
    }
}

/// Damages a packet again and again, 150 times unless `TL_VIDEO_DAMAGE` says otherwise.
fn damage(names: &[&str]) {
    let count = std::env::var("TL_VIDEO_DAMAGE").map_or(150, |count| count.parse().unwrap());
    let mut state = 7_u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize
    };
    let mut errors = 0;
    let clips: Vec<Clip> = names.iter().map(|name| Clip::of(name)).collect();
    for clip in clips.iter().cycle().take(count) {
        let index = clip.index();
        let frames: Vec<u64> = (0..index.frame_count()).collect();
        let mut bytes = clip.bytes.clone();
        let packet = index.packet(next() as u64 % index.packet_count()).unwrap();
        let at = packet.offset as usize + next() % packet.bytes as usize;
        // A flipped bit, or zeros up to the end of the packet.
        if next() % 2 == 0 {
            bytes[at] ^= 1 << (next() % 8);
        } else {
            bytes[at..(packet.offset + packet.bytes) as usize].fill(0);
        }
        let mut decoder = new(&index);
        match decode(&mut decoder, &index, &bytes, &frames) {
            Ok(decoded) => assert_eq!(decoded.len(), frames.len()),
            Err(error) => {
                errors += 1;
                let is_named = matches!(
                    error,
                    VideoError::Decode { .. }
                        | VideoError::NoPicture { .. }
                        | VideoError::LimitExceeded { .. }
                );
                assert!(is_named && error.to_string().lines().count() == 1, "{error}");
            }
        }
        // The decoder can be used afterwards.
        let whole = decode(&mut decoder, &index, &clip.bytes, &[2]).unwrap();
        assert_eq!(Some(whole[&2]), clip.expected["frames"][2][2].as_u64(), "{}", clip.name);
    }
    assert!(errors > count / 8, "{errors}");
}

#[test]
fn a_plan_decodes_as_many_pictures_as_allowed() {
    let clip = Clip::of("h264_b.mp4");
    let index = clip.index();
    // Four groups: the last frame of the first one, and the first three of the second.
    let frames = [11, 12, 13, 14];
    let need = index.cost(&frames).unwrap().packet_count();
    assert!(need > 12);
    let decoded = |max_pictures| {
        let limits = Limits { max_pictures, ..Limits::default() };
        let mut decoder = FrameDecoder::new(&index, &limits).unwrap();
        decode(&mut decoder, &index, &clip.bytes, &frames)
    };
    assert_eq!(decoded(need).unwrap().len(), 4);
    assert_eq!(
        decoded(need - 1).unwrap_err().to_string(),
        format!(
            "the frames take {need} decoded pictures, at most {} (max_pictures) are allowed: a video \
             with more key frames takes fewer",
            need - 1
        )
    );
}

#[cfg(feature = "av1")]
#[test]
fn limits_of_decoding_av1_are_charged() {
    let clip = Clip::of("av1.mp4");
    let limits = Limits { max_decoder_bytes: 100_000, ..Limits::default() };
    let index = clip.index();
    let mut decoder = FrameDecoder::new(&index, &limits).unwrap();
    let error = decode(&mut decoder, &index, &clip.bytes, &[0]).unwrap_err().to_string();
    // 97x65 samples, 25 bytes each: eleven pictures and notes.
    assert_eq!(error, "limit exceeded: max_decoder_bytes is 100000, this file needs 157625");
}

#[test]
fn limits_of_decoding_are_charged() {
    let clip = Clip::of("h264_b.mp4");
    let index = clip.index();
    let error = |limits: Limits| {
        let mut decoder = FrameDecoder::new(&index, &limits).unwrap();
        decode(&mut decoder, &index, &clip.bytes, &[0]).unwrap_err().to_string()
    };
    let text = error(Limits { max_packet_bytes: 100, ..Limits::default() });
    assert_eq!(text, "limit exceeded: max_packet_bytes is 100, this file needs 817");
    let text = error(Limits { max_decoder_bytes: 100_000, ..Limits::default() });
    // 4 reference pictures and 3 others of 96x64 samples, 3 bytes each.
    assert_eq!(text, "limit exceeded: max_decoder_bytes is 100000, this file needs 129024");
}
