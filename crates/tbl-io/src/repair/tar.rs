//! Copies the members of a damaged archive whose headers and bytes are whole, block by block as
//! they are. After a damaged header the next block that is a header is looked for.

use std::path::Path;

use tbl_format::path::check_name;

use super::{RepairEvent, RepairOptions, RepairSummary, check_extension, unless_damage};
use crate::convert::ConvertError;
use crate::error::{ReadError, TarDefect};
use crate::open::Container;
use crate::reader::ReadOptions;
use crate::sample::SampleSourceExt;
use crate::source::Source;
use crate::storage::Stores;
use crate::tar::header::{BLOCK_BYTES, Block, Header, SPARSE_MAP_CONTINUES, is_zero, text};
use crate::tar::index::{MAX_METADATA_BYTES, find_header};
use crate::tar::pax::PaxRecords;
use crate::tar::window::Window;
use crate::tar::{MemberKind, TarArchive};
use crate::tar_writer::{TarOptions, TarWriter};

/// Copied at a time.
const CHUNK_BYTES: u64 = 1 << 20;

pub(super) fn repair(
    source: &Source,
    destination: &Path,
    options: RepairOptions,
    on_event: &mut dyn FnMut(RepairEvent<'_>),
) -> Result<RepairSummary, ConvertError> {
    check_is_archive(source)?;
    check_extension(destination, "tar")?;
    let RepairOptions { sync, overwrite } = options;
    let writer = TarWriter::create(destination, TarOptions { sync, overwrite })?;
    let mut salvage = Salvage {
        source,
        window: Window::new(source),
        writer,
        summary: RepairSummary::default(),
        member_number: 0,
        on_event,
    };
    salvage.run()?;
    let Salvage { writer, mut summary, on_event, .. } = salvage;
    if summary.is_worth_writing() {
        summary.file_bytes = writer.finish()?.bytes;
        summary.unreadable_labels = report_labels(destination, on_event)?;
    }
    Ok(summary)
}

/// Reports the samples of the new archive whose label cannot be read, and counts them.
fn report_labels(
    destination: &Path,
    on_event: &mut dyn FnMut(RepairEvent<'_>),
) -> Result<u64, ReadError> {
    let archive = TarArchive::open(destination)?;
    let mut count = 0;
    for index in archive.unreadable_labels() {
        if let Err(error) = archive.check_label(index) {
            count += 1;
            on_event(RepairEvent::Damage { reason: &UnreadableLabel(error) });
        }
    }
    Ok(count)
}

/// A label that is copied as it is.
#[derive(Debug, thiserror::Error)]
#[error("kept as it is: {0}")]
struct UnreadableLabel(ReadError);

/// The file ends within the padding of its last member.
#[derive(Debug, thiserror::Error)]
#[error("the padding of the last member is cut off at byte {offset}, its content is whole")]
struct CutPadding {
    offset: u64,
}

/// Refuses a file without any TAR header, with the error of opening it.
fn check_is_archive(source: &Source) -> Result<(), ReadError> {
    // Headers of V7 have no magic to look for, but the first one stands where the file starts.
    let starts_with_header =
        source.len() >= BLOCK_BYTES && Header::parse(Window::new(source).block(0)?).is_ok();
    if starts_with_header || find_header(source, 0)?.is_some() {
        return Ok(());
    }
    Container::of_file(&Stores::new(), source.clone(), ReadOptions::default()).map(drop)
}

struct Salvage<'a> {
    source: &'a Source,
    window: Window<'a>,
    writer: TarWriter,
    summary: RepairSummary,
    /// The number of the next member, lost ones included.
    member_number: u64,
    on_event: &'a mut dyn FnMut(RepairEvent<'_>),
}

/// A member with the extended headers in front of it.
struct Member {
    /// The first of its headers.
    start: u64,
    /// The end of its bytes, before padding.
    data_end: u64,
}

/// The structure at an offset.
enum Found {
    Member(Member),
    /// Zeros from this offset on.
    Zeros(u64),
    End,
}

/// The reason why a member is lost.
struct Defect {
    path: Vec<u8>,
    offset: u64,
    reason: TarDefect,
}

impl Salvage<'_> {
    fn run(&mut self) -> Result<(), ConvertError> {
        let mut offset = 0;
        let mut ended = false;
        loop {
            match self.find(offset)? {
                Ok(Found::End) => return Ok(()),
                Ok(Found::Zeros(start)) => {
                    let end = self.window.end_of_zeros(start)?;
                    let rest = end - end % BLOCK_BYTES;
                    // A stray byte in the last block of an end marker cuts nothing off.
                    let is_damaged_marker = end > rest && self.source.len() - rest <= BLOCK_BYTES;
                    ended = end - start >= 2 * BLOCK_BYTES || is_damaged_marker;
                    offset = rest.max(start + BLOCK_BYTES);
                }
                Ok(Found::Member(member)) => {
                    self.copy(&member)?;
                    self.member_number += 1;
                    offset = member.data_end.next_multiple_of(BLOCK_BYTES);
                    if offset > self.source.len() {
                        let reason = &CutPadding { offset: self.source.len() };
                        self.summary.damaged_structures += 1;
                        (self.on_event)(RepairEvent::Damage { reason });
                    }
                    ended = false;
                }
                Err(defect) => {
                    let next = self.resume(defect.offset)?;
                    let is_last = self.block(next)?.is_none();
                    // Bytes after an end marker were never a member, unless they are another archive.
                    if ended && is_last {
                        return Ok(());
                    }
                    self.summary.lost += 1;
                    let key = (!defect.path.is_empty()).then_some(&*defect.path);
                    (self.on_event)(RepairEvent::Lost {
                        index: self.member_number,
                        key,
                        offset: Some(defect.offset),
                        reason: &defect.reason,
                    });
                    self.member_number += 1;
                    if is_last {
                        return Ok(());
                    }
                    offset = next;
                }
            }
        }
    }

    /// Reads the headers of the member at `start`. The outer error is the system's.
    fn find(&mut self, start: u64) -> Result<Result<Found, Defect>, ConvertError> {
        let mut pax = PaxRecords::default();
        let mut long_name = None;
        // The last extended header that belongs to the member; a global one does not.
        let mut pending = None;
        let mut offset = start;
        loop {
            let block = self.block(offset)?;
            let ends = block.is_none_or(|block| is_zero(&block));
            if ends && let Some(offset) = pending {
                let reason = TarDefect::Dangling { what: "extended header" };
                let path = pax.path.or(long_name).unwrap_or_default();
                return Ok(Err(Defect { path, offset, reason }));
            }
            let Some(block) = block else { return self.end(offset) };
            if ends {
                return Ok(Ok(Found::Zeros(offset)));
            }
            let name = text(&block[..100]).to_vec();
            let defect = |path, reason| Ok(Err(Defect { path, offset, reason }));
            let (header, size) = match Header::parse(&block).and_then(|h| h.size().map(|s| (h, s)))
            {
                Ok(header) => header,
                Err(reason) => return defect(name, reason),
            };
            let path = pax.path.clone().or(long_name.clone()).unwrap_or(header.path().into_owned());
            let type_flag = header.type_flag();
            let is_metadata = matches!(type_flag, b'x' | b'X' | b'g' | b'L' | b'K');
            let size = if is_metadata { size } else { pax.size.unwrap_or(size) };
            let mut data = offset + BLOCK_BYTES;
            let mut map_continues = type_flag == b'S' && header.sparse_map_continues();
            while map_continues && let Some(map) = self.block(data)? {
                map_continues = map[SPARSE_MAP_CONTINUES] != 0;
                data += BLOCK_BYTES;
            }
            let have = self.source.len().saturating_sub(data);
            let size = if MemberKind::of(type_flag, false, &path).may_lack_data()
                && !self.window.is_data(data)?
            {
                0
            } else {
                size
            };
            if size > have || map_continues {
                let what = "member";
                return defect(path, TarDefect::Truncated { what, need: size, have });
            }
            let data_end = data + size;
            if !is_metadata {
                if let Err(unsafe_name) = check_name(&path) {
                    let what = "member name";
                    let found = unsafe_name;
                    return defect(path, TarDefect::UnsafeName { what, defect: found });
                }
                return Ok(Ok(Found::Member(Member { start, data_end })));
            }
            if size > MAX_METADATA_BYTES {
                let what = "extended header";
                let limit = MAX_METADATA_BYTES;
                return defect(path, TarDefect::MetadataTooLarge { what, size, limit });
            }
            let content = self.window.bytes(data, size)?;
            if type_flag != b'g' {
                pending = Some(offset);
            }
            match type_flag {
                b'x' | b'X' => {
                    if let Err(reason) = pax.apply(content) {
                        return defect(path, reason);
                    }
                }
                b'L' => long_name = Some(text(content).to_vec()),
                _ => {}
            }
            offset = data_end.next_multiple_of(BLOCK_BYTES);
        }
    }

    /// Judges the rest of the file from `offset` on, which is less than a block.
    fn end(&mut self, offset: u64) -> Result<Result<Found, Defect>, ConvertError> {
        let have = self.source.len().saturating_sub(offset);
        if have == 0 || self.window.bytes(offset, have)?.iter().all(|&byte| byte == 0) {
            return Ok(Ok(Found::End));
        }
        let reason = TarDefect::Truncated { what: "header", need: BLOCK_BYTES, have };
        Ok(Err(Defect { path: Vec::new(), offset, reason }))
    }

    /// The block at `offset`; `None` where the file has no whole block left.
    fn block(&mut self, offset: u64) -> Result<Option<Block>, ReadError> {
        if self.source.len().saturating_sub(offset) < BLOCK_BYTES {
            return Ok(None);
        }
        self.window.block(offset).copied().map(Some)
    }

    /// The offset of the next header after the damaged one at `offset`. Its size is not believed:
    /// it
    /// may be what is damaged, and could lead past good members.
    fn resume(&mut self, offset: u64) -> Result<u64, ConvertError> {
        let mut at = offset + BLOCK_BYTES;
        while let Some(block) = self.block(at)? {
            // A checksum alone can be right by chance; together with a magic it cannot.
            if block[257..].starts_with(b"ustar") && Header::parse(&block).is_ok() {
                return Ok(at);
            }
            at += BLOCK_BYTES;
        }
        Ok(at)
    }

    fn copy(&mut self, member: &Member) -> Result<(), ConvertError> {
        let mut chunk = Vec::new();
        let mut offset = member.start;
        while offset < member.data_end {
            let take = (member.data_end - offset).min(CHUNK_BYTES);
            if let Err(error) = self.source.read_range_into(offset, take, &mut chunk) {
                // The file became shorter: what was written of this member cannot be taken back.
                return Err(unless_damage(error).map_or_else(|error| error, ConvertError::from));
            }
            self.writer.append_blocks(&chunk)?;
            offset += take;
        }
        self.summary.kept += 1;
        Ok(())
    }
}
