//! Copies the samples of a damaged TBL file whose bytes agree with a checksum. Where an index
//! entry points to the wrong place, the gap between its neighbours is tried.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use tbl_format::checksum::{crc32c, payload_crc16};
use tbl_format::metadata::MetadataType;
use tbl_format::v2::{Codec, IndexEntry};

use super::header::{self, Rebuilt};
use super::{RepairEvent, RepairOptions, RepairSummary, unless_damage};
use crate::codec;
use crate::convert::{ConvertError, Prepare, Prepared};
use crate::error::{Detail, ReadError};
use crate::json::JsonFacts;
use crate::reader::{Damage, ReadOptions, TblFile, Verify};
use crate::sample::{Entry, Field, MetadataBlock, SampleSource, SampleSourceExt};
use crate::source::Source;
use crate::tbl_version::TblVersion;
use crate::writer::{
    Compressed, EncodeError, Encoded, Encoder, NewSample, StreamWriter, WriteOptions,
};

pub(super) fn repair<P: Prepare>(
    source: &Source,
    version: TblVersion,
    destination: &Path,
    options: RepairOptions,
    prepare: P,
    on_event: &mut dyn FnMut(RepairEvent<'_>),
) -> Result<RepairSummary, ConvertError> {
    let rebuilt = match version {
        TblVersion::V1 => header::rebuild_v1(source)?,
        TblVersion::V2 => header::rebuild_v2(source)?,
    };
    let guessed_count = rebuilt.guessed_count;
    let mut summary = RepairSummary { guessed_count, ..RepairSummary::default() };
    let open = |verify| {
        let options = ReadOptions { verify, damage: Damage::LeaveOut, ..ReadOptions::default() };
        TblFile::with_front(source.clone(), &rebuilt.front, options)
    };
    let mut file = open(Verify::All)?;
    let sound = report_structure(&file, &rebuilt, &mut summary, on_event)?;
    // A damaged header says nothing of the section, and the section says itself if it is whole.
    let header_is_sound = rebuilt.defects.len() == usize::from(rebuilt.cuts_metadata);
    summary.damaged_metadata =
        !sound.metadata || (rebuilt.cuts_metadata && header_is_sound) || !file.defects().is_empty();
    if !sound.metadata {
        // The CRC-32C of the samples may be what is wrong.
        file = open(Verify::Stored)?;
    }
    let RepairOptions { sync, overwrite } = options;
    let mut writer = StreamWriter::create(
        destination,
        WriteOptions {
            version,
            sync,
            overwrite,
            sample_count: Some(file.sample_count()),
            ..WriteOptions::default()
        },
    )?;
    summary.damaged_metadata |= !keep_file_metadata(&file, &mut writer)?;
    let mut salvage = Salvage {
        source,
        file: &file,
        prepare,
        sound,
        encoder: writer.encoder(),
        previous_end: header_end(version, file.sample_count()),
        bytes: Vec::new(),
        block: Vec::new(),
        row_index: Vec::new(),
    };
    for index in 0..file.sample_count() {
        match salvage.sample(index)? {
            Ok(Saved {
                encoded,
                restored,
                without_fields,
                without_row_index,
                without_name,
                without_label,
                without_metadata,
            }) => {
                writer.write(&encoded, &salvage.bytes)?;
                summary.kept += 1;
                summary.restored += u64::from(restored);
                summary.without_fields += u64::from(without_fields);
                summary.without_row_index += u64::from(without_row_index);
                summary.without_name += u64::from(without_name);
                summary.without_label += u64::from(without_label);
                summary.without_metadata += u64::from(without_metadata);
            }
            Err(loss) => {
                summary.lost += 1;
                let entry = file.facts(index).ok();
                let key = file.saved_key(index).ok().flatten();
                on_event(RepairEvent::Lost {
                    index,
                    key: key.as_deref(),
                    offset: entry.as_ref().map(|entry| entry.offset),
                    reason: &loss,
                });
            }
        }
    }
    if summary.is_worth_writing() {
        summary.file_bytes = writer.finish()?.bytes;
    }
    Ok(summary)
}

/// Copies names of classes, dictionary and metadata blocks of the whole file, and the statement that
/// no sample has a label. False where they cannot be read: the damage of their section is reported
/// with the structure.
fn keep_file_metadata(file: &TblFile, writer: &mut StreamWriter) -> Result<bool, ConvertError> {
    writer.set_class_names(file.class_names());
    writer.set_box_class_names(file.box_class_names());
    if unless_io(file.stored_labels())?
        .is_ok_and(|labels| labels.is_some_and(|list| !list.is_empty()))
    {
        writer.state_labels();
    }
    // Without it, samples that need it are lost, and say so.
    if let Some(dictionary) = unless_io(file.dictionary())?.unwrap_or(None) {
        writer.set_dictionary(dictionary.bytes())?;
    }
    let Ok(blocks) = unless_io(file.file_metadata())? else { return Ok(false) };
    for MetadataBlock { kind, data } in blocks {
        writer.add_metadata(None, kind, &data)?;
    }
    Ok(true)
}

/// The reason why a sample is lost.
enum Loss {
    /// Its index entry or its bytes are damaged.
    Damaged(ReadError),
    /// No index entry can describe it.
    Refused(EncodeError),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(error) => error.detail().fmt(f),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

/// The parts of the file that can be trusted.
#[derive(Clone, Copy)]
struct Sound {
    /// Formats and dimensions.
    index: bool,
    /// Checksums of samples.
    metadata: bool,
}

/// Reports damage outside the samples.
fn report_structure(
    file: &TblFile,
    rebuilt: &Rebuilt,
    summary: &mut RepairSummary,
    on_event: &mut dyn FnMut(RepairEvent<'_>),
) -> Result<Sound, ConvertError> {
    for reason in rebuilt.defects.iter().chain(file.defects()) {
        summary.damaged_structures += 1;
        on_event(RepairEvent::Damage { reason });
    }
    if rebuilt.claimed > rebuilt.sample_count {
        let first = rebuilt.sample_count;
        let count = rebuilt.claimed - rebuilt.sample_count;
        summary.lost = summary.lost.saturating_add(count);
        on_event(RepairEvent::LostRun { first, count, reason: &"the index ends before them" });
    }
    let mut passes = |check: Result<(), ReadError>| -> Result<bool, ConvertError> {
        let Err(reason) = unless_io(check)? else { return Ok(true) };
        summary.damaged_structures += 1;
        on_event(RepairEvent::Damage { reason: &Detail(reason) });
        Ok(false)
    };
    let metadata = passes(file.verify_metadata())?;
    let index = passes(file.verify_index())?;
    Ok(Sound { index: index && rebuilt.defects.is_empty(), metadata })
}

fn header_end(version: TblVersion, sample_count: u64) -> u64 {
    match version {
        TblVersion::V1 => tbl_format::v1::index_end(sample_count),
        TblVersion::V2 => tbl_format::v2::index_end(sample_count),
    }
    .unwrap_or(u64::MAX)
}

struct Salvage<'a, P> {
    source: &'a Source,
    file: &'a TblFile,
    prepare: P,
    sound: Sound,
    encoder: Encoder,
    /// The end of the last sample that was saved.
    previous_end: u64,
    bytes: Vec<u8>,
    block: Vec<u8>,
    row_index: Vec<u8>,
}

/// A sample that can be written.
struct Saved {
    encoded: Encoded,
    restored: bool,
    without_fields: bool,
    without_row_index: bool,
    without_name: bool,
    without_label: bool,
    without_metadata: bool,
}

/// The known properties of a sample whose bytes are in [`Salvage::bytes`].
struct Found {
    entry: Entry<'static>,
    /// The compression of [`Salvage::block`], if it holds the bytes compressed.
    codec: Option<Codec>,
    restored: bool,
}

impl<P: Prepare> Salvage<'_, P> {
    /// Reads sample `index`. The outer error is the system's, the inner one the sample's.
    fn sample(&mut self, index: u64) -> Result<Result<Saved, Loss>, ConvertError> {
        let read = self.file.read_with_block(index, &mut self.bytes, &mut self.block);
        let read = read.and_then(|codec| {
            let entry = Entry::new(self.file.facts(index)?, None, None);
            Ok(Found { entry, codec, restored: false })
        });
        let found = match unless_io(read)? {
            Ok(found) => found,
            Err(error) => match self.between_neighbours(index)? {
                Some(found) => found,
                None => return Ok(Err(Loss::Damaged(error))),
            },
        };
        let Found { mut entry, codec, restored } = found;
        self.previous_end = entry.offset.saturating_add(entry.stored_bytes);
        // A sample is worth saving without its name and its label.
        let key = unless_io(self.file.saved_key(index))?;
        let label = unless_io(self.file.saved_label(index))?;
        let without_name = key.is_err();
        let without_label = label.is_err();
        entry.key = key.unwrap_or_default().map(Cow::Owned);
        entry.label = label.unwrap_or_default();
        let mut fields: Vec<Field> = Vec::new();
        let without_fields = unless_io(self.file.fields(index, &mut fields))?.is_err();
        let key = entry.key.as_deref();
        let label = entry.label;
        let metadata = unless_io(self.file.own_metadata(index, key, label))?;
        let mut without_metadata = metadata.is_err();
        let mut metadata = metadata.unwrap_or_default();
        if !self.sound.metadata {
            let block_count = metadata.len();
            metadata.retain(|block| !states_other_label(block, label));
            without_metadata |= metadata.len() < block_count;
        }
        // The checksum of an index for other bytes does not match.
        let crc32c = crc32c(&self.bytes);
        let stored = unless_io(self.file.row_index_of(index, crc32c, &mut self.row_index))?;
        let has_row_index = *stored.as_ref().unwrap_or(&false);
        let without_row_index = stored.is_err();
        let prepared = self.measure(&entry, restored);
        let sample = NewSample {
            bytes: &self.bytes,
            format: prepared.format,
            width: prepared.width,
            height: prepared.height,
            key: entry.key.as_deref(),
            label: entry.label,
            fields: &fields,
            row_index: has_row_index.then_some(self.row_index.as_slice()),
            metadata: &metadata,
        };
        let encoded = match codec {
            Some(codec) => {
                let bytes = std::mem::take(&mut self.block);
                self.encoder.encode_compressed(&sample, Compressed { codec, bytes })
            }
            None => self.encoder.encode(&sample),
        };
        let saved = |encoded| Saved {
            encoded,
            restored,
            without_fields,
            without_row_index,
            without_name,
            without_label,
            without_metadata,
        };
        Ok(encoded.map(saved).map_err(Loss::Refused))
    }

    /// Format and dimensions: the index's, or measured where it cannot be trusted.
    fn measure(&mut self, entry: &Entry<'_>, restored: bool) -> Prepared {
        // Only images say their own dimensions.
        if (self.sound.index && !restored) || !entry.format.is_image() {
            return Prepared::as_stored(entry);
        }
        let unmeasured = Entry { width: 0, height: 0, ..entry.clone() };
        // What cannot be measured is kept as the index has it.
        self.prepare
            .prepare(&unmeasured, &mut self.bytes)
            .unwrap_or_else(|_| Prepared::as_stored(entry))
    }

    /// Looks for sample `index` between the sample before and the sample after, and where either
    /// of its own offset and size is right. What a checksum agrees with is the sample.
    fn between_neighbours(&mut self, index: u64) -> Result<Option<Found>, ConvertError> {
        if self.file.version() == TblVersion::V1 {
            return Ok(None);
        }
        let entry_at = tbl_format::v2::index_end(index).unwrap_or(u64::MAX);
        let mut entry = [0; IndexEntry::SIZE];
        if unless_io(self.source.read_exact_at(entry_at, &mut entry))?.is_err() {
            return Ok(None);
        }
        let Ok(entry) = IndexEntry::parse(&entry) else { return Ok(None) };
        let next = self.file.facts(index.saturating_add(1));
        let next = next.map_or(self.source.len(), |next| next.offset);
        let start = self.previous_end;
        let gap = next.saturating_sub(start);
        let expected = if self.sound.metadata {
            unless_io(self.file.sample_checksum(index))?.unwrap_or(None)
        } else {
            None
        };
        for (offset, stored_bytes) in
            [(start, gap), (entry.offset(), gap), (start, u64::from(entry.stored_bytes()))]
        {
            if let Some(codec) = self.try_extent(entry, offset, stored_bytes, expected)? {
                let entry = Entry {
                    key: None,
                    label: None,
                    format: entry.format(),
                    width: entry.width().into(),
                    height: entry.height().into(),
                    offset,
                    stored_bytes,
                    bytes: self.bytes.len() as u64,
                };
                return Ok(Some(Found { entry, codec, restored: true }));
            }
        }
        Ok(None)
    }

    /// Reads the extent and says whether it holds the sample: `None` if not, otherwise its
    /// compression.
    fn try_extent(
        &mut self,
        entry: &IndexEntry,
        offset: u64,
        stored_bytes: u64,
        expected: Option<u32>,
    ) -> Result<Option<Option<Codec>>, ConvertError> {
        let most = ReadOptions::default().limits.sample_bytes;
        if stored_bytes > most
            || unless_io(self.source.read_range_into(offset, stored_bytes, &mut self.block))?
                .is_err()
        {
            return Ok(None);
        }
        let is_the_sample = |bytes: &[u8]| match expected {
            Some(expected) => crc32c(bytes) == expected,
            None => payload_crc16(bytes) == entry.checksum(),
        };
        if is_the_sample(&self.block) {
            std::mem::swap(&mut self.bytes, &mut self.block);
            return Ok(Some(None));
        }
        let bytes = entry.stated_bytes();
        let Ok(len) = usize::try_from(bytes) else { return Ok(None) };
        let stored = u32::try_from(stored_bytes).unwrap_or(u32::MAX);
        let Ok(Some(codec)) = entry.codec() else { return Ok(None) };
        if !codec.can_decode(stored, bytes) || u64::from(bytes) > most {
            return Ok(None);
        }
        self.bytes.clear();
        self.bytes.resize(len, 0);
        let dictionary = unless_io(self.file.dictionary())?.unwrap_or(None);
        let unpacked = codec::decompress(codec, dictionary, &self.block, &mut self.bytes);
        let fits = unpacked.is_ok() && is_the_sample(&self.bytes);
        Ok(fits.then_some(Some(codec)))
    }
}

/// Whether a block is JSON with a label that is not the sample's: a reader without the list of
/// labels would take it for the label.
fn states_other_label(block: &MetadataBlock, label: Option<i64>) -> bool {
    block.kind == MetadataType::Json
        && JsonFacts::parse(&block.data).label.is_ok_and(|found| found.is_some() && found != label)
}

/// The outcome of a read that damage can fail; an error of the system ends the repair.
fn unless_io<T>(read: Result<T, ReadError>) -> Result<Result<T, ReadError>, ConvertError> {
    match read {
        Ok(value) => Ok(Ok(value)),
        Err(error) => unless_damage(error).map(Err),
    }
}
