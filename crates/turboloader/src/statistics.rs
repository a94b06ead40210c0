//! Statistics of samples whose parts can be added in any order: each figure is a whole number.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use tbl_io::{ConvertError, ReadError, announce_after, is_interrupted};
use tl_pipeline::Dataset;

use crate::moments::{MOST_CHANNELS, add_whole, whole};
use crate::prepare::Rasterize;
use crate::survey::{ImageHeader, OTHER_FORMAT};

/// Counts of samples, and sums over the pixels of their images as 8-bit RGB.
///
/// Those of parts of a data set add up to those of the whole, whatever the order: the result is equal
/// to the bit. As JSON, sums are decimal texts, because they exceed the numbers that some readers have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Stored bytes of the samples that are counted.
    pub bytes: u64,
    /// Images that were decoded.
    pub images: u64,
    /// Their pixels.
    pub pixels: u64,
    /// The sum of red, green and blue.
    pub sums: [WholeSum; 3],
    /// The sum of their squares.
    pub squares: [WholeSum; 3],
    /// The samples of each format; those that are not images are `other`.
    pub formats: BTreeMap<String, u64>,
    /// The samples of each class, by its name, or by its number if classes have no names.
    pub classes: BTreeMap<String, u64>,
    /// Samples without a label.
    pub unlabelled: u64,
    /// The images of each size, such as `640x480`.
    pub image_sizes: BTreeMap<String, u64>,
    /// Samples by their stored bytes: at most as many as the key, which is a power of two, and more than
    /// half of it.
    pub sample_bytes: BTreeMap<u64, u64>,
}

/// A sum that is a decimal text in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WholeSum(pub u128);

impl Serialize for WholeSum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WholeSum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str(&text).map(Self).map_err(de::Error::custom)
    }
}

/// A sample that cannot be counted.
#[derive(Clone, Copy)]
pub(crate) struct Uncounted<'a> {
    pub(crate) index: u64,
    pub(crate) reason: &'a dyn fmt::Display,
}

impl Statistics {
    /// Those of all samples of a data set, each of which is read once, on this thread. Samples that
    /// cannot be read or decoded go to `on_damage` and are in no figure.
    ///
    /// # Errors
    /// The fault of the system, not of the data; [`ConvertError::Stopped`].
    pub(crate) fn of(
        dataset: &Dataset,
        on_damage: &mut dyn FnMut(Uncounted<'_>),
    ) -> Result<Self, ConvertError> {
        let mut statistics = Self::default();
        let mut images = Rasterize::new(None);
        let mut bytes = Vec::new();
        for index in 0..dataset.len() {
            if is_interrupted() {
                return Err(ConvertError::Stopped);
            }
            let (source, local) = dataset.locate(index)?;
            announce_after(source, local);
            match statistics.add(dataset, index, &mut images, &mut bytes) {
                Ok(()) => {}
                Err(Fault::Read(error)) if !error.is_damage() => return Err(error.into()),
                Err(Fault::Read(error)) => {
                    on_damage(Uncounted { index, reason: &error.detail() });
                }
                Err(Fault::Image(error)) => on_damage(Uncounted { index, reason: &error }),
            }
        }
        Ok(statistics)
    }

    fn add(
        &mut self,
        dataset: &Dataset,
        index: u64,
        images: &mut Rasterize,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let entry = dataset.entry(index)?;
        dataset.read_into(index, bytes)?;
        let label = dataset.try_label(index)?;
        let header = ImageHeader::of(Some(&entry), bytes).map_err(Box::from)?;
        if let Some(header) = &header {
            let pixels = images.pixels(&entry, bytes)?;
            self.images += 1;
            self.pixels += pixels.len() as u64 / 3;
            let mut own = [[0; 2]; MOST_CHANNELS];
            add_whole::<3, 1>(&mut own, pixels, |[value]| value.into());
            for (channel, [sum, squares]) in own.into_iter().take(3).enumerate() {
                self.sums[channel].0 += sum;
                self.squares[channel].0 += squares;
            }
            let size = format!("{}x{}", header.width, header.height);
            *self.image_sizes.entry(size).or_default() += 1;
        }
        self.bytes += bytes.len() as u64;
        let format = header.map_or_else(|| OTHER_FORMAT.to_owned(), |header| header.format);
        *self.formats.entry(format).or_default() += 1;
        *self.sample_bytes.entry((bytes.len() as u64).next_power_of_two()).or_default() += 1;
        match label {
            None => self.unlabelled += 1,
            Some(label) => {
                let name = usize::try_from(label).ok();
                let name = name.and_then(|label| dataset.class_names().get(label).cloned());
                *self.classes.entry(name.unwrap_or_else(|| label.to_string())).or_default() += 1;
            }
        }
        Ok(())
    }

    /// The mean of red, green and blue, from 0 to 1; none without pixels.
    #[must_use]
    pub fn mean(&self) -> Option<[f64; 3]> {
        self.figures().map(|figures| figures.map(|(mean, _)| mean))
    }

    /// The standard deviation of red, green and blue, in the same units; none without pixels.
    #[must_use]
    pub fn deviation(&self) -> Option<[f64; 3]> {
        self.figures().map(|figures| figures.map(|(_, deviation)| deviation))
    }

    fn figures(&self) -> Option<[(f64, f64); 3]> {
        let figure = |channel: usize| {
            whole([self.sums[channel].0, self.squares[channel].0], self.pixels, 255.0)
        };
        (self.pixels > 0).then(|| [0, 1, 2].map(figure))
    }
}

impl AddAssign<&Self> for Statistics {
    /// Adds those of other samples.
    fn add_assign(&mut self, other: &Self) {
        // Those of a record that somebody wrote may not fit.
        let add = |own: &mut u64, other| *own = own.saturating_add(other);
        add(&mut self.bytes, other.bytes);
        add(&mut self.images, other.images);
        add(&mut self.pixels, other.pixels);
        add(&mut self.unlabelled, other.unlabelled);
        for channel in 0..3 {
            let add = |own: &mut WholeSum, other: WholeSum| own.0 = own.0.saturating_add(other.0);
            add(&mut self.sums[channel], other.sums[channel]);
            add(&mut self.squares[channel], other.squares[channel]);
        }
        add_counts(&mut self.formats, &other.formats);
        add_counts(&mut self.classes, &other.classes);
        add_counts(&mut self.image_sizes, &other.image_sizes);
        add_counts(&mut self.sample_bytes, &other.sample_bytes);
    }
}

fn add_counts<K: Ord + Clone>(counts: &mut BTreeMap<K, u64>, others: &BTreeMap<K, u64>) {
    for (key, count) in others {
        let own = counts.entry(key.clone()).or_default();
        *own = own.saturating_add(*count);
    }
}

/// The reason why a sample cannot be counted.
enum Fault {
    Read(ReadError),
    Image(Box<dyn std::error::Error + Send + Sync>),
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<Box<dyn std::error::Error + Send + Sync>> for Fault {
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self::Image(error)
    }
}
