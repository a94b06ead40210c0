//! PAX extended headers: records of `LENGTH KEY=VALUE` and a line feed (POSIX.1-2017 pax,
//! "pax Extended Header"), as far as they decide a member's name, size and sparseness.

use crate::error::TarDefect;

/// The properties that extended headers set for the members after them.
#[derive(Debug, Default)]
pub(crate) struct PaxRecords {
    /// An empty path is one that was taken away, and the header's with it (POSIX: an empty value
    /// deletes the header field, too).
    pub(crate) path: Option<Vec<u8>>,
    pub(crate) size: Option<u64>,
    /// A GNU sparse member, in any of the three layouts that GNU tar has used.
    pub(crate) is_sparse: bool,
    /// The name of a sparse member, whose `path` is a made-up one.
    pub(crate) sparse_path: Option<Vec<u8>>,
}

impl PaxRecords {
    /// Applies the records of one extended header; a later record overrides an earlier one.
    pub(crate) fn apply(&mut self, mut records: &[u8]) -> Result<(), TarDefect> {
        while !records.is_empty() {
            let ((keyword, value), rest) = split_record(records).ok_or(TarDefect::BadPaxRecord)?;
            self.apply_record(keyword, value)?;
            records = rest;
        }
        Ok(())
    }

    fn apply_record(&mut self, keyword: &[u8], value: &[u8]) -> Result<(), TarDefect> {
        match keyword {
            b"path" => self.path = Some(value.to_vec()),
            b"GNU.sparse.name" => {
                self.is_sparse = true;
                self.sparse_path = Some(value.to_vec());
            }
            b"size" => {
                let size = decimal(value).ok_or(TarDefect::BadPaxValue { keyword: "size" })?;
                self.size = Some(size);
            }
            _ if keyword.starts_with(b"GNU.sparse.") => self.is_sparse = true,
            _ => {}
        }
        Ok(())
    }
}

/// A record's keyword and value.
type Record<'a> = (&'a [u8], &'a [u8]);

/// Splits off the first record. The length counts the whole record, itself included.
fn split_record(records: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let blank = records.iter().position(|&byte| byte == b' ')?;
    let length = usize::try_from(decimal(&records[..blank])?).ok()?;
    let (record, rest) = records.split_at_checked(length)?;
    let content = record.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = content.iter().position(|&byte| byte == b'=')?;
    Some(((&content[..equals], &content[equals + 1..]), rest))
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, &digit| match digit {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_records_override_earlier_ones() {
        let mut records = PaxRecords::default();
        records.apply(b"10 path=a\n10 size=7\n18 path=b = c\nd e\n11 size=12\n").unwrap();
        assert_eq!(records.path.as_deref(), Some(&b"b = c\nd e"[..]));
        assert_eq!(records.size, Some(12));
        records.apply(b"8 path=\n").unwrap();
        assert_eq!(records.path.as_deref(), Some(&b""[..]));
    }

    #[test]
    fn every_malformed_record_is_refused() {
        let malformed: [&[u8]; 12] = [
            b"path=a\n",
            b"10path=a\n",
            b"10 path=ab",
            b"11 path=a\n",
            b"8 path=a\n",
            b"10 path a\n",
            b" path=a\n",
            b"-1 path=a\n",
            b"0 path=a\n",
            b"1 path=a\n",
            b"99999999999999999999 path=a\n",
            b"10 path=a\n\0",
        ];
        for records in malformed {
            let result = PaxRecords::default().apply(records);
            assert_eq!(result, Err(TarDefect::BadPaxRecord), "{records:?}");
        }
        for records in [
            &b"8 size=\n"[..],
            b"11 size=-1\n",
            b"12 size=0x1\n",
            b"29 size=18446744073709551616\n",
        ] {
            let result = PaxRecords::default().apply(records);
            assert_eq!(result, Err(TarDefect::BadPaxValue { keyword: "size" }), "{records:?}");
        }
    }

    #[test]
    fn every_sparse_layout_is_recognised() {
        for record in ["GNU.sparse.numblocks=1", "GNU.sparse.map=0,1", "GNU.sparse.major=1"] {
            let mut records = PaxRecords::default();
            records.apply(format!("{} {record}\n", record.len() + 4).as_bytes()).unwrap();
            assert!(records.is_sparse, "{record}");
        }
        let mut records = PaxRecords::default();
        records.apply(b"22 GNU.sparse.name=ab\n").unwrap();
        assert_eq!(records.sparse_path.as_deref(), Some(&b"ab"[..]));
    }
}
