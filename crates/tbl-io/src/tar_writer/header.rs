//! The header blocks of one regular file: POSIX.1-2001 ustar, preceded by a PAX extended header
//! for what its fields cannot hold.

/// Bytes of a header block.
const BLOCK: usize = 512;
/// Longest name in the name field; it needs no final zero when it fills the field.
const NAME_BYTES: usize = 100;
/// Longest folder part in the prefix field.
const PREFIX_BYTES: usize = 155;
/// Largest size that eleven octal digits hold: 8 GiB - 1.
const MAX_OCTAL_SIZE: u64 = (1 << 33) - 1;

/// The header blocks of a regular file, ready to be followed by its bytes.
///
/// `name` must be free of zero bytes and shorter than 1 MiB.
pub(super) fn encode(name: &[u8], size: u64) -> Vec<u8> {
    let fields = split(name);
    let mut records = Vec::new();
    match (std::str::from_utf8(name), fields) {
        // Without a record the bytes are taken as they are, which is all they can be.
        (Err(_), Some(_)) => {}
        (Ok(_), Some(_)) if name.is_ascii() => {}
        (Ok(_), _) => record(&mut records, "path", name),
        (Err(_), None) => {
            // POSIX: without this, values are UTF-8.
            record(&mut records, "hdrcharset", b"BINARY");
            record(&mut records, "path", name);
        }
    }
    if size > MAX_OCTAL_SIZE {
        record(&mut records, "size", size.to_string().as_bytes());
    }
    let mut blocks = Vec::with_capacity(3 * BLOCK);
    if !records.is_empty() {
        // The records are a name and two numbers long, so an octal size always suffices.
        blocks.extend_from_slice(&ustar(b"", b"PaxHeaders/member", records.len() as u64, b'x'));
        blocks.extend_from_slice(&records);
        blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
    }
    // Readers that ignore PAX still get the start of the name.
    let (prefix, name) = fields.unwrap_or((b"", name.get(..NAME_BYTES).unwrap_or(name)));
    blocks.extend_from_slice(&ustar(prefix, name, size, b'0'));
    blocks
}

/// Prefix and name fields, when the name can be said in them.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    if name.len() <= NAME_BYTES {
        return Some((b"", name));
    }
    // The slash between the two fields is implied, and neither may be empty.
    let slash = name
        .iter()
        .take(PREFIX_BYTES + 1)
        .rposition(|&byte| byte == b'/')
        .filter(|&slash| slash > 0)?;
    let (prefix, rest) = name.split_at(slash);
    let rest = rest.get(1..)?;
    (1..=NAME_BYTES).contains(&rest.len()).then_some((prefix, rest))
}

/// Appends the PAX record `LENGTH KEY=VALUE\n`, whose length counts its own digits.
fn record(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let body = key.len() + value.len() + 3;
    let mut length = body + 1;
    while body + length.to_string().len() != length {
        length = body + length.to_string().len();
    }
    records.extend_from_slice(format!("{length} {key}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// One ustar header block. Offsets and widths as in POSIX.1-2001, "ustar Interchange Format".
fn ustar(prefix: &[u8], name: &[u8], size: u64, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    put(&mut block, 0, name);
    put(&mut block, 100, b"0000644\0");
    put(&mut block, 108, b"0000000\0");
    put(&mut block, 116, b"0000000\0");
    if size <= MAX_OCTAL_SIZE {
        put(&mut block, 124, format!("{size:011o}\0").as_bytes());
    } else {
        // Base-256 as GNU tar writes it: readers without PAX must not mistake data for headers.
        put(&mut block, 124, &[0x80, 0, 0, 0]);
        put(&mut block, 128, &size.to_be_bytes());
    }
    put(&mut block, 136, b"00000000000\0");
    // The checksum counts its own field as spaces.
    put(&mut block, 148, b"        ");
    put(&mut block, 156, &[kind]);
    put(&mut block, 257, b"ustar\x0000");
    put(&mut block, 329, b"0000000\0");
    put(&mut block, 337, b"0000000\0");
    put(&mut block, 345, prefix);
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    put(&mut block, 148, format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Copies a field to its place. The fields are constants or cut to size by the callers.
fn put(block: &mut [u8; BLOCK], offset: usize, field: &[u8]) {
    for (to, from) in block.iter_mut().skip(offset).zip(field) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(block: &[u8], at: usize, width: usize) -> &[u8] {
        let field = &block[at..at + width];
        &field[..field.iter().position(|&b| b == 0).unwrap_or(width)]
    }

    #[test]
    fn a_name_that_fits_needs_one_block() {
        for name in [vec![b'n'; 1], vec![b'n'; 100]] {
            let blocks = encode(&name, 7);
            assert_eq!(blocks.len(), 512);
            assert_eq!(text(&blocks, 0, 100), name);
            assert_eq!(text(&blocks, 124, 12), b"00000000007");
        }
    }

    #[test]
    fn a_long_path_is_split_at_a_slash() {
        let name = [&[b'd'; 155][..], b"/", &[b'f'; 100]].concat();
        let blocks = encode(&name, 0);
        assert_eq!(blocks.len(), 512);
        assert_eq!(text(&blocks, 345, 155), &[b'd'; 155]);
        assert_eq!(text(&blocks, 0, 100), &[b'f'; 100]);
    }

    #[test]
    fn what_no_slash_can_split_gets_a_path_record() {
        let no_slash = vec![b'n'; 101];
        let long_folder = [&[b'd'; 156][..], b"/f"].concat();
        let long_file = [b"d/", &[b'f'; 101][..]].concat();
        let only_leading = [b"/", &[b'f'; 100][..]].concat();
        for name in [no_slash, long_folder, long_file, only_leading] {
            let blocks = encode(&name, 3);
            assert_eq!(blocks.len(), 1536, "{}", name.escape_ascii());
            assert_eq!(blocks[156], b'x');
            let record = [b"path=", &name[..], b"\n"].concat();
            assert!(blocks[512..1024].windows(record.len()).any(|w| w == record));
            assert_eq!(blocks[1024 + 156], b'0');
        }
    }

    #[test]
    fn a_record_counts_its_own_digits() {
        // 9 | 10, 99 | 100 and 999 | 1000 bytes are where the number of digits changes.
        for value in (0..12).chain(80..100).chain(980..1000) {
            let mut records = Vec::new();
            record(&mut records, "k", &vec![b'v'; value]);
            let stated: usize = std::str::from_utf8(records.split(|&b| b == b' ').next().unwrap())
                .unwrap()
                .parse()
                .unwrap();
            assert_eq!(stated, records.len());
        }
    }

    #[test]
    fn names_beyond_utf8_say_so() {
        let mut name = vec![b'n'; 120];
        name[5] = 0xff;
        let blocks = encode(&name, 3);
        assert!(blocks[512..].starts_with(b"21 hdrcharset=BINARY\n"));
        assert_eq!(encode("größe.jpg".as_bytes(), 3).len(), 1536);
        assert_eq!(encode(b"gr\xf6\xdfe.jpg", 3).len(), 512);
    }

    #[test]
    fn eight_gibibytes_is_where_octal_ends() {
        let largest = encode(b"n", MAX_OCTAL_SIZE);
        assert_eq!((largest.len(), text(&largest, 124, 12)), (512, &b"77777777777"[..]));
        let blocks = encode(b"n", MAX_OCTAL_SIZE + 1);
        assert!(blocks[512..].starts_with(b"19 size=8589934592\n"));
        assert_eq!(blocks[1024 + 124..1024 + 136], [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    }
}
