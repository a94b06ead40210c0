//! The memory of one worker.

use std::mem;

use tl_decode::DecodeOptions;

use crate::config::{BoundRecipes, LoaderConfig};
use crate::device_work::DeviceWork;
use crate::erasing::Erasing;
use crate::fields::{Annotator, FieldReaders};
use crate::memory::SampleLimits;
use crate::metrics::WorkerMetrics;
use crate::sample::{SampleRenderer, SidecarImage};
use crate::table::TableScratch;
use crate::token_gather::TokenScratch;
use crate::videos::ClipRenderer;
use crate::work::Work;

/// The memory of one worker, reused from sample to sample and from epoch to epoch.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) row_index: Vec<u8>,
    /// `None` where samples are not decoded.
    pub(crate) renderer: Option<SampleRenderer>,
    /// `None` where samples are not clips.
    pub(crate) clips: Option<ClipRenderer>,
    /// Rows of a batch as they were before it was mixed.
    pub(crate) unmixed: Vec<u8>,
    /// The erasing that a device does; `None` without any.
    pub(crate) erasing: Option<Erasing>,
    pub(crate) annotator: Annotator,
    pub(crate) images: Vec<SidecarImage>,
    pub(crate) table: TableScratch,
    pub(crate) tokens: TokenScratch,
    /// The limits of a sample.
    pub(crate) limits: SampleLimits,
    /// The counters since the last batch.
    pub(crate) metrics: WorkerMetrics,
}

impl Scratch {
    pub(crate) fn new(
        config: &LoaderConfig,
        user_transforms: &BoundRecipes,
        fields: &FieldReaders,
        limits: SampleLimits,
        device: DeviceWork,
    ) -> Self {
        let decode = DecodeOptions { limits: limits.decode, ..config.decode };
        let renderer = match &config.work {
            Work::Bytes | Work::Views | Work::Clips(_) | Work::Columns(_) | Work::Tokens(_) => None,
            Work::Images(recipe) => {
                let renderer = SampleRenderer::new(recipe, decode).with_device(device.decoding);
                let has_annotations = config.fields.has_annotations();
                let bound = user_transforms.first.clone();
                let renderer = renderer.with_transforms(bound, has_annotations);
                let renderer = renderer.with_images(config, user_transforms);
                Some(renderer.with_decoders(config.decoders.clone()))
            }
        };
        let clips = if let Work::Clips(work) = &config.work {
            Some(ClipRenderer::new(work, user_transforms.first.clone(), &limits))
        } else {
            None
        };
        let annotator = Annotator::new(&config.fields, decode, fields);
        let images = SidecarImage::all(config, decode, user_transforms);
        let bytes = Vec::new();
        let row_index = Vec::new();
        let unmixed = Vec::new();
        let erasing = device.erasing;
        let table = TableScratch::default();
        let tokens = TokenScratch::default();
        let metrics = WorkerMetrics::start(None);
        Self {
            bytes,
            row_index,
            renderer,
            clips,
            unmixed,
            erasing,
            annotator,
            images,
            table,
            tokens,
            limits,
            metrics,
        }
    }

    /// Takes `fresh` memory for its own; the counts stay.
    pub(crate) fn renew(&mut self, fresh: Self) {
        let metrics = mem::replace(&mut self.metrics, WorkerMetrics::start(None));
        *self = Self { metrics, ..fresh };
    }

    /// Gives back buffers that are larger than what is kept for the next sample.
    pub(crate) fn trim(&mut self) {
        let keep = self.limits.keep;
        trim(&mut self.bytes, keep);
        trim(&mut self.row_index, keep);
        trim(&mut self.unmixed, keep);
        self.annotator.trim(keep);
        self.images.iter_mut().for_each(|image| image.trim(keep));
        if let Some(renderer) = &mut self.renderer {
            renderer.trim(keep);
        }
        if let Some(clips) = &mut self.clips {
            clips.trim(keep);
        }
    }
}

pub(crate) fn trim(buffer: &mut Vec<u8>, keep: usize) {
    if buffer.capacity() > keep {
        *buffer = Vec::new();
    }
}
