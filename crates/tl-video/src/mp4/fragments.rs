//! Movie fragments: the runs of samples in `moof` boxes.

use super::boxes::BoxRef;
use super::tables::Sample;
use crate::error::VideoError;
use crate::packets::{Found, Packets};
use crate::read::Reader;

/// Flags of `tfhd`.
const BASE_DATA_OFFSET: u32 = 0x1;
const SAMPLE_DESCRIPTION: u32 = 0x2;
const BASE_IS_MOOF: u32 = 0x2_0000;

/// Flags of `trun`.
const DATA_OFFSET: u32 = 0x1;
const FIRST_SAMPLE_FLAGS: u32 = 0x4;

/// Flags of `trun`, and of `tfhd` without `SHIFT`.
const DURATION: u32 = 0x100;
const SIZE: u32 = 0x200;
const FLAGS: u32 = 0x400;
const SHIFT: u32 = 0x800;

/// Flags of `tfhd` that precede the size and the flags there.
const DEFAULT_DURATION: u32 = 0x8;
const DEFAULT_SIZE: u32 = 0x10;
const DEFAULT_FLAGS: u32 = 0x20;

/// Flags of a sample: it is not a sync sample, or depends on others.
const NOT_KEY: u32 = 0x1_0000 | 0x100_0000;

/// The values of samples that do not have their own.
#[derive(Clone, Copy, Debug, Default)]
struct Defaults {
    track: u32,
    duration: u32,
    size: u32,
    flags: u32,
}

/// The fragments of a file, while they are walked.
#[derive(Debug)]
pub(super) struct Fragments {
    track: u32,
    defaults: Vec<Defaults>,
    /// The time at which the next fragment is decoded, unless it says so itself.
    next_dts: i64,
    time_offset: i64,
    /// Samples of all tracks so far.
    visited: u64,
}

/// The place in a fragment that a run continues at.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The base of offsets.
    base: u64,
    /// The end of the run before.
    data: u64,
}

impl Fragments {
    pub(super) fn new(
        extends: &BoxRef<'_>,
        track: u32,
        samples: &[Sample],
        time_offset: i64,
    ) -> Result<Self, VideoError> {
        let mut defaults = Vec::new();
        for child in extends.children(0) {
            let child = child?;
            if child.kind == *b"trex" {
                defaults.push(Defaults {
                    track: child.u32(4)?,
                    duration: child.u32(12)?,
                    size: child.u32(16)?,
                    flags: child.u32(20)?,
                });
            }
        }
        let end = |sample: &Sample| sample.dts.saturating_add(sample.duration.into());
        let next_dts = samples.last().map_or(0, end);
        Ok(Self { track, defaults, next_dts, time_offset, visited: 0 })
    }

    /// Adds the packets of a fragment.
    pub(super) fn read(
        &mut self,
        moof: &BoxRef<'_>,
        reader: &Reader<'_>,
        packets: &mut Packets,
    ) -> Result<(), VideoError> {
        // Where no base is given, data follows that of the track before.
        let mut implicit = moof.at;
        for part in moof.children(0) {
            let part = part?;
            if part.kind == *b"traf" {
                implicit = self.read_track(moof, &part, implicit, reader, packets)?;
            }
        }
        Ok(())
    }

    fn read_track(
        &mut self,
        moof: &BoxRef<'_>,
        part: &BoxRef<'_>,
        implicit: u64,
        reader: &Reader<'_>,
        packets: &mut Packets,
    ) -> Result<u64, VideoError> {
        let header = part.require(b"tfhd", "`tfhd`")?;
        let flags = header.flags()?;
        let track = header.u32(4)?;
        let known = self.defaults.iter().find(|defaults| defaults.track == track);
        let mut defaults = known.copied().unwrap_or_default();
        let mut at = 8;
        let mut base = if flags & BASE_IS_MOOF != 0 { moof.at } else { implicit };
        if flags & BASE_DATA_OFFSET != 0 {
            base = header.u64(at)?;
            at += 8;
        }
        if flags & SAMPLE_DESCRIPTION != 0 {
            at += 4;
        }
        for (flag, value) in [
            (DEFAULT_DURATION, &mut defaults.duration),
            (DEFAULT_SIZE, &mut defaults.size),
            (DEFAULT_FLAGS, &mut defaults.flags),
        ] {
            if flags & flag != 0 {
                *value = header.u32(at)?;
                at += 4;
            }
        }
        let is_own = track == self.track;
        if is_own && let Some(time) = part.child(b"tfdt")? {
            let dts = match time.version()? {
                0 => time.u32(4)?.into(),
                _ => time.u64(4)?,
            };
            let expected = "less than 2^63";
            let value = |_| time.value("time of decoding", dts, expected);
            self.next_dts = i64::try_from(dts).map_err(value)?;
        }
        let mut place = Place { base, data: base };
        for run in part.children(0) {
            let run = run?;
            if run.kind == *b"trun" {
                let target = is_own.then_some(&mut *packets);
                place.data = self.read_run(&run, defaults, place, reader, target)?;
            }
        }
        Ok(place.data)
    }

    /// Adds the packets of a run to `packets`, and returns the end of its data.
    fn read_run(
        &mut self,
        run: &BoxRef<'_>,
        defaults: Defaults,
        place: Place,
        reader: &Reader<'_>,
        mut packets: Option<&mut Packets>,
    ) -> Result<u64, VideoError> {
        let flags = run.flags()?;
        let count = run.u32(4)?;
        let mut at = 8;
        let mut data = place.data;
        if flags & DATA_OFFSET != 0 {
            let distance = i64::from(run.u32(at)?.cast_signed());
            let start = place.base.checked_add_signed(distance);
            let found = distance.unsigned_abs();
            data = start.ok_or_else(|| run.value("data offset", found, "an offset in the file"))?;
            at += 4;
        }
        let mut first_flags = defaults.flags;
        if flags & FIRST_SAMPLE_FLAGS != 0 {
            first_flags = run.u32(at)?;
            at += 4;
        }
        let fields = (flags & (DURATION | SIZE | FLAGS | SHIFT)).count_ones();
        let need = at as u64 + u64::from(count) * u64::from(fields) * 4;
        if need > run.body.len() as u64 {
            return Err(run.truncated(need));
        }
        // Nothing else bounds runs whose samples have neither fields nor bytes.
        self.visited += u64::from(count);
        reader.limits.charge_headers(self.visited)?;
        for number in 0..count {
            let mut field = |flag, default| {
                if flags & flag == 0 {
                    return Ok(default);
                }
                at += 4;
                run.u32(at - 4)
            };
            let duration = field(DURATION, defaults.duration)?;
            let bytes = u64::from(field(SIZE, defaults.size)?);
            let own_flags = if number == 0 { first_flags } else { defaults.flags };
            let own_flags = field(FLAGS, own_flags)?;
            let shift = i64::from(field(SHIFT, 0)?.cast_signed());
            if let Some(packets) = packets.as_deref_mut() {
                let dts = self.next_dts.saturating_sub(self.time_offset);
                let found = Found {
                    offset: data,
                    bytes,
                    pts: dts.saturating_add(shift),
                    duration: duration.into(),
                    edit: 0,
                    is_key: own_flags & NOT_KEY == 0,
                    is_shown: true,
                };
                packets.push(reader, found)?;
                self.next_dts = self.next_dts.saturating_add(duration.into());
            }
            data = data.saturating_add(bytes);
        }
        Ok(data)
    }
}
