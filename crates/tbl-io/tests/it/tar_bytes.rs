//! Archives built byte by byte.

/// An archive in the making.
#[derive(Clone, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
}

/// A header with the fields that matter, before its checksum is known.
#[derive(Clone)]
pub(crate) struct Header {
    pub(crate) block: [u8; 512],
}

impl Header {
    /// A ustar header of a regular file.
    pub(crate) fn new(name: &[u8], size: u64) -> Self {
        let mut header = Self { block: [0; 512] };
        header.set(0, name);
        for (at, text) in
            [(100, "0000644\0"), (108, "0000000\0"), (116, "0000000\0"), (136, "00000000000\0")]
        {
            header.set(at, text.as_bytes());
        }
        header.set(124, format!("{size:011o}\0").as_bytes());
        header.set(156, b"0");
        header.set(257, b"ustar\x0000");
        header
    }

    pub(crate) fn set(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.block[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(crate) fn typed(mut self, flag: u8) -> Self {
        self.block[156] = flag;
        self
    }

    /// With the magic and version that GNU tar writes.
    pub(crate) fn gnu(mut self) -> Self {
        self.set(257, b"ustar  \0");
        self
    }

    /// The block with its checksum.
    pub(crate) fn block(&self) -> [u8; 512] {
        let mut block = self.block;
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block
    }
}

impl Archive {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Appends a header and a body with its padding.
    pub(crate) fn entry(mut self, header: &Header, body: &[u8]) -> Self {
        self.bytes.extend_from_slice(&header.block());
        self.raw(body)
    }

    /// Appends bytes and pads them.
    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    /// A regular file.
    pub(crate) fn member(self, name: &[u8], body: &[u8]) -> Self {
        self.entry(&Header::new(name, body.len() as u64), body)
    }

    /// A PAX header of type `flag` with the given records.
    pub(crate) fn pax(self, flag: u8, records: &[(&str, &str)]) -> Self {
        let mut body = Vec::new();
        for (keyword, value) in records {
            body.extend_from_slice(pax_record(keyword, value).as_bytes());
        }
        self.entry(&Header::new(b"pax", body.len() as u64).typed(flag), &body)
    }

    /// The bytes so far, without an end marker.
    pub(crate) fn unfinished(self) -> Vec<u8> {
        self.bytes
    }

    /// The bytes with two zero blocks at the end.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 1024, 0);
        self.bytes
    }
}

/// `LENGTH KEYWORD=VALUE` and a line feed, where the length counts itself.
fn pax_record(keyword: &str, value: &str) -> String {
    let rest = keyword.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length += 1;
    }
    format!("{length} {keyword}={value}\n")
}
