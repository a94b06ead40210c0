//! From one scan to the next: the segments between them, and the scan header (ITU-T T.81 B.2.3).

use super::frame::{Frame, Process, Prologue};
use super::marker::{self, Segment, Walk};
use super::scan::{MAX_BLOCKS_PER_MCU, MAX_COMPONENTS, Scan, ScanComponent};
use super::tables::Tables;
use crate::error::{DecodeError, Limit};
use crate::limits::{Limits, check};

/// Reads a file up to its scans, with the tables that are in force there.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    walk: Walk<'a>,
    pub(super) prologue: Prologue,
    pub(super) tables: Tables<'a>,
    scans: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            walk: Walk::new(bytes)?,
            prologue: Prologue::default(),
            tables: Tables::initial(),
            scans: 0,
        })
    }

    /// The offset at which the next segment is expected.
    pub(super) fn at(&self) -> usize {
        self.walk.at
    }

    /// Goes on after entropy-coded data that ends at `at`.
    pub(super) fn go_to(&mut self, at: usize) {
        self.walk.at = at;
    }

    /// Goes on after the entropy-coded data that begins here, without decoding it.
    pub(super) fn skip_entropy_coded(&mut self) -> Result<(), DecodeError> {
        self.walk.skip_entropy_coded()
    }

    /// Reads up to the next scan and its header; `None` at the end of the image.
    pub(super) fn next_scan(&mut self, limits: &Limits) -> Result<Option<Scan>, DecodeError> {
        loop {
            let segment = self.walk.next_segment()?;
            match segment.marker {
                marker::SOS => {
                    self.scans += 1;
                    check(Limit::JpegScans, limits.jpeg_scans.into(), self.scans.into())?;
                    let frame = self.prologue.require_frame()?;
                    let mut scan = parse_scan(&frame, &segment)?;
                    scan.restart_interval = self.tables.restart_interval.into();
                    scan.data_at = self.walk.at;
                    return Ok(Some(scan));
                }
                marker::EOI => return Ok(None),
                _ => {
                    self.prologue.read(&segment)?;
                    self.tables.read(&segment)?;
                }
            }
        }
    }
}

fn parse_scan(frame: &Frame, segment: &Segment<'_>) -> Result<Scan, DecodeError> {
    let Some((&count, rest)) = segment.data.split_first() else {
        return Err(marker::truncated("scan header", segment.at, 1, 0));
    };
    let count = usize::from(count);
    if !(1..=MAX_COMPONENTS).contains(&count) {
        return Err(marker::value("component count of a scan", count as u64, segment.at));
    }
    let (specs, tail) = rest.as_chunks::<2>();
    let (&[.., last], &[high_low]) = (specs, tail) else {
        return Err(marker::truncated("scan header", segment.at, 2 * count + 4, 1 + rest.len()));
    };
    if specs.len() != count + 1 {
        return Err(marker::truncated("scan header", segment.at, 2 * count + 4, 1 + rest.len()));
    }
    let mut scan = Scan {
        count,
        spectral: (last[0], last[1]),
        approximation: (high_low >> 4, high_low & 0x0F),
        ..Scan::default()
    };
    let mut from = 0;
    for (to, &[id, tables]) in scan.components.iter_mut().zip(&specs[..count]) {
        // Components come in the order of the frame, which distinguishes those with equal ids.
        let components = frame.components().iter().enumerate().skip(from);
        let Some((index, component)) = components.into_iter().find(|(_, c)| c.id == id) else {
            return Err(marker::value("component of a scan", id.into(), segment.at));
        };
        from = index + 1;
        let dc = tables >> 4;
        let ac = tables & 0x0F;
        let across = component.across.into();
        let down = component.down.into();
        *to = ScanComponent { component: index, across, down, dc, ac };
    }
    measure(frame, &mut scan, segment.at)?;
    Ok(scan)
}

/// Says how many MCUs the scan has.
fn measure(frame: &Frame, scan: &mut Scan, at: usize) -> Result<(), DecodeError> {
    if scan.count == 1 {
        let only = &mut scan.components[0];
        (only.across, only.down) = (1, 1);
        let component = frame.components()[only.component];
        (scan.mcus_per_row, scan.mcu_rows) = frame.blocks(&component);
        return Ok(());
    }
    (scan.mcus_per_row, scan.mcu_rows) = frame.mcus();
    let blocks: u32 = scan.components().iter().map(|part| part.across * part.down).sum();
    if blocks > MAX_BLOCKS_PER_MCU && frame.process != Process::Lossless {
        return Err(marker::value("number of blocks in an MCU", blocks.into(), at));
    }
    Ok(())
}
