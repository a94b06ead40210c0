//! The contents of a data set in figures, found by reading all of its samples.

use std::collections::BTreeMap;

use tbl_format::SampleFormat;
use tbl_io::Entry;
use tl_decode::{DecodeError, Defect, probe};
use tl_pipeline::{
    DatasetView, ErrorBudget, Loader, LoaderConfig, OnError, PipelineError, SampleError,
    SampleFault, Shuffle, Work,
};
use tl_transform::{Channels, PixelType, Recipe};

use crate::moments::Moments;

/// Damaged samples that are described; all are counted.
const MOST_DESCRIBED: usize = 100;

/// Counts of a view: formats, sizes and damage, and on request the moments of its pixels.
///
/// Memory does not grow with the number of samples.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Bytes of the samples that a format counts.
    pub bytes: u64,
    /// The samples of each format, by its name.
    pub formats: BTreeMap<String, u64>,
    /// Widths of images as stored.
    pub widths: Sides,
    /// Heights of images as stored.
    pub heights: Sides,
    /// The first damaged samples: their numbers and errors.
    pub damaged: Vec<(u64, String)>,
    /// The number of damaged samples.
    pub damaged_count: u64,
    /// The moments of the pixels of good images.
    pub moments: Option<Moments>,
}

/// Lengths of sides with their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    counts: BTreeMap<u32, u64>,
}

impl Sides {
    fn add(&mut self, side: u32) {
        *self.counts.entry(side).or_default() += 1;
    }

    /// The least length, the median (the lower one of two) and the greatest; none without sides.
    #[must_use]
    pub fn summary(&self) -> Option<(u32, u32, u32)> {
        let (least, _) = self.counts.first_key_value()?;
        let (most, _) = self.counts.last_key_value()?;
        let half = self.counts.values().sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let median = self.counts.iter().find(|(_, count)| {
            seen += **count;
            seen >= half
        });
        Some((*least, *median?.0, *most))
    }
}

impl Survey {
    /// The survey of a view: one pass reads all samples with their headers, and with `pixels`
    /// another one decodes them to that type and those channels.
    ///
    /// Samples that cannot be read, or have no header though the container calls them images, are
    /// damaged, and in no other figure; others without a header are of format `other`. With `pixels`,
    /// images that cannot be decoded are damaged too, next to the figures that their headers have.
    /// A view without samples has a survey of zeros.
    ///
    /// # Errors
    /// Those of a loader; damaged samples are none.
    pub fn of(
        view: &DatasetView,
        pixels: Option<(PixelType, Channels)>,
    ) -> Result<Self, PipelineError> {
        let mut survey = Self::default();
        if view.is_empty() {
            return Ok(survey);
        }
        let loader = Loader::new(view.clone(), config(Work::Bytes))?;
        for batch in loader.epoch(0) {
            let batch = batch?;
            for (row, &index) in batch.indices().iter().enumerate() {
                if let Some(sample) = batch.sample(row) {
                    survey.add(view, index, sample.bytes);
                }
            }
        }
        survey.take_damage(&loader);
        if let Some((pixels, channels)) = pixels.filter(|_| !survey.widths.counts.is_empty()) {
            let work = Work::Images(Recipe::decode_to(pixels, channels));
            let loader = Loader::new(view.clone(), config(work))?;
            survey.moments = Some(Moments::in_epoch(&loader, pixels, channels)?);
            // Those of the first pass are among those that cannot be decoded.
            survey.damaged_count = 0;
            survey.damaged.clear();
            survey.take_damage(&loader);
        }
        Ok(survey)
    }

    fn add(&mut self, view: &DatasetView, index: u64, bytes: &[u8]) {
        let dataset = view.dataset();
        // Its bytes were read, so there is one.
        let entry = dataset.entry(index).ok();
        let format = match ImageHeader::of(entry.as_ref(), bytes) {
            Ok(Some(header)) => {
                self.widths.add(header.width);
                self.heights.add(header.height);
                header.format
            }
            Ok(None) => OTHER_FORMAT.to_owned(),
            Err(error) => {
                self.damage(&dataset.sample_error(index, SampleFault::from(error)));
                return;
            }
        };
        self.bytes += bytes.len() as u64;
        *self.formats.entry(format).or_default() += 1;
    }

    fn damage(&mut self, error: &SampleError) {
        self.damaged_count += 1;
        if self.damaged.len() < MOST_DESCRIBED {
            self.damaged.push((error.index, error.to_string()));
        }
    }

    fn take_damage(&mut self, loader: &Loader) {
        let audit = loader.audit();
        audit.iter().for_each(|entry| self.damage(&entry.error));
        // The audit lists the first ones.
        let all = loader.stats().skipped;
        self.damaged_count += all.saturating_sub(audit.len() as u64);
    }
}

/// The format of samples that are not images.
pub(crate) const OTHER_FORMAT: &str = "other";

/// The statements of an image's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageHeader {
    /// In lower case.
    pub(crate) format: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl ImageHeader {
    /// That of a sample; `None` for data that neither is an image nor is called one.
    pub(crate) fn of(entry: Option<&Entry<'_>>, bytes: &[u8]) -> Result<Option<Self>, DecodeError> {
        let stated = entry.map_or(SampleFormat::Unknown, |entry| entry.format);
        let says_image = stated.is_image();
        if let Some(entry) = entry.filter(|_| stated == SampleFormat::RawU8) {
            let format = stated.to_string().to_lowercase();
            return Ok(Some(Self { format, width: entry.width, height: entry.height }));
        }
        match probe(bytes) {
            Ok(info) => {
                let format = info.format.to_string().to_lowercase();
                Ok(Some(Self { format, width: info.width, height: info.height }))
            }
            Err(DecodeError::Malformed(Defect::UnknownFormat { .. })) if !says_image => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads all samples once, in order, and leaves out bad ones.
fn config(work: Work) -> LoaderConfig {
    LoaderConfig {
        sampler: Shuffle::None.into(),
        batch_size: 16,
        prefetch_next_epoch: false,
        on_error: OnError::Skip,
        error_budget: ErrorBudget::UNLIMITED,
        ..LoaderConfig::new(work)
    }
}
