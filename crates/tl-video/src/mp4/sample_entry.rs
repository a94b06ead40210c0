//! Sample entries of `stsd`: codec, size, configuration, aspect ratio and colours.

use super::boxes::BoxRef;
use crate::error::VideoError;
use crate::info::{Color, Ratio};

/// The bytes of a visual sample entry before its boxes.
const VISUAL: usize = 78;

/// The description of all samples of a track.
#[derive(Debug)]
pub(super) struct SampleEntry {
    pub(super) kind: [u8; 4],
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) configuration: Vec<u8>,
    pub(super) sample_aspect_ratio: Option<Ratio>,
    pub(super) color: Color,
}

impl SampleEntry {
    /// Reads the entries of `stsd`, which must all be the same.
    pub(super) fn read(table: &BoxRef<'_>) -> Result<Self, VideoError> {
        let mut entries = table.children(8);
        let Some(entry) = entries.next().transpose()? else {
            return Err(table.value("number of entries", 0, "at least one"));
        };
        for other in entries {
            let other = other?;
            if other.kind != entry.kind || other.body != entry.body {
                return Err(other.unsupported("several sample descriptions"));
            }
        }
        if entry.kind == *b"encv" {
            return Err(entry.unsupported("encrypted video"));
        }
        let mut read = Self {
            kind: entry.kind,
            width: entry.u16(24)?.into(),
            height: entry.u16(26)?.into(),
            configuration: Vec::new(),
            sample_aspect_ratio: None,
            color: Color::default(),
        };
        entry.array::<VISUAL>(0)?;
        for part in entry.children(VISUAL) {
            // Boxes of old MOV files can end in bytes that are none.
            let Ok(part) = part else { break };
            match &part.kind {
                b"avcC" | b"hvcC" | b"av1C" => read.configuration = part.body.to_vec(),
                b"vpcC" => {
                    read.configuration = part.body.to_vec();
                    // After version, flags, profile and level.
                    let range = part.array::<1>(6)?[0] & 1 == 1;
                    let matrix = part.array::<1>(9)?[0];
                    read.color =
                        Color { matrix: Color::specified(matrix.into()), full_range: Some(range) };
                }
                b"pasp" => {
                    let across = part.u32(0)?.into();
                    read.sample_aspect_ratio = Ratio::reduced(across, part.u32(4)?.into());
                }
                b"colr" => {
                    let kind = part.array::<4>(0)?;
                    if kind == *b"nclx" || kind == *b"nclc" {
                        read.color.matrix = Color::specified(part.u16(8)?.into());
                    }
                    if kind == *b"nclx" {
                        read.color.full_range = Some(part.array::<1>(10)?[0] & 0x80 != 0);
                    }
                }
                _ => {}
            }
        }
        Ok(read)
    }
}
