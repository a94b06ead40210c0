//! From the stored bytes of a sample to its pixels or its row of a batch: what has to be decoded
//! for a plan, and no more.

use std::mem;

use tbl_format::SampleFormat;
use tl_decode::{
    Color, Damage, DecodeError, DecodeOptions, Decoder, Exif, Format, Image, ImageInfo,
    JpegDecoder, JpegRequest, Orientation, Reductions, RowIndex,
};
use tl_simd::Level;
use tl_simd::jpeg::Scale;
use tl_simd::resample::{ImageView, Rect};
use tl_transform::{BoundTransforms, DecodeMode, Draw, Plan, PlanError, Recipe, StepError};

use crate::error::SampleFault;
use crate::metrics::WorkerMetrics;
use crate::padding::Padding;
use crate::render::{Renderer, samples_read};
use crate::stage::Stage;

const CHANNELS: usize = 3;

/// Room for the steps of a plan: few recipes have more, and those make more room once.
const STEPS: usize = 16;

/// A sample as a container holds it.
#[derive(Debug)]
pub struct Stored<'a> {
    /// The format of the bytes, the only distinction between raw pixels and encoded images.
    pub format: SampleFormat,
    /// Width and height of raw pixels; of no meaning for the rest.
    pub size: (u32, u32),
    /// The bytes. Those of raw pixels may be exchanged for others.
    pub bytes: &'a mut Vec<u8>,
    /// The row index stored for a JPEG, if any. The result does not depend on it.
    pub row_index: Option<&'a [u8]>,
}

/// The input of rendering.
pub(crate) enum Input<'a> {
    Stored(Stored<'a>),
    /// An RGB image in rows without padding, and its width and height.
    Pixels(&'a [u8], (u32, u32)),
}

/// The destination of a result.
#[derive(Debug)]
pub enum Target<'a> {
    /// Memory of exactly the size that the recipe gives.
    Row(&'a mut [u8]),
    /// Memory of images of this width and height, which the result is put into the top left corner
    /// of; zeros surround it. Recipes that make several images of a sample have no such target.
    Padded {
        /// The memory of the row.
        row: &'a mut [u8],
        /// Width and height of the row's images in pixels.
        size: (u32, u32),
    },
    /// An image that takes on the size of the result. Its data are in the form of the recipe's
    /// output.
    Image(&'a mut Image),
}

/// Reads, plans, decodes and renders one sample after the other, and keeps its memory.
///
/// ```no_run
/// use tbl_format::SampleFormat;
/// use tl_decode::{DecodeOptions, Image};
/// use tl_pipeline::{SampleRenderer, Stored, Target};
/// use tl_transform::{Draw, Layout, Recipe};
///
/// let recipe = Recipe::imagenet_train(224)?.into_pixels(Layout::Hwc);
/// let mut renderer = SampleRenderer::new(&recipe, DecodeOptions::default());
/// let mut bytes = std::fs::read("photo.jpg")?;
/// let stored =
///     Stored { format: SampleFormat::Jpeg, size: (0, 0), bytes: &mut bytes, row_index: None };
/// let mut image = Image::new();
/// renderer.render(stored, Draw { seed: 42, epoch: 0, sample: 7 }, Target::Image(&mut image))?;
/// assert_eq!((image.width, image.height), (224, 224));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SampleRenderer {
    recipe: Recipe,
    decoder: Decoder,
    /// The decoded image, whole or the part that a plan reads.
    image: Image,
    renderer: Renderer,
    /// The plans for the current sample: one for each of its views.
    plans: Vec<Plan>,
    damage: Option<Damage>,
    /// Width and height of the present sample's image before anything was done to it.
    size: (u32, u32),
    /// The JPEG samples that [`Self::look_at`] may still look at.
    unseen: u8,
    /// True if a reduced image was found.
    is_found: bool,
    /// The properties that the first reduced image loses, until they are taken.
    reductions: Option<Reductions>,
}

/// The first JPEG images whose headers are read for what decoding reduces. Only lossless ones, which
/// data sets hardly have, can have more than 8 bits, and reading each header twice would cost time.
const LOOKED_AT: u8 = 64;

impl SampleRenderer {
    /// A renderer for `recipe`. It decodes to RGB whatever colour `options` names.
    #[must_use]
    pub fn new(recipe: &Recipe, options: DecodeOptions) -> Self {
        let plan = || Plan { steps: Vec::with_capacity(STEPS), ..Plan::whole(0, 0) };
        Self {
            recipe: recipe.clone(),
            decoder: Decoder::new(DecodeOptions { color: Color::Rgb8, ..options }),
            image: Image::new(),
            renderer: Renderer::new(recipe).with_memory_limit(options.limits.max_decoded_bytes),
            plans: std::iter::repeat_with(plan).take(recipe.views() as usize).collect(),
            damage: None,
            size: (0, 0),
            unseen: LOOKED_AT,
            is_found: false,
            reductions: None,
        }
    }

    /// Finds the first image that decoding to RGB of 8 bits reduces.
    fn look_at(&mut self, stored: &Stored<'_>) {
        if self.is_found || stored.format == SampleFormat::RawU8 {
            return;
        }
        if Format::sniff(stored.bytes) == Some(Format::Jpeg) {
            let Some(unseen) = self.unseen.checked_sub(1) else { return };
            self.unseen = unseen;
        }
        // An error here is reported when the sample is decoded.
        let Ok(info) = tl_decode::probe(stored.bytes) else { return };
        let found = info.reductions(Color::Rgb8);
        // Three equal channels have all that one has, and most data sets have such images.
        if found.bit_depth || found.sample_format || found.alpha {
            (self.reductions, self.is_found) = (Some(found), true);
        }
    }

    /// The properties that decoding has reduced, on the first call only.
    pub(crate) fn take_reductions(&mut self) -> Option<Reductions> {
        self.reductions.take()
    }

    /// The same with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        let limits = self.decoder.options().limits;
        *self.decoder.jpeg() = JpegDecoder::new(limits).with_level(level);
        self.renderer = self.renderer.with_level(level);
        self
    }

    /// The same with the user's transforms of its recipe.
    #[must_use]
    pub fn with_user_transforms(mut self, user_transforms: BoundTransforms) -> Self {
        self.renderer = self.renderer.with_user_transforms(user_transforms);
        self
    }

    /// Renders `stored` with the recipe, and returns the plans that were carried out: one for each
    /// view of a sample ([`Recipe::views`]). The views follow each other in memory; as a
    /// [`Target::Image`] they are one tall image.
    ///
    /// # Errors
    /// The fault of the sample; the contents of the target are then unspecified.
    ///
    /// # Panics
    /// If a [`Target::Row`] differs from the result in size.
    pub fn render(
        &mut self,
        stored: Stored<'_>,
        draw: Draw,
        target: Target<'_>,
    ) -> Result<&[Plan], SampleFault> {
        self.render_timed(Input::Stored(stored), draw, target, &mut WorkerMetrics::start(None))
    }

    /// [`SampleRenderer::render`] that says which stage took how long.
    pub(crate) fn render_timed(
        &mut self,
        input: Input<'_>,
        draw: Draw,
        target: Target<'_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<&[Plan], SampleFault> {
        self.damage = None;
        if let Input::Stored(stored) = &input {
            self.look_at(stored);
        }
        match target {
            // Without operations the pixels are the result, and go where it belongs at once.
            Target::Image(image) if self.recipe.ops().is_empty() => {
                match input {
                    Input::Stored(mut stored) => {
                        self.damage = decode_whole(&mut self.decoder, &mut stored, image)?;
                        metrics.lap(Stage::Decode);
                    }
                    Input::Pixels(pixels, (width, height)) => {
                        (image.width, image.height) = (width, height);
                        image.channels = Color::Rgb8.channels();
                        image.data.clear();
                        image.data.extend_from_slice(pixels);
                        metrics.lap(Stage::Write);
                    }
                }
                self.size = (image.width, image.height);
                self.plans.fill(Plan::whole(image.width, image.height));
            }
            Target::Padded { row, size } => {
                self.render_into(input, draw, Target::Padded { row: &mut *row, size }, metrics)?;
                let padding = Padding::of_images(self.recipe.output(), size);
                self.plans.iter().for_each(|plan| padding.spread(row, plan.output_size()));
                metrics.lap(Stage::Write);
            }
            Target::Row(_) | Target::Image(_) => self.render_into(input, draw, target, metrics)?,
        }
        Ok(&self.plans)
    }

    /// As [`SampleRenderer::render_timed`] of what [`SampleRenderer::decode`] has decoded.
    pub(crate) fn render_decoded(
        &mut self,
        draw: Draw,
        target: Target<'_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<&[Plan], SampleFault> {
        let image = mem::replace(&mut self.image, Image::new());
        let input = Input::Pixels(&image.data, (image.width, image.height));
        let result = self.render_timed(input, draw, target, metrics).map(drop);
        self.image = image;
        result.map(|()| &self.plans[..])
    }

    /// Decodes all of a sample for [`SampleRenderer::render_decoded`]. `None`, with the sample as it
    /// was, when anything is wrong with any part of it, or with its row index.
    pub(crate) fn decode(&mut self, stored: &mut Stored<'_>) -> Option<&Image> {
        self.look_at(stored);
        let is_whole = if self.parts_of(stored).ok()?.is_some() {
            let index = stored.row_index.map(RowIndex::parse).transpose().ok()?;
            let on_damaged = self.decoder.options().on_damaged;
            let request = JpegRequest { on_damaged, index, ..JpegRequest::default() };
            let decoded = self.decoder.jpeg().decode(stored.bytes, &request, &mut self.image);
            decoded.is_ok_and(|decoded| decoded.damage.is_none())
        } else {
            decode_whole(&mut self.decoder, stored, &mut self.image).is_ok_and(|d| d.is_none())
        };
        is_whole.then_some(&self.image)
    }

    fn render_into(
        &mut self,
        input: Input<'_>,
        draw: Draw,
        target: Target<'_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        match input {
            Input::Stored(mut stored) => match self.parts_of(&stored)? {
                Some(info) => self.render_part(&stored, &info, draw, target, metrics),
                None => self.render_whole(&mut stored, draw, target, metrics),
            },
            Input::Pixels(pixels, (width, height)) => {
                self.draw_plans(width, height, draw)?;
                let out = self.room(target)?;
                let view = ImageView::packed(pixels, width, height, CHANNELS);
                for_each_plan(&self.plans, &mut self.renderer, out, |renderer, plan, out| {
                    renderer.render_view(plan, view, out, metrics)
                })
            }
        }
    }

    /// The plans of the last sample, as [`SampleRenderer::render`] returned them.
    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Width and height of the last sample's image before anything was done to it.
    pub(crate) fn image_size(&self) -> (u32, u32) {
        self.size
    }

    /// The damage of the last sample of [`SampleRenderer::render`], if damage is kept.
    ///
    /// Only the part that the plan reads is checked: damage below a crop is not found.
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// Gives back buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.decoder.trim(bytes);
        self.renderer.trim(bytes);
        if self.image.data.capacity() > bytes {
            self.image.data = Vec::new();
        }
    }

    /// The header of a JPEG that can be decoded in part: as stored, without turning it.
    fn parts_of(&self, stored: &Stored<'_>) -> Result<Option<ImageInfo>, DecodeError> {
        let raw = stored.format == SampleFormat::RawU8;
        if raw || Format::sniff(stored.bytes) != Some(Format::Jpeg) {
            return Ok(None);
        }
        let info = tl_decode::probe(stored.bytes)?;
        let turned =
            self.decoder.options().exif == Exif::Apply && info.orientation != Orientation::Upright;
        Ok((!turned).then_some(info))
    }

    fn render_whole(
        &mut self,
        stored: &mut Stored<'_>,
        draw: Draw,
        target: Target<'_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        self.damage = decode_whole(&mut self.decoder, stored, &mut self.image)?;
        metrics.lap(Stage::Decode);
        self.draw_plans(self.image.width, self.image.height, draw)?;
        let out = self.room(target)?;
        let Image { width, height, data, .. } = &self.image;
        let view = ImageView::packed(data, *width, *height, CHANNELS);
        for_each_plan(&self.plans, &mut self.renderer, out, |renderer, plan, out| {
            renderer.render_view(plan, view, out, metrics)
        })
    }

    fn render_part(
        &mut self,
        stored: &Stored<'_>,
        info: &ImageInfo,
        draw: Draw,
        target: Target<'_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        self.draw_plans(info.width, info.height, draw)?;
        let out = self.room(target)?;
        let request = JpegRequest {
            on_damaged: self.decoder.options().on_damaged,
            index: stored.row_index.map(RowIndex::parse).transpose()?,
            ..JpegRequest::default()
        };
        if let Some(scale) = self.scale(info) {
            let region = union(self.plans.iter().map(|plan| samples_read(&plan.head, scale)));
            let request = JpegRequest { scale, region, ..request };
            match self.decoder.jpeg().decode_planes(stored.bytes, &request) {
                Ok(planes) => {
                    self.damage = planes.decoded().damage;
                    metrics.lap(Stage::Decode);
                    let run = |renderer: &mut Renderer, plan: &Plan, out: &mut [u8]| {
                        renderer.render_planes(plan, scale, &planes, out, metrics)
                    };
                    return for_each_plan(&self.plans, &mut self.renderer, out, run);
                }
                // Lossless files have no planes; what cannot be decoded at all says so below.
                Err(DecodeError::Unsupported(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let region = union(self.plans.iter().map(|plan| plan.head.source()));
        let request = JpegRequest { region, ..request };
        self.damage = self.decoder.jpeg().decode(stored.bytes, &request, &mut self.image)?.damage;
        metrics.lap(Stage::Decode);
        let Image { width, height, data, .. } = &self.image;
        let Rect { x, y, .. } = region.unwrap_or(Rect::of_size(*width, *height));
        let view = ImageView::packed(data, *width, *height, CHANNELS).at(x, y);
        for_each_plan(&self.plans, &mut self.renderer, out, |renderer, plan, out| {
            renderer.render_view(plan, view, out, metrics)
        })
    }

    /// The scale at which planes are decoded; `None` where pixels are.
    fn scale(&self, info: &ImageInfo) -> Option<Scale> {
        let mode = self.recipe.decode_mode();
        if mode == DecodeMode::Exact || !matches!(info.channels, 1 | 3) {
            return None;
        }
        // Views have the size of their crops in common, and with it the scale; were it not so, the
        // largest would be enough for all.
        let scales = self.plans.iter().map(|plan| mode.scale(&plan.head));
        scales.max_by_key(|scale| scale.apply(8))
    }

    fn draw_plans(&mut self, width: u32, height: u32, draw: Draw) -> Result<(), PlanError> {
        self.size = (width, height);
        (0..).zip(&mut self.plans).try_for_each(|(view, plan)| {
            self.recipe.plan_view_into((width, height), draw, view, plan)
        })
    }

    /// Makes room for the results of the plans, once their images on the way are seen to be small
    /// enough.
    fn room<'t>(&self, target: Target<'t>) -> Result<&'t mut [u8], SampleFault> {
        let limit = self.decoder.options().limits.max_decoded_bytes;
        let within_limit = |bytes: u64| {
            if bytes > limit { Err(SampleFault::OutputSize { bytes, limit }) } else { Ok(()) }
        };
        for plan in &self.plans {
            within_limit(plan.scratch_bytes()?)?;
        }
        let image = match target {
            Target::Row(out) => return Ok(out),
            Target::Padded { row, size } => return self.corner(row, size),
            Target::Image(image) => image,
        };
        let mut bytes: usize = 0;
        (image.width, image.height) = (0, 0);
        for (width, height) in self.plans.iter().map(Plan::output_size) {
            bytes = bytes.saturating_add(self.renderer.output_bytes((width, height)));
            within_limit(bytes as u64)?;
            (image.width, image.height) = (width, image.height.saturating_add(height));
        }
        image.channels = Color::Rgb8.channels();
        image.data.resize(bytes, 0);
        Ok(&mut image.data)
    }
}

impl SampleRenderer {
    /// The front of a padded row, where the result is made.
    fn corner<'t>(
        &self,
        row: &'t mut [u8],
        batch_size: (u32, u32),
    ) -> Result<&'t mut [u8], SampleFault> {
        let (batch_width, batch_height) = batch_size;
        let [plan] = &self.plans[..] else {
            unreachable!("`Buckets::check` allows one image for each sample")
        };
        let (width, height) = plan.output_size();
        let bytes = self.renderer.output_bytes((width, height));
        if width > batch_width || height > batch_height {
            return Err(SampleFault::BeyondBatch { width, height, batch_width, batch_height });
        }
        Ok(&mut row[..bytes])
    }
}

/// Carries out each plan in order, into its part of `out`.
fn for_each_plan(
    plans: &[Plan],
    renderer: &mut Renderer,
    out: &mut [u8],
    mut run: impl FnMut(&mut Renderer, &Plan, &mut [u8]) -> Result<(), StepError>,
) -> Result<(), SampleFault> {
    let mut rest = out;
    for plan in plans {
        let bytes = renderer.output_bytes(plan.output_size());
        let part = rest.split_off_mut(..bytes).expect("the row has the size of the results");
        run(renderer, plan, part)?;
    }
    assert!(rest.is_empty(), "the row is {} bytes longer than the results", rest.len());
    Ok(())
}

/// The smallest rectangle around all of them.
fn union(mut rects: impl Iterator<Item = Rect>) -> Option<Rect> {
    let first = rects.next()?;
    Some(rects.fold(first, |all, rect| {
        let x = all.x.min(rect.x);
        let y = all.y.min(rect.y);
        let right = (all.x + all.width).max(rect.x + rect.width);
        let bottom = (all.y + all.height).max(rect.y + rect.height);
        Rect { x, y, width: right - x, height: bottom - y }
    }))
}

/// Makes all pixels of a sample; what was wrong with it, if damage is kept.
fn decode_whole(
    decoder: &mut Decoder,
    stored: &mut Stored<'_>,
    image: &mut Image,
) -> Result<Option<Damage>, SampleFault> {
    if stored.format != SampleFormat::RawU8 {
        decoder.decode_into(stored.bytes, image)?;
        return Ok(decoder.damage());
    }
    let (width, height) = stored.size;
    let have = stored.bytes.len() as u64;
    let need = 3 * u64::from(width) * u64::from(height);
    if have != need || need == 0 {
        return Err(SampleFault::RawSize { width, height, need, have });
    }
    (image.width, image.height, image.channels) = (width, height, Color::Rgb8.channels());
    mem::swap(stored.bytes, &mut image.data);
    Ok(None)
}
