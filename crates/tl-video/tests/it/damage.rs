//! Damaged files: typed errors or an index within the file, in bounded memory.

use tl_video::{Limits, VideoError, VideoIndex};

use crate::support::{Clip, open};

/// Opens damaged bytes. An index that opens lies inside them, and plans for all of its frames.
fn check(bytes: &[u8]) -> Option<VideoIndex> {
    match open(bytes) {
        Ok(index) => {
            for number in 0..index.packet_count() {
                let packet = index.packet(number).unwrap();
                assert!(packet.offset + packet.bytes <= bytes.len() as u64 && packet.bytes > 0);
            }
            let frames: Vec<u64> = (0..index.frame_count()).collect();
            let times = || frames.iter().map(|number| index.frame(*number).unwrap().pts);
            assert!(times().is_sorted());
            index.cost(&frames).unwrap();
            index.frame_at(1.0);
            assert!(index.memory() < 8 * bytes.len() + 4096);
            Some(index)
        }
        Err(error) => {
            let line = error.to_string();
            assert!(
                line.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic()),
                "{line}"
            );
            None
        }
    }
}

/// Clips of different structures.
const STRUCTURES: [&str; 7] = [
    "h264_edits.mp4",
    "h264_fragments.mp4",
    "h264_tables.mp4",
    "h264_sound.mov",
    "h264.avi",
    "h264_opendml.avi",
    "vp9.webm",
];

#[test]
fn every_truncation_is_an_error_or_has_the_frames_before_it() {
    for clip in Clip::all() {
        let intact = clip.index();
        let mut opened = 0;
        for end in 0..clip.bytes.len() {
            let Some(index) = check(&clip.bytes[..end]) else { continue };
            opened += 1;
            // Fragments and clusters stand for themselves; other files lack bytes after the video.
            let is_prefix = (0..index.packet_count())
                .all(|number| index.packet(number) == intact.packet(number));
            assert!(is_prefix, "{} {end}", clip.name);
        }
        let is_streamed = clip.name.contains("fragments");
        assert!(is_streamed || opened < 200, "{}: {opened}", clip.name);
    }
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    *state >> 33
}

#[test]
fn flipped_bits_are_errors_or_an_index_in_the_file() {
    let mut state = 1;
    for clip in Clip::all() {
        let mut opened = 0;
        for _ in 0..2500 {
            let mut bytes = clip.bytes.clone();
            for _ in 0..1 + next(&mut state) % 3 {
                let at = next(&mut state) as usize % bytes.len();
                bytes[at] ^= 1 << (next(&mut state) % 8);
            }
            opened += u32::from(check(&bytes).is_some());
        }
        // Most flips hit pictures.
        assert!(opened > 250, "{}: {opened}", clip.name);
    }
}

/// Flips where headers are: every bit of the bytes that are not of packets.
#[test]
fn every_flipped_bit_of_a_header_is_survived() {
    for clip in STRUCTURES.map(Clip::of) {
        let index = clip.index();
        let packets: Vec<_> =
            (0..index.packet_count()).map(|number| index.packet(number).unwrap()).collect();
        let is_picture = |at: usize| {
            let at = at as u64;
            packets.iter().any(|packet| (packet.offset..packet.offset + packet.bytes).contains(&at))
        };
        // Sound and padding of AVI are most of it.
        let headers = (0..clip.bytes.len()).filter(|at| !is_picture(*at)).take(3000);
        for at in headers {
            for bit in 0..8 {
                let mut bytes = clip.bytes.clone();
                bytes[at] ^= 1 << bit;
                check(&bytes);
            }
        }
    }
}

#[test]
fn words_of_extreme_values_are_survived() {
    for clip in STRUCTURES.map(Clip::of) {
        let end = clip.bytes.len().min(1500);
        for at in (0..end).chain(clip.bytes.len().saturating_sub(1300)..clip.bytes.len() - 4) {
            for value in [0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
                let mut bytes = clip.bytes.clone();
                if let Some(word) = bytes.get_mut(at..at + 4) {
                    word.copy_from_slice(&u32::to_be_bytes(value));
                    check(&bytes);
                }
            }
        }
    }
}

#[test]
fn files_of_other_kinds_are_refused() {
    for bytes in [&b""[..], b"x", b"RIFF\0\0\0\0WAVEfmt ", &[0xff, 0xd8, 0xff, 0xe0, 0, 0, 0, 0]] {
        let error = open(bytes).unwrap_err();
        assert!(matches!(error, VideoError::UnknownContainer { .. }), "{error:?}");
    }
    let message = open(b"x").unwrap_err().to_string();
    assert_eq!(message, "not an MP4, MOV, Matroska, WebM or AVI file (1 bytes long)");
}

#[test]
fn limits_are_charged() {
    for clip in Clip::all() {
        let packets = clip.index().packet_count();
        let open = |limits| VideoIndex::open(&clip.bytes, &limits);
        let limits = Limits { max_packets: packets - 1, ..Limits::default() };
        let error = open(limits).unwrap_err();
        assert!(matches!(error, VideoError::LimitExceeded { .. }), "{} {error:?}", clip.name);
        // Of edits, the samples of the media are charged before.
        assert!(
            clip.name.contains("edit") || open(Limits { max_packets: packets, ..limits }).is_ok()
        );
        for limits in [
            Limits { max_table_bytes: 4, ..Limits::default() },
            Limits { max_headers: 1, ..Limits::default() },
        ] {
            let error = open(limits).unwrap_err();
            // `moov` can be the second box, after which nothing is visited.
            assert!(matches!(error, VideoError::LimitExceeded { .. }), "{} {error:?}", clip.name);
        }
    }
}
