//! LZMA: an XZ stream for each strip or tile, as libtiff writes them. The dictionary is charged
//! before the library allocates it.

use lzma_rust2::{Action, Status, XzStream};

use super::chunk::short_output;
use crate::error::DecodeError;
use crate::limits::WorkingMemory;

/// Fills `out` from `data`; the decoder takes no more than `memory` has left.
pub(super) fn decode(
    data: &[u8],
    out: &mut [u8],
    memory: WorkingMemory,
) -> Result<(), DecodeError> {
    const KIB: u64 = 1024;
    let size = out.len();
    // The largest number stands for no limit.
    let room_kib = u32::try_from(memory.left() / KIB).unwrap_or(u32::MAX).min(u32::MAX - 1);
    let mut stream = XzStream::new_mem_limit(false, room_kib);
    let mut input = data;
    let mut done = 0;
    while done < size {
        let Ok(step) = stream.process(input, &mut out[done..], Action::Finish) else {
            let need = u64::from(stream.memory_usage().unwrap_or(0)) * KIB;
            memory.check(need)?;
            break;
        };
        input = input.get(step.bytes_consumed..).unwrap_or_default();
        done += step.bytes_produced;
        let stuck = step.bytes_consumed == 0 && step.bytes_produced == 0;
        if step.status == Status::StreamEnd || stuck {
            break;
        }
    }
    if done < size { Err(short_output("LZMA data", size, done)) } else { Ok(()) }
}
