//! The samples of a track by the tables of `stbl`: sizes, chunks, times and sync samples.

use super::boxes::BoxRef;
use crate::error::VideoError;
use crate::packets::{Found, Packets};
use crate::read::Reader;

/// A sample in the time of its media.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// The time of decoding.
    pub(super) dts: i64,
    /// The ticks from decoding to display.
    pub(super) shift: i32,
    pub(super) duration: u32,
    pub(super) is_key: bool,
}

impl Sample {
    pub(super) fn pts(&self) -> i64 {
        self.dts.saturating_add(self.shift.into())
    }

    /// The packet of a sample that no edit list moves.
    pub(super) fn unedited(&self) -> Found {
        self.shown_at(self.pts(), 0, true)
    }

    pub(super) fn shown_at(&self, pts: i64, edit: u32, is_shown: bool) -> Found {
        Found {
            offset: self.offset,
            bytes: self.bytes,
            pts,
            duration: self.duration.into(),
            edit,
            is_key: self.is_key,
            is_shown,
        }
    }
}

/// The samples that `stbl` describes, in the order in which they are decoded; none in the tables of
/// a fragmented file.
pub(super) fn samples(tables: &BoxRef<'_>, reader: &Reader<'_>) -> Result<Vec<Sample>, VideoError> {
    let sizes = Sizes::read(tables)?;
    let count = sizes.count;
    Packets::new(&reader.limits).charge(count)?;
    if count == 0 {
        return Ok(Vec::new());
    }
    if let Some(bytes) = sizes.each {
        // Nothing but the file's length bounds samples of one size.
        sizes.table.check_bytes(u64::from(bytes).saturating_mul(count), reader.len)?;
    }
    let mut times = Runs::read(&tables.require(b"stts", "`stts`")?)?;
    let mut shifts = match tables.child(b"ctts")? {
        Some(shifts) => Some(Runs::read(&shifts)?),
        None => None,
    };
    let mut keys = Keys::read(tables)?;
    let mut samples = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    let mut dts = 0_i64;
    for_each_place(tables, &sizes, |number, offset, bytes| {
        let Some(duration) = times.next() else { return Err(times.table.short(number, count)) };
        let shift = shifts.as_mut().and_then(Runs::next).unwrap_or(0).cast_signed();
        let is_key = keys.next(number);
        samples.push(Sample { offset, bytes, dts, shift, duration, is_key });
        dts = dts.saturating_add(duration.into());
        Ok(())
    })?;
    Ok(samples)
}

/// Calls `push` with the number, the offset and the size of each sample.
fn for_each_place(
    tables: &BoxRef<'_>,
    sizes: &Sizes<'_>,
    mut push: impl FnMut(u64, u64, u64) -> Result<(), VideoError>,
) -> Result<(), VideoError> {
    let runs = tables.require(b"stsc", "`stsc`")?;
    let mut run_entries = runs.entries(4, 12)?.as_chunks::<12>().0.iter().peekable();
    let (offsets, size) = match tables.child(b"co64")? {
        Some(offsets) => (offsets, 8),
        None => (tables.require(b"stco", "`stco` or `co64`")?, 4),
    };
    let mut number = 0;
    let mut in_chunk = 0;
    for (chunk, bytes) in (1_u32..).zip(offsets.entries(4, size)?.chunks_exact(size)) {
        while let Some(entry) = run_entries.next_if(|entry| first_u32(*entry) <= chunk) {
            in_chunk = first_u32(entry.get(4..).unwrap_or_default());
        }
        let mut offset = bytes.iter().fold(0_u64, |value, byte| (value << 8) | u64::from(*byte));
        for _ in 0..in_chunk {
            let Some(bytes) = sizes.get(number) else { return Ok(()) };
            push(number, offset, bytes)?;
            offset = offset.saturating_add(bytes);
            number += 1;
        }
    }
    if number < sizes.count { Err(offsets.short(number, sizes.count)) } else { Ok(()) }
}

fn first_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.first_chunk().copied().unwrap_or_default())
}

/// The sizes of `stsz` or `stz2`.
struct Sizes<'a> {
    table: BoxRef<'a>,
    count: u64,
    /// The size of every sample, if they have one size.
    each: Option<u32>,
    entries: &'a [u8],
    /// Bits of an entry.
    bits: u8,
}

impl<'a> Sizes<'a> {
    fn read(tables: &BoxRef<'a>) -> Result<Self, VideoError> {
        if let Some(table) = tables.child(b"stz2")? {
            let bits = table.array::<1>(7)?[0];
            if !matches!(bits, 4 | 8 | 16) {
                return Err(table.value("field size", bits.into(), "4, 8 or 16"));
            }
            let count = u64::from(table.u32(8)?);
            let need = (count * u64::from(bits)).div_ceil(8);
            let entries =
                usize::try_from(need).ok().and_then(|need| table.body.get(12..)?.get(..need));
            let entries = entries.ok_or_else(|| table.truncated(12 + need))?;
            return Ok(Self { table, count, each: None, entries, bits });
        }
        let table = tables.require(b"stsz", "`stsz` or `stz2`")?;
        let each = table.u32(4)?;
        let count = table.u32(8)?.into();
        if each > 0 {
            return Ok(Self { table, count, each: Some(each), entries: &[], bits: 0 });
        }
        Ok(Self { table, count, each: None, entries: table.entries(8, 4)?, bits: 32 })
    }

    fn get(&self, number: u64) -> Option<u64> {
        if number >= self.count {
            return None;
        }
        if let Some(each) = self.each {
            return Some(each.into());
        }
        let at = usize::try_from(number).ok()?;
        match self.bits {
            4 => {
                let byte = *self.entries.get(at / 2)?;
                Some(u64::from(if at % 2 == 0 { byte >> 4 } else { byte & 15 }))
            }
            8 => self.entries.get(at).map(|byte| u64::from(*byte)),
            16 => Some(u16::from_be_bytes(*self.entries.get(at * 2..)?.first_chunk()?).into()),
            _ => Some(u32::from_be_bytes(*self.entries.get(at * 4..)?.first_chunk()?).into()),
        }
    }
}

impl BoxRef<'_> {
    /// Fails when samples of one size cannot all be in the file.
    fn check_bytes(&self, need: u64, have: u64) -> Result<(), VideoError> {
        let expected = "at most the bytes of the file";
        if need > have { Err(self.value("bytes of all samples", need, expected)) } else { Ok(()) }
    }
}

/// Runs of equal values: `stts` and `ctts`.
struct Runs<'a> {
    table: BoxRef<'a>,
    entries: std::slice::Iter<'a, [u8; 8]>,
    left: u32,
    value: u32,
}

impl<'a> Runs<'a> {
    fn read(table: &BoxRef<'a>) -> Result<Self, VideoError> {
        let entries = table.entries(4, 8)?.as_chunks().0.iter();
        Ok(Self { table: *table, entries, left: 0, value: 0 })
    }

    fn next(&mut self) -> Option<u32> {
        while self.left == 0 {
            let entry = self.entries.next()?;
            self.left = first_u32(entry);
            self.value = first_u32(entry.get(4..)?);
        }
        self.left -= 1;
        Some(self.value)
    }
}

/// The samples at which decoding can start: `stss`, and `stps` of MOV. All of them if there is
/// neither.
struct Keys<'a> {
    sync: Option<&'a [[u8; 4]]>,
    partial: Option<&'a [[u8; 4]]>,
}

impl<'a> Keys<'a> {
    fn read(tables: &BoxRef<'a>) -> Result<Self, VideoError> {
        let numbers = |kind| match tables.child(kind)? {
            Some(table) => Ok::<_, VideoError>(Some(table.entries(4, 4)?.as_chunks().0)),
            None => Ok(None),
        };
        Ok(Self { sync: numbers(b"stss")?, partial: numbers(b"stps")? })
    }

    /// Whether sample `number` is one. Numbers ascend.
    fn next(&mut self, number: u64) -> bool {
        if self.sync.is_none() && self.partial.is_none() {
            return true;
        }
        let is_in = |list: &mut Option<&'a [[u8; 4]]>| {
            let Some(numbers) = list else { return false };
            // Samples are counted from one.
            while let Some((first, rest)) = numbers.split_first() {
                let listed = u64::from(u32::from_be_bytes(*first));
                if listed > number + 1 {
                    return false;
                }
                *numbers = rest;
                if listed == number + 1 {
                    return true;
                }
            }
            false
        };
        let is_sync = is_in(&mut self.sync);
        is_in(&mut self.partial) || is_sync
    }
}
