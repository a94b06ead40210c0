//! Times in the fields of samples: parts of videos, and clips at given times.

use sha2::{Digest, Sha256};

use super::{ClipSampling, ClipStart};
use crate::dataset::Dataset;
use crate::error::{ClipFault, PipelineError, SampleFault};
use crate::fields::Fields;

/// Bytes of the largest field that is read as a time.
const MOST_BYTES: usize = 64;

/// Fields of samples that hold times of their videos in seconds: columns of a manifest, of JSON Lines
/// or of a Parquet file, or files next to the videos. Default none.
///
/// Several samples can be parts of one file, whose index they share.
///
/// ```
/// use tl_pipeline::{ClipColumns, ClipSampling, ClipWork};
/// use tl_transform::Recipe;
///
/// // Rows such as `walk.mp4,2.5,4.0` of a manifest with the columns `path`, `from` and `to`.
/// let columns = ClipColumns {
///     from: Some("from".into()),
///     to: Some("to".into()),
///     ..ClipColumns::default()
/// };
/// let clips = ClipWork::new(Recipe::imagenet_train(224)?, ClipSampling::default());
/// let clips = ClipWork { columns, ..clips };
/// # let _ = clips;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClipColumns {
    /// The time at which the sample begins: its first frame is the one on display then. Default
    /// `None`: the first frame of the video.
    pub from: Option<String>,
    /// The time at which the sample ends: its last frame is the last one that begins before. Default
    /// `None`: the last frame of the video.
    pub to: Option<String>,
    /// The time at which the clip begins, instead of [`ClipSampling::start`]. Default `None`.
    pub at: Option<String>,
}

/// The times of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
    pub(crate) at: Option<f64>,
}

impl ClipColumns {
    fn all(&self) -> [&Option<String>; 3] {
        let Self { from, to, at } = self;
        [from, to, at]
    }

    /// True if samples have no times.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The fields as those that are read of a sample.
    pub(crate) fn fields(&self) -> Fields {
        let bytes = self.all().into_iter().flatten().cloned().collect();
        Fields { bytes, ..Fields::default() }
    }

    pub(super) fn check(&self, sampling: &ClipSampling) -> Result<(), PipelineError> {
        let ClipSampling { clips, start, .. } = *sampling;
        let fail = |text: String| Err(PipelineError::Unusable(text));
        if let Some(at) = &self.at
            && clips > 1
        {
            return fail(format!(
                "{clips} clips of a sample start at the time in column `{at}` and would have the same \
                 frames: make one clip, or leave the column out"
            ));
        }
        if start == ClipStart::Rows && !self.is_empty() {
            return fail(
                "rows of LeRobot name their frames: leave out columns of times".to_owned(),
            );
        }
        Ok(())
    }

    /// The times of a sample, whose fields together have at most `limit` bytes.
    pub(crate) fn read(
        &self,
        dataset: &Dataset,
        sample: u64,
        limit: u64,
    ) -> Result<Times, SampleFault> {
        if self.is_empty() {
            return Ok(Times::default());
        }
        let mut stored = self.fields().read_bytes_within(dataset, sample, limit)?.into_iter();
        // In the order of `all`.
        let mut next = |column: &Option<String>| -> Result<Option<f64>, SampleFault> {
            let Some(column) = column else { return Ok(None) };
            Ok(Some(seconds(column, stored.next().flatten())?))
        };
        Ok(Times { from: next(&self.from)?, to: next(&self.to)?, at: next(&self.at)? })
    }

    /// Adds the names, if there are any.
    pub(crate) fn hash(&self, hash: &mut Sha256) {
        if self.is_empty() {
            return;
        }
        for column in self.all() {
            hash.update(column.as_ref().map_or(u64::MAX, |name| name.len() as u64).to_le_bytes());
            hash.update(column.as_deref().unwrap_or_default());
        }
    }
}

/// The time that a field states.
fn seconds(column: &str, bytes: Option<Vec<u8>>) -> Result<f64, ClipFault> {
    let column = || column.to_owned();
    let bytes = bytes.ok_or_else(|| ClipFault::NoTime { column: column() })?;
    let text = std::str::from_utf8(bytes.get(..bytes.len().min(MOST_BYTES)).unwrap_or_default());
    let time = text.ok().filter(|_| bytes.len() <= MOST_BYTES);
    let time = time.and_then(|text| text.trim().parse().ok());
    time.filter(|time: &f64| time.is_finite()).ok_or_else(|| {
        let found = String::from_utf8_lossy(bytes.get(..MOST_BYTES).unwrap_or(&bytes));
        ClipFault::Time { column: column(), found: found.escape_debug().to_string() }
    })
}
