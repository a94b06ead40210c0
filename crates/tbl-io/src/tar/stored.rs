//! The part of a TAR archive in a shard index: what the pass over its headers found out.

use tbl_format::FormatError;
use tbl_format::shard_index::{PartReader, push_number, push_signed, push_strings};

use super::TarArchive;
use super::header::BLOCK_BYTES;
use super::index::{Extent, Extents, Index, MAX_NAMED_SKIPS, MAX_SKIPPED_TEXT_BYTES};
use super::member::{MemberCounts, MemberKind, SkippedMember};
use crate::error::ReadError;
use crate::limits::ReadLimits;
use crate::names::Names;
use crate::source::Source;

const WHAT: &str = "index of a TAR archive";

/// The numbers of kinds of members. An unknown kind has its type flag added to the last one.
const KINDS: [MemberKind; 9] = [
    MemberKind::Regular,
    MemberKind::Directory,
    MemberKind::SymbolicLink,
    MemberKind::HardLink,
    MemberKind::Device,
    MemberKind::Fifo,
    MemberKind::Sparse,
    MemberKind::MultiVolume,
    MemberKind::Unknown(0),
];

impl Index {
    /// Appends the index to a part. Numbers of one kind stand together, which LZ4 packs best.
    pub(super) fn push_to(&self, part: &mut Vec<u8>) {
        let mut counts = self.counts;
        for count in counts.of_kinds() {
            push_number(part, *count);
        }
        push_number(part, u64::from(self.has_end_marker));
        for offset in [self.lone_zero_block, self.trailing_garbage] {
            push_number(part, offset.map_or(0, |offset| offset + 1));
        }
        push_number(part, u64::from(self.first_passed_over.is_some()));
        push_strings(part, self.first_passed_over.iter());
        push_number(part, self.skipped.len() as u64);
        for SkippedMember { kind, offset, .. } in &self.skipped {
            push_number(part, number_of(*kind));
            push_number(part, *offset);
        }
        push_strings(part, self.skipped.iter().map(|member| &member.path));
        push_number(part, self.archive_starts.len() as u64);
        for &start in &self.archive_starts {
            push_number(part, start.into());
        }
        // The number of members is that of the regular ones.
        let members = || (0..).take(self.names.len());
        let mut end = 0;
        for member in members() {
            let Extent { offset, size } = self.extents.of(member);
            push_signed(part, (offset / BLOCK_BYTES).wrapping_sub(end).cast_signed());
            end = (offset / BLOCK_BYTES).wrapping_add(size.div_ceil(BLOCK_BYTES));
        }
        members().for_each(|member| push_number(part, self.extents.of(member).size));
        push_strings(part, members().map(|member| self.names.path(member)));
        push_number(part, self.labels.len() as u64);
        let mut last = 0;
        for &(member, _) in &self.labels {
            push_number(part, u64::from(member) - last);
            last = member.into();
        }
        self.labels.iter().for_each(|&(_, label)| push_signed(part, label));
    }

    /// Reads what [`push_to`](Self::push_to) wrote of the archive in `source`.
    ///
    /// # Errors
    /// [`FormatError::Unreadable`], also where a member does not lie in the archive.
    pub(super) fn of_part(part: &[u8], source: &Source) -> Result<Self, FormatError> {
        let mut part = PartReader::new(part, WHAT);
        let mut counts = MemberCounts::default();
        for count in counts.of_kinds() {
            *count = part.number()?;
        }
        let mut index = Self::new();
        index.has_end_marker = part.number()? != 0;
        index.lone_zero_block = part.number()?.checked_sub(1);
        index.trailing_garbage = part.number()?.checked_sub(1);
        let has_passed_over = part.count()?.min(1);
        part.strings(has_passed_over, |path| {
            index.first_passed_over = Some(path.to_vec());
            Ok::<(), FormatError>(())
        })?;
        index.read_skipped(&mut part)?;
        let regular = usize::try_from(counts.regular).map_err(|_| part.unreadable())?;
        for _ in 0..part.count()? {
            let start = u32::try_from(part.number()?).map_err(|_| part.unreadable())?;
            let is_ascending = index.archive_starts.last().is_none_or(|&last| last < start);
            if start as usize > regular || !is_ascending {
                return Err(part.unreadable());
            }
            index.archive_starts.push(start);
        }
        index.counts = counts;
        index.read_members(&mut part, regular, source)?;
        index.read_labels(&mut part)?;
        part.finish()?;
        Ok(index)
    }

    fn read_skipped(&mut self, part: &mut PartReader<'_>) -> Result<(), FormatError> {
        let count = part.count()?;
        if count > MAX_NAMED_SKIPS {
            return Err(part.unreadable());
        }
        let mut skipped = Vec::new();
        for _ in 0..count {
            let kind = kind_of(part.number()?).ok_or_else(|| part.unreadable())?;
            let offset = part.number()?;
            skipped.push(SkippedMember { path: Vec::new(), kind, offset });
        }
        let mut unnamed = skipped.iter_mut();
        let mut text_left = MAX_SKIPPED_TEXT_BYTES;
        let paths = part.clone();
        part.strings(count, |path| {
            let Some(member) = unnamed.next().filter(|_| path.len() <= text_left) else {
                return Err(paths.unreadable());
            };
            text_left -= path.len();
            member.path = path.to_vec();
            Ok(())
        })?;
        self.skipped = skipped;
        Ok(())
    }

    fn read_members(
        &mut self,
        part: &mut PartReader<'_>,
        count: usize,
        source: &Source,
    ) -> Result<(), FormatError> {
        // A position and a size take a byte each, so that a wrong count ends before memory does.
        let mut sizes = part.clone();
        for _ in 0..count {
            sizes.number()?;
        }
        let mut end = 0_u64;
        for _ in 0..count {
            let block = end.wrapping_add_signed(part.signed()?);
            let offset = block.checked_mul(BLOCK_BYTES).ok_or_else(|| part.unreadable())?;
            let size = sizes.number()?;
            source.check_range(offset, size).map_err(|_| part.unreadable())?;
            end = block + size.div_ceil(BLOCK_BYTES);
            self.extents.push(Extent { offset, size });
        }
        *part = sizes;
        // As in the archive itself, names cannot be longer than the file.
        let limit = source.len().min(u64::from(u32::MAX));
        let unreadable = part.unreadable();
        part.strings(count, |path| {
            if self.names.text_bytes() + path.len() as u64 > limit {
                return Err(unreadable.clone());
            }
            self.names.push(path).map_err(|_| unreadable.clone())
        })
    }

    fn read_labels(&mut self, part: &mut PartReader<'_>) -> Result<(), FormatError> {
        let count = part.count()?;
        let mut labels = part.clone();
        for _ in 0..count {
            labels.number()?;
        }
        let mut member = 0_u64;
        for number in 0..count {
            let step = part.number()?;
            member = member.saturating_add(step);
            if (number > 0 && step == 0) || member >= self.names.len() as u64 {
                return Err(part.unreadable());
            }
            let member = u32::try_from(member).map_err(|_| part.unreadable())?;
            self.labels.push((member, labels.signed()?));
        }
        *part = labels;
        Ok(())
    }

    /// No member.
    pub(super) fn new() -> Self {
        Self {
            names: Names::new(),
            extents: Extents::default(),
            labels: Vec::new(),
            counts: MemberCounts::default(),
            skipped: Vec::new(),
            first_passed_over: None,
            archive_starts: Vec::new(),
            has_end_marker: false,
            lone_zero_block: None,
            trailing_garbage: None,
        }
    }
}

fn number_of(kind: MemberKind) -> u64 {
    let unknown = KINDS.len() as u64 - 1;
    if let MemberKind::Unknown(flag) = kind {
        return unknown + u64::from(flag);
    }
    KINDS.iter().position(|&known| known == kind).map_or(unknown, |at| at as u64)
}

fn kind_of(number: u64) -> Option<MemberKind> {
    let at = usize::try_from(number).ok()?;
    match KINDS.get(at) {
        Some(MemberKind::Unknown(_)) | None => {
            u8::try_from(at - (KINDS.len() - 1)).ok().map(MemberKind::Unknown)
        }
        Some(&known) => Some(known),
    }
}

impl TarArchive {
    /// Opens the archive in `source` by its part in a shard index, without a look at its headers.
    ///
    /// # Errors
    /// [`FormatError::Unreadable`].
    pub(crate) fn of_part(source: Source, part: &[u8]) -> Result<Self, FormatError> {
        let index = Index::of_part(part, &source)?;
        Ok(Self { is_indexed: true, ..Self::of_index(source, ReadLimits::default(), index) })
    }

    /// Opens and indexes an archive, and returns its part in a shard index as well.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub(crate) fn with_part(source: Source) -> Result<(Self, Vec<u8>), ReadError> {
        let index = Index::read(&source)?;
        let mut part = Vec::new();
        index.push_to(&mut part);
        Ok((Self::of_index(source, ReadLimits::default(), index), part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the part of an archive without regular members that skipped these.
    fn read(paths: &[String]) -> Result<usize, FormatError> {
        let mut index = Index::new();
        let skipped = |path: &String| {
            let path = path.as_bytes().to_vec();
            SkippedMember { path, kind: MemberKind::Sparse, offset: 512 }
        };
        index.skipped = paths.iter().map(skipped).collect();
        let mut part = Vec::new();
        index.push_to(&mut part);
        let source = Source::from_bytes("a.tar", vec![0; 1024]);
        Index::of_part(&part, &source).map(|index| index.skipped.len())
    }

    #[test]
    fn skipped_members_have_the_limits_of_a_pass_over_the_archive() {
        let unreadable = Err(FormatError::Unreadable { what: WHAT });
        let names = |count: usize, bytes: usize| vec!["n".repeat(bytes); count];
        assert_eq!(read(&names(1000, 10)), Ok(1000));
        assert_eq!(read(&names(1001, 10)), unreadable);
        assert_eq!(read(&names(512, 2048)), Ok(512));
        assert_eq!(read(&names(513, 2048)), unreadable);
    }
}
