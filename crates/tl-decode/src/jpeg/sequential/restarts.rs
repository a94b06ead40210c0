//! From one restart segment to the next: the markers between them, by number and by place.

use super::Request;
use crate::jpeg::entropy_data::{EntropyData, SegmentEnd};
use crate::jpeg::marker::{FIRST_FRAME_MARKER, RST0, RST7};
use crate::jpeg::scan::{Damage, OnDamaged, words};

/// Restart markers are numbered from 0 to 7, over and over.
const RESTART_NUMBERS: u64 = 8;

/// Goes from one restart segment to the next.
pub(super) struct Segments<'a> {
    request: &'a Request<'a>,
    /// MCUs of the scan.
    pub(super) all_mcus: u64,
    /// MCUs of a segment.
    pub(super) interval: u64,
    /// The segment that is being decoded.
    pub(super) number: u64,
    /// The first damage.
    pub(super) damage: Option<Damage>,
}

impl<'a> Segments<'a> {
    pub(super) fn new(request: &'a Request<'a>) -> Self {
        let scan = request.scan;
        let all_mcus = u64::from(scan.mcus_per_row) * u64::from(scan.mcu_rows);
        let interval = match scan.restart_interval {
            0 => all_mcus,
            interval => interval.into(),
        };
        Self { request, all_mcus, interval, number: 0, damage: None }
    }

    /// MCUs in front of the segment.
    pub(super) fn first_mcu(&self) -> u64 {
        (self.number * self.interval).min(self.all_mcus)
    }

    /// MCUs up to the segment's end.
    pub(super) fn last_mcu(&self) -> u64 {
        ((self.number + 1) * self.interval).min(self.all_mcus)
    }

    /// MCUs in front of a row.
    pub(super) fn mcus_before(&self, row: u32) -> u64 {
        u64::from(row) * u64::from(self.request.scan.mcus_per_row)
    }

    /// Keeps the first damage, or makes it the error.
    pub(super) fn note(&mut self, damage: Damage) -> Result<(), Damage> {
        match self.request.on_damaged {
            OnDamaged::Error => return Err(damage),
            OnDamaged::Keep => self.damage.get_or_insert(damage),
        };
        Ok(())
    }

    /// Loads the next segment, given the `end` of the last; `false` after the last segment.
    ///
    /// A marker that is one or two ahead of its turn follows lost segments, one that is one or two
    /// late is a leftover, and any other is taken for the right one, as libjpeg does.
    pub(super) fn find_next(
        &mut self,
        data: &mut EntropyData,
        end: &mut SegmentEnd,
    ) -> Result<bool, Damage> {
        loop {
            let found = match end.marker {
                Some(marker @ RST0..=RST7) => u64::from(marker - RST0),
                Some(marker) if marker < FIRST_FRAME_MARKER => {
                    self.note(Damage::at(words::INSIDE, end.at))?;
                    *end = data.load(self.request.file, end.after);
                    continue;
                }
                _ => {
                    self.note(Damage::at(words::MISSING, end.at))?;
                    return Ok(false);
                }
            };
            let ahead = (found + RESTART_NUMBERS - self.number % RESTART_NUMBERS) % RESTART_NUMBERS;
            if ahead != 0 {
                self.note(Damage::at(words::OUT_OF_TURN, end.at))?;
            }
            *end = data.load(self.request.file, end.after);
            match ahead {
                6 | 7 => {}
                lost => {
                    self.number += 1 + if lost <= 2 { lost } else { 0 };
                    return Ok(self.first_mcu() < self.all_mcus);
                }
            }
        }
    }
}
