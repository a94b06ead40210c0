//! The one pass over an archive's headers.

use std::collections::HashMap;
use std::ops::Range;

use super::header::{BLOCK_BYTES, Block, Header, SPARSE_MAP_CONTINUES, is_zero, text};
use super::member::{MemberCounts, MemberKind, SkippedMember};
use super::pax::PaxRecords;
use super::window::Window;
use crate::error::{ReadError, TarDefect};
use crate::grouping::{is_hidden, last_extension};
use crate::label::LabelField;
use crate::names::Names;
use crate::source::Source;

/// Largest accepted PAX header or long name; paths end at 4 KiB on the systems archives come from.
pub(crate) const MAX_METADATA_BYTES: u64 = 1 << 20;

/// Skipped members that are kept by name; beyond these only the counts grow.
pub(super) const MAX_NAMED_SKIPS: usize = 1000;

/// Bytes of such names: far more than a thousand real ones have.
pub(super) const MAX_SKIPPED_TEXT_BYTES: usize = 1 << 20;

/// Stands for a label that cannot be read: no label has this value.
pub(super) const UNREADABLE: i64 = i64::MIN;

/// The offset of the magic in POSIX and GNU headers.
const MAGIC_OFFSET: usize = 257;

/// The position of a regular member's bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// The extents by member number: 8 bytes for each of a member below 4 GiB in the first 2 TiB of
/// the archive.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// The offset of the bytes in blocks, and their number.
    narrow: Vec<(u32, u32)>,
    /// The members that those numbers are too small for.
    wide: HashMap<usize, Extent>,
}

impl Extents {
    pub(super) fn push(&mut self, extent: Extent) {
        let block = u32::try_from(extent.offset / BLOCK_BYTES).ok();
        let narrow = block.zip(u32::try_from(extent.size).ok());
        if narrow.is_none() {
            self.wide.insert(self.narrow.len(), extent);
        }
        self.narrow.push(narrow.unwrap_or_default());
    }

    pub(super) fn of(&self, member: u32) -> Extent {
        let member = member as usize;
        if !self.wide.is_empty()
            && let Some(extent) = self.wide.get(&member)
        {
            return *extent;
        }
        let (block, size) = self.narrow[member];
        Extent { offset: u64::from(block) * BLOCK_BYTES, size: u64::from(size) }
    }
}

/// Everything one pass finds out.
#[derive(Debug)]
pub(super) struct Index {
    /// Regular members: names and, by the same number, extents.
    pub(super) names: Names,
    pub(super) extents: Extents,
    /// The labels that `.cls` and `.json` members have, by member number, ascending;
    /// [`UNREADABLE`] for one that cannot be read.
    pub(super) labels: Vec<(u32, i64)>,
    pub(super) counts: MemberCounts,
    pub(super) skipped: Vec<SkippedMember>,
    /// The name of the first member that is neither regular nor a directory.
    pub(super) first_passed_over: Option<Vec<u8>>,
    /// The first member after each end of an archive that another one follows.
    pub(super) archive_starts: Vec<u32>,
    pub(super) has_end_marker: bool,
    /// The first single block of zeros in front of a header.
    pub(super) lone_zero_block: Option<u64>,
    pub(super) trailing_garbage: Option<u64>,
}

impl Index {
    pub(super) fn read(source: &Source) -> Result<Self, ReadError> {
        let mut scan = Scan {
            source,
            window: Window::new(source),
            index: Self::new(),
            global: PaxRecords::default(),
            skipped_text_left: MAX_SKIPPED_TEXT_BYTES,
            archive: 0..source.len(),
            folder: Vec::new(),
        };
        scan.run()?;
        if let Some(inner) = scan.inner_archives()? {
            scan.enter(&inner)?;
        }
        let mut index = scan.index;
        index.names.shrink_to_fit();
        index.extents.narrow.shrink_to_fit();
        Ok(index)
    }

    /// The label that `member` has, or [`UNREADABLE`].
    pub(super) fn label(&self, member: u32) -> Option<i64> {
        let at = self.labels.binary_search_by_key(&member, |&(member, _)| member).ok()?;
        self.labels.get(at).map(|&(_, label)| label)
    }
}

/// The first header in `source` at `start` or after it, by its checksum and its magic: a checksum
/// alone can be right by chance.
pub(crate) fn find_header(source: &Source, start: u64) -> Result<Option<u64>, ReadError> {
    let mut window = Window::new(source);
    let mut offset = start - start % BLOCK_BYTES;
    while source.len().saturating_sub(offset) >= BLOCK_BYTES {
        let block = window.block(offset)?;
        if block[MAGIC_OFFSET..].starts_with(b"ustar") && Header::parse(block).is_ok() {
            return Ok(Some(offset));
        }
        offset += BLOCK_BYTES;
    }
    Ok(None)
}

/// The properties of a member that the metadata members before it set.
#[derive(Default)]
struct Pending {
    /// The last metadata member and its offset, for the error when no member follows.
    last: Option<(&'static str, u64)>,
    long_name: Option<Vec<u8>>,
    pax: PaxRecords,
}

struct Scan<'a> {
    source: &'a Source,
    window: Window<'a>,
    index: Index,
    global: PaxRecords,
    skipped_text_left: usize,
    /// The place of the archive in the source: all of it, or an archive in it.
    archive: Range<u64>,
    /// The folder that members are put into.
    folder: Vec<u8>,
}

/// A member that is an archive itself.
struct InnerArchive {
    extent: Extent,
    /// The folder that its members get: its name without the extension.
    folder: Vec<u8>,
}

/// The extension of members that can be archives.
const ARCHIVE_EXTENSION: &[u8] = b".tar";

/// A member's header, read out so that the window can move on.
struct Found {
    type_flag: u8,
    path: Vec<u8>,
    size: u64,
    sparse_map_continues: bool,
}

impl Scan<'_> {
    /// The archives that an archive consists of, such as ImageNet's with one for each class: all
    /// members but hidden ones are called so, and start with a header or are empty archives. `None`
    /// for other archives.
    fn inner_archives(&mut self) -> Result<Option<Vec<InnerArchive>>, ReadError> {
        let mut inner = Vec::new();
        let mut has_headers = false;
        for member in (0..).take(self.index.names.len()) {
            let path = self.index.names.path(member);
            if path.split(|&byte| byte == b'/').any(is_hidden) {
                continue;
            }
            let Some(stem) = path.strip_suffix(ARCHIVE_EXTENSION) else { return Ok(None) };
            let folder = [stem, b"/"].concat();
            let extent = self.index.extents.of(member);
            if extent.size < BLOCK_BYTES {
                return Ok(None);
            }
            let block = self.window.block(extent.offset)?;
            if Header::parse(block).is_ok() {
                has_headers = true;
            } else if !is_zero(block) {
                return Ok(None);
            }
            inner.push(InnerArchive { extent, folder });
        }
        Ok(has_headers.then_some(inner))
    }

    /// Replaces the members of the archive with those of its inner archives, in order.
    fn enter(&mut self, inner: &[InnerArchive]) -> Result<(), ReadError> {
        let outer = std::mem::replace(&mut self.index, Index::new());
        let counts = MemberCounts { regular: 0, ..outer.counts };
        let mut has_end_marker = outer.has_end_marker;
        self.index = Index {
            counts,
            skipped: outer.skipped,
            first_passed_over: outer.first_passed_over,
            lone_zero_block: outer.lone_zero_block,
            trailing_garbage: outer.trailing_garbage,
            ..Index::new()
        };
        for InnerArchive { extent, folder } in inner {
            // Names are counted by `u32`.
            let member = u32::try_from(self.index.names.len()).unwrap_or(u32::MAX);
            if member > 0 && self.index.archive_starts.last() != Some(&member) {
                self.index.archive_starts.push(member);
            }
            self.archive = extent.offset..extent.offset + extent.size;
            self.folder.clone_from(folder);
            self.global = PaxRecords::default();
            self.run()?;
            has_end_marker &= self.index.has_end_marker;
        }
        self.index.has_end_marker = has_end_marker;
        Ok(())
    }

    fn run(&mut self) -> Result<(), ReadError> {
        let mut offset = self.archive.start;
        let mut pending = Pending::default();
        while let Some(block) = self.header_block(offset)? {
            if is_zero(block) {
                self.check_nothing_pending(&pending)?;
                match self.after_zeros(offset)? {
                    Some(next) => offset = next,
                    None => break,
                }
                continue;
            }
            self.index.has_end_marker = false;
            let found = self.parse_header(offset)?;
            offset = match found.type_flag {
                b'x' | b'X' | b'g' | b'L' | b'K' => {
                    self.read_metadata(offset, &found, &mut pending)?
                }
                _ => {
                    let global = std::mem::take(&mut self.global);
                    let next = self.add_member(offset, &found, &pending, &global)?;
                    self.global = global;
                    pending = Pending::default();
                    next
                }
            };
        }
        self.check_nothing_pending(&pending)
    }

    /// The block at `offset`, or `None` at the end of the file.
    fn header_block(&mut self, offset: u64) -> Result<Option<&Block>, ReadError> {
        let have = self.archive.end - offset;
        let is_first = offset == self.archive.start;
        if have == 0 && !is_first {
            return Ok(None);
        }
        if have < BLOCK_BYTES {
            let rest = self.window.bytes(offset, have)?;
            if !is_first && rest.iter().all(|&byte| byte == 0) {
                return Ok(None);
            }
            return Err(self
                .defect(offset, TarDefect::Truncated { what: "header", need: BLOCK_BYTES, have }));
        }
        self.window.block(offset).map(Some)
    }

    /// Looks after zero blocks for another archive, as `cat a.tar b.tar` writes them. Returns
    /// where it starts. A single block of zeros does not end an archive: members follow it, or it
    /// was a header once.
    fn after_zeros(&mut self, first_zero: u64) -> Result<Option<u64>, ReadError> {
        let archive_end = self.archive.end;
        let end = self.window.end_of_zeros(first_zero)?.min(archive_end);
        let zeros = end - first_zero;
        let is_end_marker = zeros >= 2 * BLOCK_BYTES;
        self.index.has_end_marker = is_end_marker;
        if end == archive_end {
            return Ok(None);
        }
        let next = end - zeros % BLOCK_BYTES;
        if archive_end - next >= BLOCK_BYTES && Header::parse(self.window.block(next)?).is_ok() {
            if !is_end_marker {
                self.index.lone_zero_block.get_or_insert(first_zero);
            }
            // Names are counted by `u32`.
            let member = u32::try_from(self.index.names.len()).unwrap_or(u32::MAX);
            if self.index.archive_starts.last() != Some(&member) {
                self.index.archive_starts.push(member);
            }
            return Ok(Some(next));
        }
        // An end marker with a stray byte after its first block, as mail encoders leave them, cuts
        // nothing off.
        let is_damaged_marker = end > next && archive_end - next <= BLOCK_BYTES;
        if !is_end_marker && !is_damaged_marker {
            return Err(self.defect(first_zero, TarDefect::ZeroBlock));
        }
        self.index.trailing_garbage = Some(end);
        Ok(None)
    }

    fn parse_header(&mut self, offset: u64) -> Result<Found, ReadError> {
        let location = self.source.location();
        let start = self.archive.start;
        let parse = |block| {
            let header = Header::parse(block)?;
            Ok(Found {
                type_flag: header.type_flag(),
                path: header.path().into_owned(),
                size: header.size()?,
                sparse_map_continues: header.sparse_map_continues(),
            })
        };
        let block = self.window.block(offset)?;
        parse(block).map_err(|defect| {
            let compressor = compressor_of(block).filter(|_| offset == start);
            let source = compressor.map_or(defect, |by| TarDefect::Compressed { by });
            ReadError::Tar { location: location.clone(), offset, source }
        })
    }

    /// Takes in a PAX header or a long name and returns where the next header is.
    fn read_metadata(
        &mut self,
        offset: u64,
        found: &Found,
        pending: &mut Pending,
    ) -> Result<u64, ReadError> {
        let what = match found.type_flag {
            b'g' => "global PAX header",
            b'L' => "GNU long name",
            b'K' => "GNU long link name",
            _ => "PAX header",
        };
        if found.size > MAX_METADATA_BYTES {
            let size = found.size;
            let limit = MAX_METADATA_BYTES;
            return Err(self.defect(offset, TarDefect::MetadataTooLarge { what, size, limit }));
        }
        let content_offset = offset + BLOCK_BYTES;
        let next = self.end_of_data(content_offset, found.size, what)?;
        let content = self.window.bytes(content_offset, found.size)?;
        let applied = match found.type_flag {
            b'L' => {
                pending.long_name = Some(text(content).to_vec());
                Ok(())
            }
            b'K' => Ok(()),
            b'g' => self.global.apply(content),
            _ => pending.pax.apply(content),
        };
        applied.map_err(|defect| self.defect(content_offset, defect))?;
        if found.type_flag != b'g' {
            pending.last = Some((what, offset));
        }
        Ok(next)
    }

    /// Enters a member and returns where the next header is.
    fn add_member(
        &mut self,
        offset: u64,
        found: &Found,
        pending: &Pending,
        global: &PaxRecords,
    ) -> Result<u64, ReadError> {
        let Pending { long_name, pax, .. } = pending;
        let pax_path = [&pax.sparse_path, &pax.path, &global.path].into_iter().flatten().next();
        let path = pax_path.or(long_name.as_ref()).unwrap_or(&found.path);
        let size = pax.size.or(global.size).unwrap_or(found.size);
        let mut data_offset = offset + BLOCK_BYTES;
        if found.type_flag == b'S' && found.sparse_map_continues {
            data_offset = self.end_of_sparse_map(data_offset)?;
        }
        let kind = MemberKind::of(found.type_flag, pax.is_sparse || global.is_sparse, path);
        let has_data = !kind.may_lack_data() || (size > 0 && self.window.is_data(data_offset)?);
        let next = if has_data {
            self.end_of_data(data_offset, size, "member with its padding")?
        } else {
            data_offset
        };
        self.index.counts.add(kind);
        if !matches!(kind, MemberKind::Regular | MemberKind::Directory) {
            self.index.first_passed_over.get_or_insert_with(|| path.clone());
        }
        if kind == MemberKind::Regular {
            self.add_regular(path, Extent { offset: data_offset, size })?;
        } else if has_data && kind != MemberKind::Directory {
            self.add_skipped(path, kind, offset);
        }
        Ok(next)
    }

    fn add_skipped(&mut self, path: &[u8], kind: MemberKind, offset: u64) {
        if self.index.skipped.len() < MAX_NAMED_SKIPS && path.len() <= self.skipped_text_left {
            self.skipped_text_left -= path.len();
            self.index.skipped.push(SkippedMember { path: path.to_vec(), kind, offset });
        }
    }

    fn add_regular(&mut self, path: &[u8], extent: Extent) -> Result<(), ReadError> {
        // Honest archives store every name, so that names cannot be longer than the file. A name
        // in a global header counts for each member after it.
        let inner;
        let path = if self.folder.is_empty() {
            path
        } else {
            let path = path.strip_prefix(b"./").unwrap_or(path);
            inner = [&self.folder, path].concat();
            &inner
        };
        let text_bytes = self.index.names.text_bytes() + path.len() as u64;
        let limit = self.source.len().min(u64::from(u32::MAX));
        let too_many = |need| ReadError::Limit {
            location: self.source.location().clone(),
            what: "bytes of member names",
            limit,
            need,
        };
        if text_bytes > limit {
            return Err(too_many(text_bytes));
        }
        let member = u32::try_from(self.index.names.len()).map_err(|_| too_many(text_bytes))?;
        self.index.names.push(path).map_err(|_| too_many(text_bytes))?;
        self.index.extents.push(extent);
        let extension = last_extension(self.index.names.base(member));
        if let Some(field) = LabelField::of(extension) {
            let label = match field.check_len(extent.size) {
                Ok(()) => field.parse(self.window.bytes(extent.offset, extent.size)?),
                Err(defect) => Err(defect),
            };
            // A second look finds the defect again; most archives have none.
            let label = label.unwrap_or(Some(UNREADABLE));
            self.index.labels.extend(label.map(|label| (member, label)));
        }
        Ok(())
    }

    /// Checks that `size` bytes and their padding follow and returns where the next header is.
    fn end_of_data(&self, offset: u64, size: u64, what: &'static str) -> Result<u64, ReadError> {
        let have = self.archive.end.saturating_sub(offset);
        match size.checked_next_multiple_of(BLOCK_BYTES) {
            Some(padded) if padded <= have => Ok(offset + padded),
            padded => {
                let need = padded.unwrap_or(size);
                Err(self.defect(offset, TarDefect::Truncated { what, need, have }))
            }
        }
    }

    /// Passes over the blocks that continue a GNU sparse member's map.
    fn end_of_sparse_map(&mut self, mut offset: u64) -> Result<u64, ReadError> {
        loop {
            self.end_of_data(offset, BLOCK_BYTES, "sparse map")?;
            let continues = self.window.block(offset)?[SPARSE_MAP_CONTINUES] != 0;
            offset += BLOCK_BYTES;
            if !continues {
                return Ok(offset);
            }
        }
    }

    fn check_nothing_pending(&self, pending: &Pending) -> Result<(), ReadError> {
        match pending.last {
            Some((what, offset)) => Err(self.defect(offset, TarDefect::Dangling { what })),
            None => Ok(()),
        }
    }

    fn defect(&self, offset: u64, source: TarDefect) -> ReadError {
        ReadError::Tar { location: self.source.location().clone(), offset, source }
    }
}

/// The compressor whose magic `head` starts with.
pub(crate) fn compressor_of(head: &[u8]) -> Option<&'static str> {
    const MAGICS: [(&[u8], &str); 4] = [
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
    ];
    MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, name)| name)
}
