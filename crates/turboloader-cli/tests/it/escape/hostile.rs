//! Hostile names, and TBL files that hold one.

use tbl_format::SampleFormat;
use tbl_format::checksum::{crc32c, payload_crc16};
use tbl_format::extension::{ExtensionHeader, ExtensionKind, Integrity, NameTableBuilder};
use tbl_format::metadata::{BlockHeader, MetadataType};
use tbl_format::v2::{EntryFlags, FileFlags, FileHeader, IndexEntry, Payload, index_end};

/// Parts of names: what leads up, what looks like it and does not, and links in the target.
const COMPONENTS: [&str; 30] = [
    "..",
    "..",
    "..",
    ".",
    "",
    "a",
    "b.jpg",
    "...",
    "..\\..",
    "\\",
    "C:\\x",
    "\u{2024}\u{2024}",
    "\u{ff0e}\u{ff0e}",
    "\u{2215}etc",
    "\u{ff0f}",
    "\u{202e}gpj",
    "link",
    "file.jpg",
    "home",
    ".bashrc",
    "..\0",
    "\0",
    ".. ",
    " ..",
    "~",
    "-f",
    "\n",
    "..%2f",
    "victim.jpg",
    "x.tar",
];

/// A seeded sequence of names.
pub(super) struct Generator {
    state: u64,
    /// An absolute path that exists.
    root: Vec<u8>,
}

impl Generator {
    pub(super) fn new(root: &[u8]) -> Self {
        Self { state: 42, root: root.to_vec() }
    }

    /// The next number below `bound`, by `SplitMix64`.
    fn below(&mut self, bound: u16) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let found = (z ^ (z >> 31)) % u64::from(bound);
        usize::try_from(found).expect("below the bound")
    }

    pub(super) fn name(&mut self) -> Vec<u8> {
        let mut name = match self.below(16) {
            0 => [&self.root[..], b"/"].concat(),
            1 => b"/".to_vec(),
            2 => b"../".repeat(1 + self.below(40)),
            3 => b"d/".repeat(self.below(2500)),
            4 => vec![b'n'; self.below(600)],
            5 => vec![0xff, 0xfe],
            _ => Vec::new(),
        };
        let count = 1 + self.below(4);
        for position in 0..count {
            let component = COMPONENTS[self.below(COMPONENTS.len().try_into().expect("few"))];
            name.extend_from_slice(if position > 0 { b"/" } else { b"" });
            name.extend_from_slice(component.as_bytes());
        }
        let ending: &[u8] = match self.below(4) {
            0 => b".jpg",
            1 => b"/e.jpg",
            2 => b".seg.png",
            _ => b"",
        };
        name.extend_from_slice(ending);
        name
    }
}

/// The text that stands for `name` in JSON.
pub(super) fn text(name: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(name).into_owned().into_bytes()
}

/// A sound file of one sample, whose name stands in a table or in JSON, with at most one field.
/// Writers refuse to make such files.
pub(super) fn tbl(key: Option<&[u8]>, json: Option<&[u8]>, field: Option<&[u8]>) -> Vec<u8> {
    let raw = b"\xff\xd8\xff\xd9";
    let payload_start = index_end(1).expect("it fits");
    let size = u32::try_from(raw.len()).expect("short");
    let payload = Payload {
        offset: payload_start,
        stored_bytes: size,
        bytes: size,
        checksum: payload_crc16(raw),
    };
    let entry =
        IndexEntry::new(payload, (0, 0), SampleFormat::Jpeg, EntryFlags::NONE).to_bytes().to_vec();
    let mut blocks = Vec::new();
    if let Some(key) = key {
        let mut names = NameTableBuilder::new();
        names.push(key).expect("short");
        let body = names.sample_names_body(0).expect("short");
        blocks.extend(extension(BlockHeader::WHOLE_FILE, ExtensionKind::SampleNames, &body));
    }
    if let Some(json) = json {
        let text = String::from_utf8_lossy(json);
        let data = serde_json::json!({ "key": text, "label": 1 }).to_string();
        blocks.extend(block(0, MetadataType::Json, data.as_bytes()));
    }
    if let Some(field) = field {
        let length = u16::try_from(field.len()).expect("short");
        let body = [&length.to_le_bytes()[..], field, b"written outside\n"].concat();
        blocks.extend(extension(0, ExtensionKind::Field, &body));
    }
    let integrity = Integrity {
        index: crc32c(&entry),
        metadata: crc32c(&blocks),
        metadata_bytes: blocks.len() as u64,
    };
    let kind = ExtensionKind::Integrity;
    let section =
        [extension(BlockHeader::WHOLE_FILE, kind, &integrity.to_bytes()), blocks].concat();
    let start = payload_start + raw.len() as u64;
    let metadata = start..start + section.len() as u64;
    let header = FileHeader::new(1, metadata, FileFlags::HAS_CHECKSUMS).expect("it fits");
    [&header.to_bytes()[..], &entry, raw, &section].concat()
}

fn extension(sample: u64, kind: ExtensionKind, body: &[u8]) -> Vec<u8> {
    let data = [&ExtensionHeader::new(kind, body).to_bytes()[..], body].concat();
    block(sample, MetadataType::Custom, &data)
}

fn block(sample: u64, kind: MetadataType, data: &[u8]) -> Vec<u8> {
    let header = BlockHeader::new(sample, kind, data.len() as u64).expect("it fits");
    [&header.to_bytes()[..], data].concat()
}
