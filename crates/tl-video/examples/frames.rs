//! Prints the properties of a video, and the packets that its frame at a time needs.
//!
//! `cargo run -p tl-video --example frames -- FILE [SECONDS]`

use std::error::Error;
use std::fs::File;
use std::io::Write;

use tl_video::{Limits, VideoIndex};

fn main() -> Result<(), Box<dyn Error>> {
    let mut output = std::io::stdout().lock();
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        writeln!(output, "usage: frames FILE [SECONDS]")?;
        return Ok(());
    };
    let index = VideoIndex::open(&File::open(path)?, &Limits::default())?;
    let info = index.info();
    let codec = &info.codec_name;
    writeln!(output, "{}, {codec}, {}x{}", index.container(), info.width, info.height)?;
    let frames = index.frame_count();
    let memory = index.memory();
    writeln!(output, "{frames} frames, {:.2} a second, {memory} bytes", index.average_fps())?;
    let Some(seconds) = arguments.next() else { return Ok(()) };
    let Some(frame) = index.frame_at(seconds.parse()?) else {
        writeln!(output, "no frame is on display then")?;
        return Ok(());
    };
    for run in index.cost(&[frame])?.runs {
        let packets = run.packets.filter_map(|number| index.packet(number));
        let bytes: u64 = packets.map(|packet| packet.bytes).sum();
        writeln!(output, "frame {frame} takes {bytes} bytes")?;
    }
    Ok(())
}
