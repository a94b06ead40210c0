//! Frames of H.264, AV1 and VP9 in MP4, MOV, Matroska, WebM and AVI files.
#![no_main]

// A panic of a codec is an error of its packet, so only panics that arrive here end the run.
libfuzzer_sys::fuzz_target!(
    init: std::panic::set_hook(Box::new(|panic| eprintln!("{panic}"))),
    |data: &[u8]| fuzz_seeds::video_frames(data)
);
