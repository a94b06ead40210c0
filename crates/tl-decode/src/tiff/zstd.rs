//! Zstandard (RFC 8878): one frame for each strip or tile. The window of the frame is charged before
//! the library allocates it.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::{DParameter, get_frame_content_size};

use super::chunk::short_output;
use crate::error::DecodeError;
use crate::limits::WorkingMemory;

/// Fills `out` from `data`; the decoder takes no more than `memory` has left.
pub(super) fn decode(
    data: &[u8],
    out: &mut [u8],
    memory: WorkingMemory,
) -> Result<(), DecodeError> {
    /// The library's largest window, so that only `memory` limits it.
    const LARGEST_WINDOW_LOG: u32 = 31;
    let size = out.len();
    let short = |have| short_output("Zstandard data", size, have);
    memory.check(window_bytes(data).ok_or_else(|| short(0))?)?;
    let mut decoder = Decoder::new().map_err(|_| short(0))?;
    decoder.set_parameter(DParameter::WindowLogMax(LARGEST_WINDOW_LOG)).map_err(|_| short(0))?;
    let mut input = InBuffer::around(data);
    let mut output = OutBuffer::around(out);
    while output.pos() < size {
        let before = (input.pos, output.pos());
        // 0 at the end of the frame.
        let hint = decoder.run(&mut input, &mut output).map_err(|_| short(0))?;
        if hint == 0 || before == (input.pos, output.pos()) {
            break;
        }
    }
    let done = output.pos();
    if done < size { Err(short(done)) } else { Ok(()) }
}

/// The memory that the frame at the front of `data` asks for (RFC 8878 section 3.1.1.1).
fn window_bytes(data: &[u8]) -> Option<u64> {
    const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    const SINGLE_SEGMENT: u8 = 0x20;
    /// Blocks on their way in and out, and tables.
    const BESIDES_WINDOW: u64 = 512 << 10;
    let &[descriptor, window, ..] = data.strip_prefix(&MAGIC)? else { return None };
    let window = if descriptor & SINGLE_SEGMENT == 0 {
        let base = 1u64 << (10 + u32::from(window >> 3));
        base + base / 8 * u64::from(window & 7)
    } else {
        get_frame_content_size(data).ok()??
    };
    window.checked_add(BESIDES_WINDOW)
}
