//! Whose key and which bytes decrypt a region.

use tbf_format::{Compression, FormatError, Key, Region, Segment, UnpackOptions};

use crate::data::{crc32c, put, seal};
use crate::model::KEY;
use crate::packing::{WITH_KEY, number, segment};

#[test]
fn another_key_or_header_decrypts_nothing() {
    let file = segment(Compression::None, true);
    let open = |file: &[u8], key: Option<&Key>| {
        let mut segment = Segment::open(file)?;
        segment.unpack(Region::Nodes, &UnpackOptions { key, ..UnpackOptions::default() })
    };
    let region = Region::Nodes;
    assert_eq!(open(&file, None), Err(FormatError::KeyNeeded { region }));
    let other = Key::new([0x43; 32]);
    assert_eq!(open(&file, Some(&other)), Err(FormatError::Decryption { region }));
    assert_eq!(open(&file, Some(&KEY)), Ok(()));
    for at in [8, 16, 46] {
        let mut changed = file.clone();
        changed[at] ^= 4;
        seal(&mut changed);
        assert_eq!(open(&changed, Some(&KEY)), Err(FormatError::Decryption { region }), "{at}");
    }
    assert_eq!(format!("{KEY:?}"), "Key(..)");
}

/// A region must not pass for another one, though both were encrypted with the same key.
#[test]
fn a_nonce_belongs_to_its_region() {
    let mut file = segment(Compression::None, true);
    let footer = number(&file, 96, 8);
    file[footer + 64 + 47] = 1;
    put(&mut file, footer + 12, &[0; 4]);
    let checksum = crc32c(&file[footer..]);
    put(&mut file, footer + 12, &checksum.to_le_bytes());
    let mut segment = Segment::open(&file).unwrap();
    let failed = FormatError::Decryption { region: Region::Nodes };
    assert_eq!(segment.unpack(Region::Nodes, &WITH_KEY), Err(failed));
}
