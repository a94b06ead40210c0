//! Decimal numbers between white space and comments, in headers and as samples.

use super::above_max;
use super::header::Header;
use crate::error::{DecodeError, Defect};
use crate::format::Format;

/// Reads the samples of a row from byte `at` on.
pub(super) fn read_row(
    header: &Header,
    bytes: &[u8],
    at: &mut usize,
    samples: &mut [u8],
) -> Result<(), DecodeError> {
    if header.is_bitmap {
        for sample in samples {
            skip_space(bytes, at);
            let digit = bytes.get(*at).copied().ok_or_else(|| ends_early(bytes))?;
            if !matches!(digit, b'0' | b'1') {
                return Err(stray(*at));
            }
            *sample = digit - b'0';
            *at += 1;
        }
        return Ok(());
    }
    for sample in samples.chunks_exact_mut(header.sample_bytes()) {
        let number = number(bytes, at)?;
        let value = u16::try_from(number).ok().filter(|value| *value <= header.max);
        let value = value.ok_or_else(|| above_max(*at - 1))?;
        let bytes = value.to_be_bytes();
        sample.copy_from_slice(&bytes[bytes.len() - header.sample_bytes()..]);
    }
    Ok(())
}

/// Reads a number and the one byte of white space after it, or the comment.
pub(super) fn number(bytes: &[u8], at: &mut usize) -> Result<u32, DecodeError> {
    skip_space(bytes, at);
    let digits = bytes.get(*at..).unwrap_or_default();
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut value = 0u32;
    for digit in &digits[..count] {
        let next = value.checked_mul(10).and_then(|tens| tens.checked_add((digit - b'0').into()));
        value = next.ok_or_else(|| stray(*at))?;
    }
    *at += count;
    match digits.get(count) {
        None => Err(ends_early(bytes)),
        Some(byte) if count > 0 && is_space(*byte) => {
            *at += 1;
            Ok(value)
        }
        Some(b'#') if count > 0 => {
            skip_comment(bytes, at);
            Ok(value)
        }
        Some(_) => Err(stray(*at)),
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

fn skip_space(bytes: &[u8], at: &mut usize) {
    while let Some(byte) = bytes.get(*at) {
        match *byte {
            b'#' => skip_comment(bytes, at),
            byte if is_space(byte) => *at += 1,
            _ => return,
        }
    }
}

/// Moves past a comment and the end of its line.
fn skip_comment(bytes: &[u8], at: &mut usize) {
    let comment = bytes.get(*at..).unwrap_or_default();
    let length = comment.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
    *at += length.map_or(comment.len(), |length| length + 1);
}

fn stray(offset: usize) -> DecodeError {
    let what = "expected a number and white space";
    Defect::Stray { format: Format::Pnm, what, offset: offset as u64 }.into()
}

fn ends_early(bytes: &[u8]) -> DecodeError {
    let what = "number";
    let offset = bytes.len() as u64;
    Defect::Truncated { format: Format::Pnm, what, offset, need: 1, have: 0 }.into()
}
