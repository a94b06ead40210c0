//! Data sets: one or many stored sources as one numbered sequence of labelled samples.

mod blocks;
mod copied;
mod labels;
mod shards;
mod tokens;

pub use tokens::open_tokens;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::ops::Range;

use tbl_format::SampleFormat;
use tbl_io::{
    Entry, Facts, Field, LabelOrigin, Labels, Note, Opened, ReadError, SampleSource,
    SampleSourceExt, Stores, Target,
};
use tl_decode::{DecodeError, Defect, probe};
use tl_handoff::sync::Arc;

use crate::error::{EmptyError, PipelineError, SampleError, SampleFault};
use crate::panics::catch_panic;
use crate::placement::is_secret;
use crate::table::{self, Table, TableLabels, TableSource};
use crate::tokens::check_sources;
use labels::GIVEN_TO_TABLE;

/// Samples of one or more files or folders, in the given order.
///
/// ```no_run
/// use tl_pipeline::Dataset;
///
/// let dataset = Dataset::open(&["train-000.tar", "train-001.tar"])?;
/// println!("{} samples, {} classes", dataset.len(), dataset.class_names().len());
/// # Ok::<(), tl_pipeline::PipelineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dataset {
    shards: Vec<Arc<dyn SampleSource>>,
    /// The number of each shard's first sample, and the number of samples at the end.
    starts: Vec<u64>,
    labels: Arc<Labels>,
    /// The labels of a column, if the sources are tables.
    table_labels: TableLabels,
}

impl Dataset {
    /// Opens every path and joins the labels of all by class name ([`Labels`]). A TAR archive, a
    /// TBL file or a folder has samples, an IDV file or a TBF segment the rows of a [table](Table).
    /// The rows of a Parquet or Arrow file (feature `arrow`) are samples if it has images, and otherwise a
    /// table.
    /// The content of a file decides its kind; the name does not.
    ///
    /// # Errors
    /// The first path that cannot be opened, with its name; otherwise as for
    /// [`from_sources`](Self::from_sources).
    pub fn open<L: AsRef<OsStr>>(locations: &[L]) -> Result<Self, PipelineError> {
        Self::open_in(&stores(), locations)
    }

    /// As [`open`](Self::open), where URLs name data sets in `stores`. Paths and URLs may be
    /// joined. Batches do not depend on where the data is.
    ///
    /// # Errors
    /// As for [`open`](Self::open) and [`Stores::open`].
    pub fn open_in<L: AsRef<OsStr>>(
        stores: &Stores,
        locations: &[L],
    ) -> Result<Self, PipelineError> {
        let open = |opened| match opened {
            Opened::Folder(folder) => Ok::<Box<dyn SampleSource>, PipelineError>(folder),
            Opened::File(source) => match table::open(stores, &source)? {
                Some(table) => Ok(Box::new(TableSource::boxed(table)) as _),
                None => table::open_samples(stores, source),
            },
        };
        Self::from_sources(tbl_io::open_each(stores, &table::with_segments(locations)?, open)?)
    }

    /// Joins sources that are already open.
    ///
    /// # Errors
    /// If the labels of the sources cannot be joined ([`Labels::resolve`]), if they have more than
    /// 2^64 - 1 samples in all, or if tables have different columns or are mixed with other
    /// sources.
    pub fn from_sources(shards: Vec<Box<dyn SampleSource>>) -> Result<Self, PipelineError> {
        Self::from_shared(shards.into_iter().map(Arc::from).collect())
    }

    /// As [`from_sources`](Self::from_sources), for sources that other data sets may have too.
    pub(crate) fn from_shared(shards: Vec<Arc<dyn SampleSource>>) -> Result<Self, PipelineError> {
        let has_tables = table::check(&shards)?;
        check_sources(&shards)?;
        // The label column of a table depends on the settings.
        let labelled = if has_tables { &[] } else { &shards[..] };
        let labels = Labels::resolve(labelled)?;
        Self::with(shards, labels)
    }

    /// As [`from_shared`](Self::from_shared), with the labels that the sources have in other data
    /// sets: for each source its data set and its number there.
    pub(crate) fn from_labelled(
        shards: Vec<Arc<dyn SampleSource>>,
        parts: &[(&Self, usize)],
    ) -> Result<Self, PipelineError> {
        table::check(&shards)?;
        check_sources(&shards)?;
        let parts: Vec<(&Labels, usize)> =
            parts.iter().map(|&(dataset, number)| (&*dataset.labels, number)).collect();
        let labels = Labels::joined(&shards, &parts)?;
        Self::with(shards, labels)
    }

    fn with(shards: Vec<Arc<dyn SampleSource>>, labels: Labels) -> Result<Self, PipelineError> {
        let mut starts = vec![0u64];
        for shard in &shards {
            let start = starts[starts.len() - 1];
            let count = shard.sample_count();
            let end = start.checked_add(count).ok_or_else(|| ReadError::Limit {
                location: shard.location().clone(),
                what: "samples in the data set",
                limit: u64::MAX - start,
                need: count,
            })?;
            starts.push(end);
        }
        let labels = Arc::new(labels);
        Ok(Self { shards, starts, labels, table_labels: TableLabels::default() })
    }

    /// The same rows as tables: those of Parquet and Arrow files of images. `None` if a source has samples alone.
    ///
    /// # Errors
    /// If the files have different columns, or one of them cannot be read; for a data set with labels
    /// that the caller gave, which rows do not have.
    pub fn as_tables(&self) -> Result<Option<Self>, PipelineError> {
        let mut tables: Vec<Arc<dyn SampleSource>> = Vec::new();
        for shard in &self.shards {
            if TableSource::of(&**shard).is_some() {
                tables.push(Arc::clone(shard));
            } else if let Some(table) = table::of_samples(&**shard)? {
                tables.push(Arc::new(TableSource::boxed(table)));
            } else {
                return Ok(None);
            }
        }
        if self.has_given_labels() {
            return Err(PipelineError::Unusable(GIVEN_TO_TABLE.to_owned()));
        }
        Self::from_shared(tables).map(Some)
    }

    /// The tables, in order; none where the sources have samples.
    pub fn tables(&self) -> impl Iterator<Item = &dyn Table> {
        self.shards.iter().filter_map(|shard| TableSource::of(&**shard))
    }

    /// The table that is source number `shard`.
    pub(crate) fn table(&self, shard: usize) -> Option<&dyn Table> {
        TableSource::of(&**self.shards.get(shard)?)
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// True without samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fails for a data set without samples, such as an empty folder, with the kind of files that
    /// were looked for. Opening one does not fail, so that it can be examined.
    ///
    /// # Errors
    /// [`EmptyError::NoSamples`].
    pub fn require_samples(&self) -> Result<(), EmptyError> {
        if !self.is_empty() {
            return Ok(());
        }
        let first = self.shards.first().map(|shard| (shard.location().clone(), shard.kind()));
        Err(EmptyError::NoSamples { first, others: self.shards.len().saturating_sub(1) })
    }

    /// Fails for a data set without an image: by the formats that its containers state, and by the
    /// names and the first bytes of its first 64 samples. A damaged image has its name left. A
    /// source that cannot say so leaves it to its samples.
    ///
    /// # Errors
    /// [`EmptyError::Shards`] if the first source is a folder of archives, TBL files or shard indexes
    /// and has no image by its name; otherwise [`EmptyError::NoImages`].
    pub fn require_images(&self) -> Result<(), EmptyError> {
        const LOOKED_AT: u64 = 64;
        let is_readable = |format| matches!(format, SampleFormat::RawU8) || format.is_image();
        if self.tables().next().is_some() {
            return Ok(());
        }
        // Before the first archive is read as if it were a sample.
        if let Some(error) = self.shards.first().and_then(|shard| shards::in_folder(&**shard)) {
            return Err(error);
        }
        let mut bytes = Vec::new();
        for index in 0..self.len() {
            let facts = catch_panic(|| self.facts(index));
            let Ok(Ok(facts)) = facts else { return Ok(()) };
            if is_readable(facts.format) {
                return Ok(());
            }
            if index >= LOOKED_AT {
                continue;
            }
            let read = catch_panic(|| {
                self.read_into(index, &mut bytes)?;
                let entry = self.entry(index)?;
                Ok::<_, ReadError>(entry.key.map(|key| SampleFormat::from_file_name(&key)))
            });
            let Ok(Ok(named)) = read else { return Ok(()) };
            if named.is_some_and(is_readable) || is_image(&bytes) {
                return Ok(());
            }
        }
        let Some(shard) = self.shards.iter().find(|shard| shard.sample_count() > 0) else {
            return Ok(());
        };
        let key = shard.entry(0).ok().and_then(|entry| entry.key).map(Cow::into_owned);
        let location = shard.location().clone();
        Err(EmptyError::NoImages { location, key, sample_count: self.len() })
    }

    /// True if the containers have labels for samples; rows of a table get theirs later.
    pub(crate) fn is_labelled(&self) -> bool {
        self.labels.origin() != LabelOrigin::None
    }

    /// True if the caller gave labels to its samples.
    pub(crate) fn has_given_labels(&self) -> bool {
        self.labels.origin() == LabelOrigin::Given
    }

    /// The sources, in order.
    #[must_use]
    pub fn shards(&self) -> &[Arc<dyn SampleSource>] {
        &self.shards
    }

    /// The samples of source number `shard`, as numbers in this data set; `None` if that source
    /// does not exist.
    #[must_use]
    pub fn shard_samples(&self, shard: usize) -> Option<Range<u64>> {
        Some(*self.starts.get(shard)?..*self.starts.get(shard.checked_add(1)?)?)
    }

    /// The names of the classes, indexed by label; empty when the labels are plain numbers.
    #[must_use]
    pub fn class_names(&self) -> &[String] {
        let of_tables = self.table_labels.class_names();
        if of_tables.is_empty() { self.labels.class_names() } else { of_tables }
    }

    /// The names of the classes of boxes ([`Labels::box_class_names`]).
    #[must_use]
    pub fn box_class_names(&self) -> &[String] {
        self.labels.box_class_names()
    }

    /// Sample `index`'s source and its number there.
    ///
    /// # Errors
    /// [`ReadError::SampleOutOfRange`].
    pub fn locate(&self, index: u64) -> Result<(&dyn SampleSource, u64), ReadError> {
        let (shard, local) = self.place(index)?;
        Ok((&*self.shards[shard], local))
    }

    /// The number of sample `index`'s source, and its number there.
    pub(crate) fn place(&self, index: u64) -> Result<(usize, u64), ReadError> {
        let shard = self.shard_of(index)?;
        Ok((shard, index - self.starts[shard]))
    }

    /// The index entry of sample `index`, without reading its bytes.
    ///
    /// # Errors
    /// As for [`SampleSource::entry`].
    pub fn entry(&self, index: u64) -> Result<Entry<'_>, ReadError> {
        let (source, local) = self.locate(index)?;
        source.entry(local)
    }

    /// The facts of sample `index` without its name and label, which costs less.
    ///
    /// # Errors
    /// As for [`SampleSource::facts`].
    pub fn facts(&self, index: u64) -> Result<Facts, ReadError> {
        let (source, local) = self.locate(index)?;
        source.facts(local)
    }

    /// Appends to `id` what decides which bytes sample `index` has; false where that is not known.
    ///
    /// # Errors
    /// As for [`SampleSource::content_id`].
    pub(crate) fn content_id(&self, index: u64, id: &mut Vec<u8>) -> Result<bool, ReadError> {
        let (source, local) = self.locate(index)?;
        source.content_id(local, id)
    }

    /// Sample `index`'s label: stored with it, or that of its class folder. `None` past the end,
    /// and for a label that cannot be read.
    #[must_use]
    pub fn label(&self, index: u64) -> Option<i64> {
        let shard = self.shard_of(index).ok()?;
        let label = self.labels.label(shard, index - self.starts[shard]);
        label.or_else(|| self.table_labels.label(index))
    }

    /// The label of sample `index` of source number `shard`, for sources other than tables.
    pub(crate) fn shard_label(&self, shard: usize, index: u64) -> Option<i64> {
        self.labels.label(shard, index)
    }

    /// As [`label`](Self::label), but fails where the label cannot be read. A loader does what its
    /// [`OnError`](crate::OnError) says with such a sample.
    ///
    /// # Errors
    /// [`ReadError::Label`] with the file that holds the label, or the damage that hides it.
    pub fn try_label(&self, index: u64) -> Result<Option<i64>, ReadError> {
        let (shard, local) = self.place(index)?;
        let label = self.labels.try_label(&self.shards, shard, local)?;
        Ok(label.or_else(|| self.table_labels.label(index)))
    }

    /// The labels of all sources, joined by class name; rows of tables have none here.
    #[must_use]
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Oddities of the labels that are not errors: samples without a label among labelled ones,
    /// labels in files that differ from the class folders. Most often none.
    #[must_use]
    pub fn label_notes(&self) -> &[Note] {
        self.labels.notes()
    }

    /// Replaces `bytes` with the bytes of sample `index`.
    ///
    /// # Errors
    /// As for [`SampleSource::read_into`].
    pub fn read_into(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let (source, local) = self.locate(index)?;
        source.read_into(local, bytes)
    }

    /// The bytes of sample `index` in the mapped file, without copying or checking them.
    ///
    /// # Errors
    /// As for [`SampleSourceExt::view`].
    pub fn view(&self, index: u64) -> Result<Option<&[u8]>, ReadError> {
        let (source, local) = self.locate(index)?;
        source.view(local)
    }

    /// Converts the stored bytes of sample `index` into the sample itself, in place.
    ///
    /// # Errors
    /// As for [`SampleSourceExt::unpack`].
    pub fn unpack(&self, index: u64, bytes: &mut Vec<u8>) -> Result<(), ReadError> {
        let (source, local) = self.locate(index)?;
        source.unpack(local, bytes)
    }

    /// Replaces `row_index` with the row index stored for sample `index`, and returns whether it
    /// has one. It allocates only if the capacity of `row_index` is too small.
    ///
    /// # Errors
    /// As for [`SampleSourceExt::row_index_into`].
    pub fn row_index_into(&self, index: u64, row_index: &mut Vec<u8>) -> Result<bool, ReadError> {
        let (source, local) = self.locate(index)?;
        source.row_index_into(local, row_index)
    }

    /// Appends those sidecar fields of sample `index` to `fields` that `is_wanted` says when it is
    /// given a field's extension, without its leading dot, and its size in bytes.
    ///
    /// # Errors
    /// As for [`Labels::read_fields_where`].
    pub fn read_fields_where(
        &self,
        index: u64,
        is_wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        fields: &mut Vec<Field>,
    ) -> Result<(), ReadError> {
        let (shard, local) = self.place(index)?;
        self.labels.read_fields_where(&self.shards, shard, local, is_wanted, fields)
    }

    /// Checks all sidecar fields of sample `index`.
    ///
    /// # Errors
    /// As for [`SampleSourceExt::check_fields`].
    pub(crate) fn check_fields(&self, index: u64) -> Result<(), ReadError> {
        let (source, local) = self.locate(index)?;
        source.check_fields(local)
    }

    /// Whether a part of it is in a store.
    pub(crate) fn is_remote(&self) -> bool {
        self.shards().iter().any(|shard| shard.location().url().is_some())
    }

    /// Whether a part of it is read with credentials.
    pub(crate) fn has_secrets(&self) -> bool {
        self.shards().iter().any(|shard| is_secret(&**shard))
    }

    /// Tells the system that sample `index` will be read soon. Nothing happens past the end.
    pub fn will_need(&self, index: u64) {
        if let Ok((source, local)) = self.locate(index) {
            source.will_need(local);
        }
    }

    /// The error of sample `index` with this fault. It names the sample and its place as far as the
    /// source can be asked for them.
    pub fn sample_error(&self, index: u64, fault: SampleFault) -> SampleError {
        let shard = catch_panic(|| self.locate(index).map(|(source, _)| source.location().clone()));
        let (key, offset) = match catch_panic(|| self.entry(index)) {
            // The fault of a column has its own place.
            Ok(Ok(entry)) if matches!(fault, SampleFault::Column { .. }) => {
                (entry.key.map(Cow::into_owned), None)
            }
            Ok(Ok(entry)) => (entry.key.map(Cow::into_owned), Some(entry.offset)),
            Ok(Err(ReadError::Sample { key, .. })) => (key, None),
            Ok(Err(_)) | Err(_) => (None, None),
        };
        let shard = shard.ok().and_then(Result::ok).unwrap_or_default();
        SampleError { index, key, shard, offset, fault, attempts: 1 }
    }

    /// The number of sample `index`'s source.
    pub(crate) fn shard_of(&self, index: u64) -> Result<usize, ReadError> {
        // Shards without samples start where the next one does, and are passed over.
        let shard = self.starts.partition_point(|&start| start <= index) - 1;
        if shard < self.shards.len() {
            return Ok(shard);
        }
        let location = self.shards.last().map(|shard| shard.location().clone()).unwrap_or_default();
        Err(ReadError::SampleOutOfRange { location, index, sample_count: self.len() })
    }
}

/// No store of objects, and all formats of containers: with the feature `arrow` Parquet and Arrow files.
#[must_use]
pub fn stores() -> Stores {
    let stores = Stores::new();
    #[cfg(feature = "arrow")]
    let stores = tl_arrow::add_to(stores);
    stores
}

/// Parquet files as the target of conversions; `None` without the feature `arrow`.
#[must_use]
pub const fn parquet_target() -> Option<Target> {
    #[cfg(feature = "arrow")]
    return Some(tl_arrow::PARQUET);
    #[cfg(not(feature = "arrow"))]
    None
}

/// Whether bytes are an image, by their front: a damaged one, or one that is refused by name, too.
fn is_image(bytes: &[u8]) -> bool {
    !matches!(probe(bytes), Err(DecodeError::Malformed(Defect::UnknownFormat { .. })))
}
