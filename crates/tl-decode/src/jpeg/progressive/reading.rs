//! The position in the entropy-coded data of one scan, kept while other scans are decoded.

use crate::jpeg::bits::BitReader;
use crate::jpeg::entropy_data::{EntropyData, STRAY_BYTES, SegmentEnd};
use crate::jpeg::marker::{FIRST_FRAME_MARKER, RST0, RST7};
use crate::jpeg::scan::words::{ENDS_EARLY, INSIDE, MISSING, OUT_OF_TURN, UNUSED};
use crate::jpeg::scan::{Damage, Scan};

/// The reason why a segment is abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It has no more bits.
    Short,
    /// Its content is impossible.
    Content(&'static str),
}

/// A scan's data, one restart segment at a time.
#[derive(Debug, Default)]
pub(super) struct Reading {
    data: EntropyData,
    /// The end of the segment; `None` before the first one.
    end: Option<SegmentEnd>,
    scan_at: usize,
    interval: u32,
    /// Restart markers that should have been passed.
    restarts: u8,
    /// MCUs up to the next restart marker.
    left: u32,
    /// No more of this segment can be read.
    broken: bool,
    /// The next bit of the segment.
    position: usize,
    /// Blocks that follow without symbols.
    run: u32,
}

/// A part of a segment that is read in one go.
#[derive(Debug)]
pub(super) struct Stretch<'a> {
    pub(super) bits: BitReader<'a>,
    pub(super) run: u32,
}

impl Reading {
    /// Goes to the start of `scan`.
    pub(super) fn restart(&mut self, scan: &Scan) {
        self.end = None;
        self.scan_at = scan.data_at;
        self.interval = scan.restart_interval;
        (self.restarts, self.left, self.broken) = (0, 0, false);
        (self.position, self.run) = (0, 0);
    }

    /// Bytes that are kept for data to come.
    pub(super) fn kept_bytes(&self) -> usize {
        self.data.kept_bytes()
    }

    /// Gives back what is kept.
    pub(super) fn free(&mut self) {
        self.data = EntropyData::default();
    }

    /// Counts off up to `wanted` MCUs, at least one, that no restart marker parts, in `file`.
    /// `restarted` states that they are the first ones after such a marker.
    pub(super) fn advance(&mut self, file: &[u8], wanted: usize) -> Advance {
        let mut restarted = false;
        let mut damage = None;
        if self.left == 0 {
            restarted = true;
            damage = self.check_segment_end(file);
            let loaded = self.next_segment(file);
            damage = damage.or(loaded);
        }
        let count = u32::try_from(wanted).map_or(self.left, |wanted| wanted.min(self.left));
        self.left -= count;
        let count = count as usize;
        Advance { count, restarted, damage }
    }

    /// The stretch to continue with, unless nothing more of the segment can be read.
    pub(super) fn resume(&self) -> Option<Stretch<'_>> {
        let run = self.run;
        (!self.broken).then(|| Stretch { bits: BitReader::at(&self.data, self.position), run })
    }

    /// Notes how far a stretch was read.
    pub(super) fn pause(&mut self, position: usize, run: u32) {
        (self.position, self.run) = (position, run);
    }

    /// Gives the segment up at `position`.
    pub(super) fn give_up(&mut self, file: &[u8], fault: Fault, position: usize) -> Damage {
        self.broken = true;
        match fault {
            Fault::Short => Damage::at(ENDS_EARLY, self.end.map_or(self.scan_at, |end| end.at)),
            Fault::Content(what) => Damage::at(what, self.data.file_offset(file, position / 8)),
        }
    }

    /// Checks that reading stopped at the end of the segment. A run of blocks may continue, as in
    /// libjpeg.
    fn check_segment_end(&self, file: &[u8]) -> Option<Damage> {
        if self.broken || self.end.is_none() {
            return None;
        }
        let next = self.position.div_ceil(8);
        let is_damage = next + STRAY_BYTES < self.data.len();
        is_damage.then(|| Damage::at(UNUSED, self.data.file_offset(file, next)))
    }

    /// Checks that reading stopped at the end of the scan: restart markers may follow, but no data.
    pub(super) fn check_end(&mut self, file: &[u8]) -> Option<Damage> {
        let mut damage = self.check_segment_end(file);
        while let Some(end @ SegmentEnd { marker: Some(RST0..=RST7), .. }) = self.end
            && !self.broken
            && damage.is_none()
        {
            self.end = Some(self.data.load(file, end.after));
            damage = (self.data.len() > 0).then(|| Damage::at(UNUSED, end.after));
        }
        damage
    }

    /// Goes to the segment that comes next. Returns what is wrong with the marker in front of it.
    ///
    /// As in sequential scans, a marker one or two ahead of its turn follows lost segments, one
    /// that is one or two late is a leftover, and any other is taken for the right one.
    fn next_segment(&mut self, file: &[u8]) -> Option<Damage> {
        self.left = if self.interval == 0 { u32::MAX } else { self.interval };
        (self.position, self.run, self.broken) = (0, 0, false);
        let Some(mut end) = self.end else {
            self.end = Some(self.data.load(file, self.scan_at));
            return None;
        };
        let turn = self.restarts & 7;
        self.restarts = self.restarts.wrapping_add(1);
        let mut damage = None;
        loop {
            let ahead = match end.marker {
                Some(marker @ RST0..=RST7) => Some((marker - RST0).wrapping_sub(turn) & 7),
                Some(marker) if marker < FIRST_FRAME_MARKER => None,
                _ => {
                    self.broken = true;
                    return damage.or(Some(Damage::at(MISSING, end.at)));
                }
            };
            if ahead != Some(0) {
                let what = if ahead.is_some() { OUT_OF_TURN } else { INSIDE };
                damage = damage.or(Some(Damage::at(what, end.at)));
            }
            if matches!(ahead, Some(1 | 2)) {
                // The segment after it is taken when its turn comes.
                (self.broken, self.end) = (true, Some(end));
                return damage;
            }
            end = self.data.load(file, end.after);
            self.end = Some(end);
            if !matches!(ahead, None | Some(6 | 7)) {
                return damage;
            }
        }
    }
}

/// Some MCUs of a segment.
#[derive(Debug)]
pub(super) struct Advance {
    /// How many.
    pub(super) count: usize,
    /// They are the first ones after a restart marker, or of the scan.
    pub(super) restarted: bool,
    /// The damage found so far.
    pub(super) damage: Option<Damage>,
}
