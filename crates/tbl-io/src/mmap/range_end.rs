//! The bytes that prove that a file has a range.

use std::ops::Range;

use super::{Mapped, call_opaque};

/// Bytes after a range that are looked at: two numbers of 64 bits, because one may be zero.
const LOOK_AHEAD: u64 = 16;

/// The smallest page of any system. A byte in another page could fault.
const PAGE_BYTES: u64 = 4096;

impl Mapped {
    /// Whether the bytes prove that the file has all of a range, which is not known if false. A file that
    /// was cut short reads as zeros up to the end of its last page, and later pages fault. So a byte that
    /// is not zero at the end of the range or after it proves it.
    pub(super) fn reaches_end(&self, offset: u64, len: u64) -> bool {
        let Range { start, end } = witnesses(offset, len, self.offset + self.len as u64);
        let bytes = self.range(start, end - start).unwrap_or_default();
        call_opaque(|bytes| bytes.iter().any(|&byte| byte != 0), bytes)
    }
}

/// The last byte of a range and those after it, in its page and in the mapped part: numbers often end
/// with zeros.
fn witnesses(offset: u64, len: u64, mapped_end: u64) -> Range<u64> {
    let end = offset + len;
    if len == 0 {
        return end..end;
    }
    let page_end = ((end - 1) | (PAGE_BYTES - 1)).saturating_add(1);
    end - 1..end.saturating_add(LOOK_AHEAD).min(page_end).min(mapped_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_begin_with_the_last_byte_and_stay_in_its_page_and_in_the_mapping() {
        assert_eq!(witnesses(8, 8, 100), 15..32);
        assert_eq!(witnesses(8, 8, 20), 15..20);
        assert_eq!(witnesses(4080, 10, 9000), 4089..4096);
        assert_eq!(witnesses(4080, 16, 9000), 4095..4096);
        assert_eq!(witnesses(4080, 17, 9000), 4096..4113);
        assert_eq!(witnesses(8, 0, 100), 8..8);
    }
}
