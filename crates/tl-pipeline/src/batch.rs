//! Batches: shared views of a published slab.

mod annotations;

use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};

use tbl_io::ReadError;
use tl_cuda::PinnedUse;
use tl_decode::{Image, PixelType};
use tl_handoff::permits::{HeldBatch, Permit};
use tl_handoff::pool::Lease;
use tl_handoff::slab::FieldPointers;
use tl_handoff::sync::Arc;
use tl_transform::{Dtype, Mixing};
use zerocopy::FromBytes;

use crate::batching::PaddingStats;
use crate::collate::Collated;
use crate::device_batch::DeviceBatch;
use crate::error::PipelineError;
use crate::fields::{KeypointLayout, MaskType, RowFields};
use crate::layout::{BatchLayout, ImageSpec, RowKind};
use crate::row::RowExtras;
use crate::table::{ColumnNumber, ColumnSpec, ColumnView};
use crate::tokens::TokenRow;

/// Images of a batch that were mixed with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    /// The rows of a mixing group in the batch.
    pub rows: Range<usize>,
    /// The mixing of these rows.
    pub mixing: Mixing,
}

/// The dimensions of a batch's images.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Dimensions {
    sizes: [usize; 6],
    rank: usize,
}

impl Deref for Dimensions {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.sizes[..self.rank]
    }
}

impl fmt::Debug for Dimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Samples with their labels and indices, in the order of the epoch.
///
/// A batch is a view: cloning it is cheap, and its memory is reused for a later batch only when the
/// last clone is gone. Images, labels and indices start at addresses divisible by 64.
///
/// Images of one size are contiguous in [`images`](Self::images). Batches of raw bytes or of images
/// in their own sizes have [`sample`](Self::sample) for each row.
#[derive(Clone)]
pub struct Batch {
    lease: Arc<Lease<RowExtras>>,
    number: u64,
    len: usize,
    spec: Option<ImageSpec>,
    mixed: Vec<Mixed>,
    left_out: Vec<usize>,
    padding: PaddingStats,
    mask: Option<MaskType>,
    columns: Arc<[ColumnSpec]>,
    keypoints: Arc<[KeypointLayout]>,
    rows: RowKind,
    collated: Option<Collated>,
    device: Option<Arc<DeviceBatch>>,
    pinned: Option<Arc<PinnedUse>>,
    /// Declared after the lease, which is dropped first.
    held: Option<Arc<HeldBatch>>,
}

/// One sample of a batch whose samples differ in size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'a> {
    /// Width in pixels; 0 for bytes that were not decoded.
    pub width: u32,
    /// Height in pixels; 0 for bytes that were not decoded.
    pub height: u32,
    /// Channels of a pixel, 1, 3 or 4; 0 for bytes that were not decoded.
    pub channels: u32,
    /// The type of its numbers.
    pub pixels: PixelType,
    /// Rows without padding, or the stored bytes.
    pub bytes: &'a [u8],
}

impl Batch {
    pub(crate) fn new(
        lease: Arc<Lease<RowExtras>>,
        number: u64,
        len: usize,
        layout: &BatchLayout,
        mixed: Vec<Mixed>,
        left_out: Vec<usize>,
        held: Option<Arc<HeldBatch>>,
    ) -> Self {
        let &BatchLayout { spec, padding, mask, rows, .. } = layout;
        let columns = Arc::clone(&layout.columns);
        let keypoints = Arc::clone(&layout.keypoints);
        let collated = None;
        Self {
            lease,
            number,
            len,
            spec,
            mixed,
            left_out,
            padding,
            mask,
            columns,
            keypoints,
            rows,
            collated,
            device: None,
            pinned: None,
            held,
        }
    }

    /// The same batch with its copy on a device.
    pub(crate) fn with_device(self, device: Option<DeviceBatch>) -> Self {
        let spec = device.as_ref().map_or(self.spec, |device| device.spec);
        Self { device: device.map(Arc::new), spec, ..self }
    }

    /// The same batch with its use by the program, in pinned memory.
    pub(crate) fn with_pinned(self, pinned: Option<PinnedUse>) -> Self {
        Self { pinned: pinned.map(Arc::new), ..self }
    }

    /// The use of a batch that is in pinned memory, for [`Delivery::Pinned`](crate::Delivery), which
    /// takes the streams that copy from it.
    #[must_use]
    pub fn pinned(&self) -> Option<&Arc<PinnedUse>> {
        self.pinned.as_ref()
    }

    /// The copy of the batch on a device, for
    /// [`Delivery::Device`](crate::Delivery::Device). It is under way, and readers are to be ordered
    /// after it ([`DeviceBuffer::hold_back`](crate::DeviceBuffer::hold_back)).
    #[must_use]
    pub fn device(&self) -> Option<&Arc<DeviceBatch>> {
        self.device.as_ref()
    }

    /// The same batch with the result of the user's code.
    pub(crate) fn with_collated(self, collated: Collated) -> Self {
        Self { collated: Some(collated), ..self }
    }

    /// The same in the hands of the consumer.
    pub(crate) fn received(self) -> Self {
        if let (Some(permit), Some(held)) = (self.lease.permit(), &self.held) {
            permit.receive(held);
        }
        self
    }

    /// The permit of its memory.
    pub(crate) fn permit(&self) -> Option<Arc<Permit>> {
        self.lease.permit().cloned()
    }

    /// Counts the batch as held until it is dropped.
    pub(crate) fn held(&self) -> Option<Arc<HeldBatch>> {
        self.held.clone()
    }

    /// The result of [`LoaderConfig::collate`](crate::LoaderConfig::collate), if it is a `T`.
    #[must_use]
    pub fn collated<T: Any>(&self) -> Option<&T> {
        self.collated.as_ref()?.downcast_ref()
    }

    /// The batch's number in its epoch, from 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The number of samples: 0 only in a batch that was requested [by its
    /// number](crate::Loader::batch).
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without samples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The samples' labels; -1 for a sample without one.
    #[must_use]
    pub fn labels(&self) -> &[i64] {
        self.lease.labels(self.len)
    }

    /// The labels in 32 bits, or `None` when one of them needs more.
    #[must_use]
    pub fn labels_i32(&self) -> Option<&[i32]> {
        let fit = self.labels().iter().all(|&label| i32::try_from(label).is_ok());
        fit.then(|| self.lease.short_labels(self.len))
    }

    /// True for each row that counts. The rows that fill up the last batch for
    /// [`Tail::Pad`](crate::Tail::Pad) are false, because their samples are in another batch of the
    /// epoch too; metrics over the valid rows are exact.
    #[must_use]
    pub fn valid(&self) -> &[bool] {
        self.lease.valid(self.len)
    }

    /// Height and width of each sample's image, without what was added around it to give the batch
    /// one size; 0 for bytes that were not decoded.
    #[must_use]
    pub fn sizes(&self) -> &[[u32; 2]] {
        self.lease.sizes(self.len)
    }

    /// The images that were mixed with each other, and their weights; the others are the results of
    /// the recipe's operations on images. [`labels`](Self::labels) and [`indices`](Self::indices)
    /// are those before mixing.
    #[must_use]
    pub fn mixed(&self) -> &[Mixed] {
        &self.mixed
    }

    /// The rows that [`OnError::Skip`](crate::OnError::Skip) left out, ascending, as they would have
    /// been numbered with all there: so row 0 of the batch stands for row 1 where this is `[0]`.
    #[must_use]
    pub fn left_out(&self) -> &[usize] {
        &self.left_out
    }

    /// One number per sample and class, sample by sample: labels like those of torchvision's `MixUp`
    /// and `CutMix`. Labels of mixed images are mixed with [`Mixing::weights`]; otherwise the label's
    /// class has 1.
    ///
    /// # Errors
    /// [`PipelineError::Label`] for the first label outside `0..num_classes`,
    /// [`PipelineError::OutOfMemory`].
    pub fn soft_labels(&self, num_classes: usize) -> Result<Vec<f32>, PipelineError> {
        let classes = self.labels().iter().zip(self.indices()).map(|(&label, &index)| {
            let class = usize::try_from(label).ok().filter(|class| *class < num_classes);
            class.ok_or(PipelineError::Label { index, label, num_classes })
        });
        let classes = classes.collect::<Result<Vec<usize>, _>>()?;
        let need = classes.len().checked_mul(num_classes);
        let bytes = need.and_then(|need| need.checked_mul(size_of::<f32>()));
        let bytes = bytes.map_or(u64::MAX, |bytes| bytes as u64);
        let need = need.ok_or(PipelineError::OutOfMemory { bytes })?;
        let mut soft = Vec::new();
        soft.try_reserve_exact(need).map_err(|_| PipelineError::OutOfMemory { bytes })?;
        soft.resize(need, 0.0);
        let num_classes = num_classes.max(1);
        for (&class, soft) in classes.iter().zip(soft.chunks_exact_mut(num_classes)) {
            soft[class] = 1.0;
        }
        let size = self.spec.map_or((1, 1), |spec| (spec.width, spec.height));
        for Mixed { rows, mixing } in self.mixed() {
            let weights = mixing.weights(size);
            let classes = &classes[rows.clone()];
            let soft = &mut soft[rows.start * num_classes..rows.end * num_classes];
            soft.fill(0.0);
            for (row, soft) in soft.chunks_exact_mut(num_classes).enumerate() {
                // The images before come first, as in torch's sum, and each weight is an `f32`.
                for (back, weight) in weights.into_iter().enumerate().rev() {
                    let source = (row + back * (classes.len() - 1)) % classes.len();
                    #[expect(clippy::cast_possible_truncation, reason = "torch's weights are f32")]
                    let weight = weight as f32;
                    soft[classes[source]] += weight;
                }
            }
        }
        Ok(soft)
    }

    /// The samples' numbers in the data set.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        self.lease.indices(self.len)
    }

    /// The layout of the images, or `None` if the samples differ in size and are not padded. The
    /// size of padded images is that of this batch.
    #[must_use]
    pub fn spec(&self) -> Option<ImageSpec> {
        self.spec
    }

    /// The padding around the images, zeros without padding. Samples that were left out are counted
    /// too, because the batch was planned with them.
    #[must_use]
    pub fn padding(&self) -> PaddingStats {
        self.padding
    }

    /// The dimensions of [`images`](Self::images), batch first, in the order of the layout. There
    /// are four, and up to two more after the first: where a sample becomes several images or clips
    /// their number, and for clips that of their frames.
    #[must_use]
    pub fn shape(&self) -> Option<Dimensions> {
        let mut sizes = [self.len; 6];
        let mut rank = 1;
        for (size, of_sample) in sizes.iter_mut().skip(1).zip(self.spec?.dimensions()) {
            *size = of_sample;
            rank += 1;
        }
        Some(Dimensions { sizes, rank })
    }

    /// The images in row order and the machine's byte order; empty if the samples differ in size, and
    /// if a [device](crate::Delivery::Device) has decoded or converted them, which alone has them then.
    #[must_use]
    pub fn images(&self) -> &[u8] {
        let is_here = !self.device.as_ref().is_some_and(|device| device.is_elsewhere);
        if self.spec.is_some() && is_here { self.lease.images(self.len) } else { &[] }
    }

    /// The descriptions of a table's columns.
    pub(crate) fn column_specs(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// The numbers of such a column.
    pub(crate) fn column_bytes(&self, column: usize) -> &[u8] {
        self.lease.column(self.len, column)
    }

    /// The name of sample `row`; `None` if it has none, if [`Fields::keys`](crate::Fields::keys) is
    /// not set, or past the last row. It is not always UTF-8.
    #[must_use]
    pub fn key(&self, row: usize) -> Option<&[u8]> {
        self.fields(row)?.key.as_deref()
    }

    /// The bytes of sample `row`'s sidecar file number `field` of
    /// [`Fields::bytes`](crate::Fields::bytes), or of its value in that column of a table, such as a
    /// text; `None` where it has none.
    #[must_use]
    pub fn bytes(&self, field: usize, row: usize) -> Option<&[u8]> {
        self.fields(row)?.bytes.get(field)?.as_deref()
    }

    fn fields(&self, row: usize) -> Option<&RowFields> {
        (row < self.len).then(|| &self.lease.extra(row).fields)
    }

    /// The images as numbers, if that is what they are.
    #[must_use]
    pub fn images_f32(&self) -> Option<&[f32]> {
        let is_here = self.device.as_ref().is_none_or(|device| !device.is_elsewhere);
        let numbers = self.spec?.output.dtype == Dtype::F32 && is_here;
        numbers.then(|| {
            <[f32]>::ref_from_bytes(self.images()).expect("a slab is aligned, an image whole")
        })
    }

    /// Sample `row` of a batch whose samples differ in size; `None` past the last row, for images
    /// of one size, and for columns of numbers. In a batch of [views](crate::Work::Views) it is the
    /// sample in its file, and `None` if the file was cut short since.
    #[must_use]
    pub fn sample(&self, row: usize) -> Option<Sample<'_>> {
        if self.spec.is_some() || self.rows != RowKind::Samples || row >= self.len {
            return None;
        }
        let RowExtras { image, view_of, .. } = self.lease.extra(row);
        if let Some(dataset) = view_of {
            let bytes = dataset.view(self.indices()[row]).ok()??;
            let pixels = PixelType::U8;
            return Some(Sample { width: 0, height: 0, channels: 0, pixels, bytes });
        }
        let Image { width, height, channels, pixels, .. } = *image;
        let channels = if width == 0 { 0 } else { channels.into() };
        Some(Sample { width, height, channels, pixels, bytes: &image.data })
    }

    /// Pointers to the fields, for passing them on without copying.
    #[must_use]
    pub fn pointers(&self) -> FieldPointers {
        self.lease.pointers()
    }

    /// Checks that the files under a batch of [views](crate::Work::Views) still have its samples. A
    /// success after reading them proves that they were not cut short before.
    ///
    /// # Errors
    /// [`ReadError::ChangedWhileOpen`] for the first sample that its file does not have any more, and
    /// [`ReadError::Io`] if a page of an unchanged file could not be read.
    pub fn check_views(&self) -> Result<(), ReadError> {
        for (row, &index) in self.indices().iter().enumerate() {
            if let Some(dataset) = &self.lease.extra(row).view_of {
                dataset.view(index)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("number", &self.number)
            .field("len", &self.len)
            .field("spec", &self.spec)
            .field("indices", &self.indices())
            .field("labels", &self.labels())
            .finish_non_exhaustive()
    }
}

impl Batch {
    /// The columns of numbers. For a table their order is that of
    /// [`Columns::columns`](crate::Columns::columns), followed by `features` and the neighbours; for
    /// samples they are the further images of [`Fields::images`](crate::Fields::images), then
    /// [`Fields::values`](crate::Fields::values).
    pub fn columns(&self) -> impl ExactSizeIterator<Item = ColumnView<'_>> {
        (0..self.column_specs().len()).map(|column| self.column_view(column))
    }

    /// The column called `name`.
    #[must_use]
    pub fn column_named(&self, name: &str) -> Option<ColumnView<'_>> {
        let place = self.column_specs().iter().position(|spec| spec.name == name)?;
        Some(self.column_view(place))
    }

    /// The tokens of row `row`; `None` past the last row, and where batches have no tokens of this
    /// type. The column `tokens` has them all; that of windows has each row's last target after it.
    #[must_use]
    pub fn token_row<N: ColumnNumber>(&self, row: usize) -> Option<TokenRow<'_, N>> {
        let row_of = |column: usize| {
            let length = self.columns.get(column)?.shape.iter().product::<usize>().max(1);
            self.column_view(column).numbers::<N>()?.chunks_exact(length).nth(row)
        };
        match self.rows {
            RowKind::Samples | RowKind::Table => None,
            RowKind::Windows { targets: true } => {
                let all = row_of(0)?;
                Some(TokenRow { tokens: all.split_last()?.1, targets: all.split_first()?.1 })
            }
            RowKind::Documents { targets: true } => {
                Some(TokenRow { tokens: row_of(0)?, targets: row_of(1)? })
            }
            RowKind::Windows { targets: false } | RowKind::Documents { targets: false } => {
                Some(TokenRow { tokens: row_of(0)?, targets: &[] })
            }
        }
    }

    /// True if the column `tokens` has a further one in each row, and targets are its numbers from
    /// the second on.
    #[must_use]
    pub fn targets_overlap(&self) -> bool {
        self.rows == RowKind::Windows { targets: true }
    }

    /// The starts of the documents of row `row`, and the end of the last, as attention of variable
    /// length takes them; `None` past the last row, and where rows are not documents.
    #[must_use]
    pub fn cu_seqlens(&self, row: usize) -> Option<&[i32]> {
        let RowKind::Documents { .. } = self.rows else { return None };
        Some(&self.fields(row)?.starts)
    }

    fn column_view(&self, column: usize) -> ColumnView<'_> {
        let spec = &self.column_specs()[column];
        ColumnView { spec, bytes: self.column_bytes(column), rows: self.len() }
    }
}
