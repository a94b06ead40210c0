//! Files of llm.c and modded-nanogpt: 256 numbers of 32 bits, then the tokens.

use tbl_io::{ReadError, Source, TokensDefect};

use super::{FRONT_BYTES, check_len};
use crate::layout::{Layout, TokenFormat, defect};
use crate::number::TokenType;

/// Each magic with its version and the type of the tokens: those of GPT-2 and of Llama 3.
const KINDS: [(u32, u32, TokenType); 2] =
    [(20_240_520, 1, TokenType::U16), (20_240_801, 7, TokenType::U32)];

/// Bytes of the header.
const HEADER_BYTES: u64 = 1024;

/// The place of the tokens; `None` for a file of another kind.
pub(super) fn layout(
    source: &Source,
    front: &[u8; FRONT_BYTES],
) -> Result<Option<Layout>, ReadError> {
    let [magic, version, count] = [0, 4, 8].map(|at| {
        let bytes = front[at..at + 4].try_into();
        u32::from_le_bytes(bytes.expect("the front has three numbers"))
    });
    let Some((_, expected, number)) = KINDS.into_iter().find(|(known, ..)| *known == magic) else {
        return Ok(None);
    };
    if version != expected {
        let [found, expected] = [version, expected].map(u64::from);
        return Err(defect(source, 4, TokensDefect::Version { found, expected }));
    }
    let bytes = u64::from(count) * number.bytes() as u64;
    check_len(source, "header and tokens", Some(HEADER_BYTES + bytes))?;
    Ok(Some(Layout { format: TokenFormat::LlmC, number, offset: HEADER_BYTES, bytes }))
}
