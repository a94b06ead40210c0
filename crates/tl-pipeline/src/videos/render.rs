//! From a video to the rows of its clips: which frames, decode, convert, resample.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use tl_decode::Orientation;
use tl_simd::resample::Rect;
use tl_transform::{BoundTransforms, Draw, Plan, Recipe};
use tl_video::{FrameDecoder, Limits, Parity, Picture, ReadAt, VideoError, VideoIndex};

use super::indexes::VideoIndexes;
use super::pixels::Pixels;
use super::stored::{Until, fault};
use crate::clips::{ClipColumns, ClipSampling, ClipWork, VideoId, frames};
use crate::dataset::Dataset;
use crate::error::{ClipFault, SampleFault};
#[cfg(feature = "arrow")]
use crate::lerobot::Camera;
use crate::memory::SampleLimits;
use crate::metrics::WorkerMetrics;
use crate::render::Renderer;
use crate::stage::Stage;

/// Bytes that a packet takes while an index is made.
const PACKET_BYTES: u64 = 144;

/// Makes the clips of one video after the other, and keeps its memory. Nothing of a video decides
/// about the next.
#[derive(Debug)]
pub(crate) struct ClipRenderer {
    sampling: ClipSampling,
    columns: ClipColumns,
    parity: Parity,
    recipe: Recipe,
    renderer: Renderer,
    pixels: Pixels,
    limits: SampleLimits,
}

impl ClipRenderer {
    pub(crate) fn new(
        work: &ClipWork,
        user_transforms: BoundTransforms,
        limits: &SampleLimits,
    ) -> Self {
        let recipe = work.recipe_of_clips().into_owned();
        let renderer = Renderer::new(&recipe)
            .with_memory_limit(limits.decode.max_decoded_bytes)
            .with_user_transforms(user_transforms);
        let pixels = Pixels::default();
        let ClipWork { sampling, parity, ref columns, .. } = *work;
        let columns = columns.clone();
        Self { sampling, columns, parity, recipe, renderer, pixels, limits: *limits }
    }

    /// Makes the clips of a sample, and returns height and width of its frames in the batch.
    pub(crate) fn render(
        &mut self,
        dataset: &Dataset,
        videos: &VideoIndexes,
        video: &dyn ReadAt,
        draw: Draw,
        out: &mut [u8],
        metrics: &mut WorkerMetrics,
    ) -> Result<[u32; 2], SampleFault> {
        let limits = video_limits(&self.limits);
        let place = dataset.place(draw.sample)?;
        let times = self.columns.read(dataset, draw.sample, self.limits.stored)?;
        let mut id = VideoId { shard: place.0, number: place.1 };
        if !self.columns.is_empty() {
            id.number = dataset.shards()[id.shard].first_of_file(id.number);
        }
        let index = videos.get(id, || index(dataset, draw.sample, video, &limits))?;
        metrics.lap(Stage::Read);
        let numbers = frames(&self.sampling, &index, times, draw)?;
        let wanted = Wanted { index: &index, video, numbers: &numbers, clip: 0, draw };
        self.render_frames(&wanted, out, metrics)
    }

    /// Makes the clip of one camera of a row, and returns height and width of its frames. The other
    /// cameras have other clips of the row.
    #[cfg(feature = "arrow")]
    pub(crate) fn render_camera(
        &mut self,
        videos: &VideoIndexes,
        camera: &Camera<'_>,
        video: &dyn ReadAt,
        draw: Draw,
        out: &mut [u8],
        metrics: &mut WorkerMetrics,
    ) -> Result<[u32; 2], SampleFault> {
        let limits = video_limits(&self.limits);
        let open = || VideoIndex::open(video, &limits).map_err(|error| fault(None, error));
        let index = videos.get(camera.video, open)?;
        metrics.lap(Stage::Read);
        let mut numbers = camera.rows.frames(camera.row, camera.number, &index)?;
        // The clips of a row have equally many frames; batches show those that a camera has.
        let last = numbers.last().copied().unwrap_or_default();
        numbers.resize(self.sampling.frames as usize, last);
        let clip = u32::try_from(camera.number).unwrap_or(u32::MAX);
        let wanted = Wanted { index: &index, video, numbers: &numbers, clip, draw };
        self.render_frames(&wanted, out, metrics)
    }

    /// Decodes frames, and puts them into the row from a clip on.
    fn render_frames(
        &mut self,
        wanted: &Wanted<'_>,
        out: &mut [u8],
        metrics: &mut WorkerMetrics,
    ) -> Result<[u32; 2], SampleFault> {
        let Wanted { index, video, numbers, clip, draw } = *wanted;
        let failed = |error: VideoError| {
            let (VideoError::Decode { packet, .. } | VideoError::NoPicture { packet, .. }) = error
            else {
                return fault(None, error);
            };
            let of_packet =
                |frame: &u64| index.frame(*frame).is_some_and(|frame| frame.packet == packet);
            fault((0..index.frame_count()).find(of_packet), error)
        };
        let plan = index.cost(numbers).map_err(failed)?;
        let mut decoder = FrameDecoder::new(index, &video_limits(&self.limits)).map_err(failed)?;
        let Self { sampling, parity, recipe, renderer, pixels, limits, .. } = self;
        let frames_of_clip = sampling.frames as usize;
        let mut clips = Clips {
            orientation: Orientation::of_rotation(index.info().rotation),
            parity: *parity,
            max_bytes: limits.decode.max_decoded_bytes,
            frames_of_clip,
            slots: slots(numbers),
            recipe,
            views: clip..clip + u32::try_from(numbers.len() / frames_of_clip).unwrap_or(u32::MAX),
            renderer,
            pixels,
            plans: Vec::new(),
            size: (0, 0),
            out,
            metrics,
            left: numbers.iter().copied().collect(),
            failed: None,
        };
        let is_refused = Cell::new(false);
        let video = Until { video, is_over: &|| is_refused.get() };
        let decoded = decoder.decode(index, &plan, &video, &mut |frame, picture| {
            clips.take(frame, &picture, draw);
            is_refused.set(clips.failed.is_some());
        });
        clips.metrics.lap(Stage::Decode);
        match (clips.failed, decoded) {
            (Some(fault), _) => Err(fault),
            (None, Err(error)) => Err(failed(error)),
            (None, Ok(())) => match clips.left.first() {
                Some(frame) => Err(ClipFault::NoPicture { frame: *frame }.into()),
                None => {
                    let size = clips.plans.first().map_or((0, 0), Plan::output_size);
                    Ok([size.1, size.0])
                }
            },
        }
    }

    /// Gives back buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.renderer.trim(bytes);
        self.pixels.trim(bytes);
    }
}

/// Frames of one video, for whole clips of a row.
struct Wanted<'a> {
    index: &'a VideoIndex,
    video: &'a dyn ReadAt,
    /// The frames, one clip after the other.
    numbers: &'a [u64],
    /// The first of the clips in the row.
    clip: u32,
    draw: Draw,
}

/// The index of a video: the one that its container stores, or one that is made of it.
fn index(
    dataset: &Dataset,
    sample: u64,
    video: &dyn ReadAt,
    limits: &Limits,
) -> Result<VideoIndex, SampleFault> {
    let mut stored = Vec::new();
    let index = if dataset.row_index_into(sample, &mut stored)? {
        VideoIndex::from_bytes(&stored, dataset.facts(sample)?.bytes, limits)
    } else {
        VideoIndex::open(video, limits)
    };
    index.map_err(|error| fault(None, error))
}

/// The limits of a video, of which a part is read.
fn video_limits(limits: &SampleLimits) -> Limits {
    let most = Limits::default();
    let is_bounded = limits.stored < u64::MAX;
    let working = limits.decode.max_working_bytes;
    Limits {
        max_packets: most.max_packets.min(limits.decode.max_decoded_bytes / PACKET_BYTES),
        max_table_bytes: most.max_table_bytes.min(limits.stored),
        max_packet_bytes: most.max_packet_bytes.min(limits.stored),
        max_decoder_bytes: if is_bounded { working } else { most.max_decoder_bytes },
        ..most
    }
}

/// The places of frames in the clips, in the order of the frames.
fn slots(frames: &[u64]) -> Vec<(u64, usize)> {
    let mut slots: Vec<(u64, usize)> = frames.iter().copied().zip(0..).collect();
    slots.sort_unstable();
    slots
}

/// The clips of a video in the making.
struct Clips<'a> {
    orientation: Orientation,
    parity: Parity,
    max_bytes: u64,
    frames_of_clip: usize,
    /// Frames with their places in the clips, ascending.
    slots: Vec<(u64, usize)>,
    recipe: &'a Recipe,
    /// The clips in the row.
    views: Range<u32>,
    renderer: &'a mut Renderer,
    pixels: &'a mut Pixels,
    /// One for each of the clips, made for the size of the first picture.
    plans: Vec<Plan>,
    /// Width and height of the pictures.
    size: (u32, u32),
    out: &'a mut [u8],
    metrics: &'a mut WorkerMetrics,
    /// Frames that are still to come.
    left: BTreeSet<u64>,
    failed: Option<SampleFault>,
}

impl Clips<'_> {
    /// Takes a decoded frame, unless another was refused.
    fn take(&mut self, frame: u64, picture: &Picture, draw: Draw) {
        self.metrics.lap(Stage::Decode);
        if self.failed.is_none() {
            self.failed = self.render(frame, picture, draw).err();
            self.left.remove(&frame);
        }
    }

    /// Puts a frame into all its places.
    fn render(&mut self, frame: u64, picture: &Picture, draw: Draw) -> Result<(), SampleFault> {
        self.plan(frame, picture, draw)?;
        let first = self.slots.partition_point(|(other, _)| *other < frame);
        let places = self.slots[first..].iter().take_while(|(other, _)| *other == frame);
        let places: Vec<usize> = places.map(|(_, place)| *place).collect();
        let first_place = self.views.start as usize * self.frames_of_clip;
        let mut done: Option<usize> = None;
        for place in places {
            let clip = place / self.frames_of_clip;
            let plan = &self.plans[clip];
            let bytes = self.renderer.output_bytes(plan.output_size());
            match done {
                // The same frame again, of the same clip.
                Some(other) if other / self.frames_of_clip == clip => {
                    let start = (first_place + other) * bytes;
                    self.out.copy_within(start..start + bytes, (first_place + place) * bytes);
                }
                _ => {
                    let region = plan.head.source();
                    let Rect { x, y, width, height } = region;
                    let pixels = self.pixels.of(picture, region, self.orientation, self.parity);
                    let pixels = pixels.map_err(|error| fault(Some(frame), error))?;
                    let view = self.renderer.view(pixels, width, height).at(x, y);
                    let place = first_place + place;
                    let row = &mut self.out[place * bytes..(place + 1) * bytes];
                    self.renderer.render_view(plan, view, row, self.metrics)?;
                }
            }
            done = Some(place);
        }
        Ok(())
    }

    /// Makes the plans for the first picture, and checks that others have its size.
    fn plan(&mut self, frame: u64, picture: &Picture, draw: Draw) -> Result<(), SampleFault> {
        let size = (picture.width, picture.height);
        if !self.plans.is_empty() {
            let (width, height) = size;
            let (first_width, first_height) = self.size;
            return if size == self.size {
                Ok(())
            } else {
                Err(ClipFault::Size { frame, width, height, first_width, first_height }.into())
            };
        }
        self.size = size;
        let displayed = self.orientation.shown_size(size);
        for clip in self.views.clone() {
            let mut plan = Plan::whole(displayed.0, displayed.1);
            self.recipe.plan_view_into(displayed, draw, clip, &mut plan)?;
            let bytes = self.recipe.scratch_bytes(&plan)?;
            let bytes = bytes.max(Pixels::bytes(plan.head.source(), self.orientation));
            let limit = self.max_bytes;
            if bytes > limit {
                return Err(SampleFault::OutputSize { bytes, limit });
            }
            self.plans.push(plan);
        }
        Ok(())
    }
}
