//! The shards of a data set that is checked: opened for readers that check everything, and joined to
//! one sequence of samples.

use std::ffi::OsStr;

use super::Oddity;
use crate::convert::ConvertError;
use crate::error::{ReadError, TarDefect};
use crate::labels::Labels;
use crate::location::Location;
use crate::note::Note;
use crate::open::{Container, open_each_shard};
use crate::reader::{ReadOptions, TblFile, Verify};
use crate::sample::{SampleSource, SampleSourceExt};
use crate::shard_index::ShardIndex;
use crate::starts::Starts;
use crate::storage::{Opened, Stores};
use crate::tar::TarArchive;

/// The shards of the data set that is checked, as one sequence of samples.
pub(super) struct Shards<'a> {
    pub(super) sources: &'a [Box<dyn SampleSource>],
    pub(super) labels: &'a Labels,
    pub(super) starts: Starts,
    /// Whether findings name the shard.
    are_named: bool,
}

/// The place of a sample.
pub(super) struct Place<'a> {
    pub(super) shard: usize,
    pub(super) source: &'a dyn SampleSource,
    /// Its number in the source.
    pub(super) index: u64,
}

impl<'a> Shards<'a> {
    pub(super) fn new(
        sources: &'a [Box<dyn SampleSource>],
        labels: &'a Labels,
        are_named: bool,
    ) -> Result<Self, ConvertError> {
        Ok(Self { sources, labels, starts: Starts::new(sources)?, are_named })
    }

    /// The place of sample `index`, which exists.
    pub(super) fn place(&self, index: u64) -> Place<'a> {
        let (shard, index) = self.starts.place(index);
        Place { shard, source: &*self.sources[shard], index }
    }

    /// The location of a shard, if findings name it.
    pub(super) fn named<'s>(&self, source: &'s dyn SampleSource) -> Option<&'s Location> {
        self.are_named.then(|| source.location())
    }
}

/// An open shard and what there is to say of it as a whole.
pub(super) struct Examined {
    pub(super) source: Box<dyn SampleSource>,
    pub(super) report: Report,
}

/// The findings on a shard as a whole.
#[derive(Default)]
pub(super) struct Report {
    pub(super) damage: Vec<ReadError>,
    pub(super) oddities: Vec<Oddity>,
}

impl Examined {
    /// Opens all shards; those that are too damaged for that are errors in the list.
    pub(super) fn open_each<L: AsRef<OsStr>>(
        stores: &Stores,
        locations: &[L],
    ) -> Result<Vec<Result<Self, ReadError>>, ReadError> {
        let or_damage = |opened| match opened {
            Err(error) if !ReadError::is_damage(&error) => Err(error),
            opened => Ok(opened),
        };
        let open = |opened| or_damage(Self::open(stores, opened));
        let open_shard = |index: &ShardIndex, number| {
            let examined = Self::open(stores, index.open_whole(stores, number)?);
            or_damage(examined.and_then(|examined| {
                index.check_count(number, examined.source.sample_count())?;
                Ok(examined)
            }))
        };
        let of_list = |source: Box<dyn SampleSource>| {
            let notes = source.notes().into_iter().filter(|note| *note != Note::NoSamples);
            let oddities = notes.map(Oddity::Note).collect();
            let report = Report { oddities, ..Report::default() };
            Ok(Ok(Self { source, report }))
        };
        open_each_shard(stores, locations, open, of_list, open_shard)
    }

    fn open(stores: &Stores, opened: Opened) -> Result<Self, ReadError> {
        let options = ReadOptions { verify: Verify::All, ..ReadOptions::default() };
        let mut report = Report::default();
        let source: Box<dyn SampleSource> = match Container::open(stores, opened, options)? {
            Container::Folder(folder) => {
                let notes = folder.notes().into_iter().filter(|note| *note != Note::NoSamples);
                report.oddities.extend(notes.map(Oddity::Note));
                folder
            }
            Container::Tar(archive) => {
                report.oddities = tar_oddities(&archive);
                if let Some(offset) = archive.find_header_behind_end()? {
                    let location = archive.location().clone();
                    let source = TarDefect::BehindEnd;
                    report.damage.push(ReadError::Tar { location, offset, source });
                }
                Box::new(archive)
            }
            Container::Tbl(file) => {
                for check in [TblFile::verify_metadata, TblFile::verify_index] {
                    match check(&file) {
                        Err(error) if error.is_damage() => report.damage.push(error),
                        other => other?,
                    }
                }
                Box::new(file)
            }
            Container::Other(source) => {
                let notes = source.notes().into_iter().filter(|note| *note != Note::NoSamples);
                report.oddities.extend(notes.map(Oddity::Note));
                match source.verify_structure() {
                    Err(error) if error.is_damage() => report.damage.push(error),
                    other => other?,
                }
                source
            }
            Container::Images(file) => {
                report.oddities.extend(file.notes().into_iter().map(Oddity::Note));
                Box::new(file)
            }
        };
        Ok(Self { source, report })
    }
}

fn tar_oddities(archive: &TarArchive) -> Vec<Oddity> {
    let mut oddities = Vec::new();
    if !archive.has_end_marker() {
        oddities.push(Oddity::NoEndMarker);
    }
    if let Some(offset) = archive.lone_zero_block() {
        oddities.push(Oddity::LoneZeroBlock { offset });
    }
    if let Some(offset) = archive.trailing_garbage() {
        oddities.push(Oddity::TrailingBytes { offset });
    }
    oddities.extend(archive.skipped().iter().cloned().map(Oddity::SkippedMember));
    oddities.extend(archive.file_notes().map(Oddity::Note));
    oddities
}
