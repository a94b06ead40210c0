//! From the stored bytes of a sample to its pixels or its row of a batch: what has to be decoded
//! for a plan, and no more.

mod custom;
mod decoded;
mod link;
mod nvjpeg;
mod outputs;
mod parts;
mod pictures;
mod reduced;
mod sidecar;

use std::mem;

use tbl_format::SampleFormat;
use tl_cuda::Picture;
use tl_decode::{
    Color, Damage, DecodeOptions, Decoder, Decoders, Format, Image, JpegDecoder, WebpDecoder,
};
use tl_handoff::slab::ColumnsMut;
use tl_simd::Level;
use tl_transform::{BoundTransforms, Draw, Plan, Recipe};

use crate::config::decode_options;
use crate::error::SampleFault;
use crate::metrics::WorkerMetrics;
use crate::note::LoaderNote;
use crate::row::RowExtras;
use crate::stage::Stage;
use decoded::decode_whole;
pub(crate) use link::Followers;
use link::Link;
use outputs::Outputs;
use pictures::Pictures;
use reduced::FirstReduced;
pub(crate) use sidecar::SidecarImage;

const CHANNELS: usize = 3;

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
    /// An image in rows without padding, of RGB or the recipe's wider pixels, and its width and height.
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

impl Target<'_> {
    fn reborrow(&mut self) -> Target<'_> {
        match self {
            Self::Row(row) => Target::Row(row),
            Self::Padded { row, size } => Target::Padded { row, size: *size },
            Self::Image(image) => Target::Image(image),
        }
    }
}

/// The destinations of all images that are made of a sample.
pub(crate) struct Targets<'a, 'r> {
    /// That of the first recipe's.
    pub(crate) first: Target<'a>,
    /// The columns of the row, for further images.
    pub(crate) others: Option<&'a mut ColumnsMut<'r, RowExtras>>,
    /// The annotations, for user's transforms that move them.
    pub(crate) followers: Option<Followers<'a>>,
    /// The images for a device, which are made instead of the first destination's where it can
    /// decode.
    pub(crate) pictures: Option<&'a mut Vec<Picture>>,
}

impl<'a> Targets<'a, '_> {
    /// The destination where there is one image.
    pub(crate) fn only(first: Target<'a>) -> Self {
        Self { first, others: None, followers: None, pictures: None }
    }
}

/// The origin of an image's plans.
#[derive(Clone, Copy)]
pub(crate) enum Drawn<'a> {
    /// They are drawn.
    At(Draw),
    /// They are those of the sample's first image.
    Like {
        plans: &'a [Plan],
        /// Width and height of that image.
        size: (u32, u32),
        /// The sidecar file that must have an image of this size.
        file: &'a str,
        /// Whether they move pixels only.
        keeps_numbers: bool,
    },
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
    decoder: Decoder,
    /// The decoded image, whole or the part that the plans read.
    image: Image,
    outputs: Outputs,
    damage: Option<Damage>,
    /// Width and height of the present sample's image before anything was done to it.
    size: (u32, u32),
    reduced: FirstReduced,
    /// The making of images for a device; `None` without one that decodes.
    pictures: Option<Pictures>,
    /// The user's decoders, which are asked before the built-in formats.
    decoders: Decoders,
    /// The rest of the recipe, where user's transforms run between plans.
    links: Vec<Link>,
}

impl SampleRenderer {
    /// A renderer for `recipe`. It decodes to the recipe's pixels, whatever `options` say of them.
    #[must_use]
    pub fn new(recipe: &Recipe, options: DecodeOptions) -> Self {
        Self {
            decoder: Decoder::new(decode_options(recipe, options)),
            image: Image::new(),
            outputs: Outputs::new(recipe, options.limits.max_decoded_bytes),
            damage: None,
            size: (0, 0),
            reduced: FirstReduced::default(),
            pictures: None,
            decoders: Decoders::new(),
            links: Vec::new(),
        }
    }

    /// The same with a further image of every sample, made from the same decoded pixels, that goes to
    /// column number `column` of the row.
    pub(crate) fn with_image(
        mut self,
        recipe: &Recipe,
        user_transforms: BoundTransforms,
        column: usize,
    ) -> Self {
        self.outputs.add(recipe, user_transforms, column);
        self
    }

    /// The note on what decoding has reduced of sample `sample`, on the first call only.
    pub(crate) fn take_reduced(&mut self, sample: u64) -> Option<LoaderNote> {
        let lost = self.reduced.take()?;
        let DecodeOptions { color, pixels, .. } = *self.decoder.options();
        Some(LoaderNote::Reduced { sample, lost, color, pixels })
    }

    /// The same with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        let limits = self.decoder.options().limits;
        *self.decoder.jpeg() = JpegDecoder::new(limits).with_level(level);
        *self.decoder.webp() = WebpDecoder::new(limits).with_level(level);
        self.outputs = self.outputs.with_level(level);
        self.links = self.links.into_iter().map(|link| link.with_level(level)).collect();
        self
    }

    /// The same with the user's transforms of its recipe.
    #[must_use]
    pub fn with_user_transforms(self, user_transforms: BoundTransforms) -> Self {
        self.with_transforms(user_transforms, false)
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
        let metrics = &mut WorkerMetrics::start(None);
        self.render_timed(Input::Stored(stored), Drawn::At(draw), Targets::only(target), metrics)
    }

    /// [`SampleRenderer::render`] of an image that is decoded: rows without gaps of width and height
    /// `size`, of RGB or of the recipe's pixels where they are wider.
    ///
    /// # Errors
    /// As [`SampleRenderer::render`].
    ///
    /// # Panics
    /// If a [`Target::Row`] differs from the result in size, or `pixels` from the image.
    pub fn render_pixels(
        &mut self,
        pixels: &[u8],
        size: (u32, u32),
        draw: Draw,
        target: Target<'_>,
    ) -> Result<&[Plan], SampleFault> {
        let metrics = &mut WorkerMetrics::start(None);
        let input = Input::Pixels(pixels, size);
        self.render_timed(input, Drawn::At(draw), Targets::only(target), metrics)
    }

    /// [`SampleRenderer::render`] of all images of a sample, which says which stage took how long.
    pub(crate) fn render_timed(
        &mut self,
        input: Input<'_>,
        drawn: Drawn<'_>,
        targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<&[Plan], SampleFault> {
        if self.is_linked() {
            let mut links = mem::take(&mut self.links);
            let rendered = self.render_linked(&mut links, input, drawn, targets, metrics);
            self.links = links;
            return rendered.map(|()| self.plans());
        }
        self.damage = None;
        if let Input::Stored(stored) = &input {
            self.check_nvjpeg()?;
            self.reduced.look_at(stored, self.decoder.options());
        }
        let Targets { first, others, pictures, .. } = targets;
        match first {
            // Without operations the pixels are the result, and go where it belongs at once.
            Target::Image(image) if self.outputs.only_decode() => {
                match input {
                    Input::Stored(mut stored) => {
                        self.damage = decode_whole(&mut self.decoder, &mut stored, image)?;
                        metrics.lap(Stage::Decode);
                    }
                    Input::Pixels(pixels, (width, height)) => {
                        (image.width, image.height) = (width, height);
                        image.channels = self.decoder.options().color.channels();
                        image.pixels = self.decoder.options().pixels;
                        image.data.clear();
                        // Grey ones of 8 bits have three equal channels here.
                        let pixels = pixels.chunks_exact(self.outputs.pixel_bytes());
                        let kept = image.pixel_bytes();
                        image.data.extend(pixels.flat_map(|pixel| &pixel[..kept]));
                        metrics.lap(Stage::Write);
                    }
                }
                self.size = (image.width, image.height);
                self.outputs.set_whole((image.width, image.height));
            }
            Target::Padded { row, size } => {
                let first = Target::Padded { row: &mut *row, size };
                let targets = Targets { first, others, followers: None, pictures: None };
                self.render_into(input, drawn, targets, metrics)?;
                self.outputs.pad(row, size);
                metrics.lap(Stage::Write);
            }
            Target::Row(_) | Target::Image(_) => {
                let targets = Targets { first, others, followers: None, pictures };
                self.render_into(input, drawn, targets, metrics)?;
            }
        }
        Ok(self.outputs.plans())
    }

    fn render_into(
        &mut self,
        input: Input<'_>,
        drawn: Drawn<'_>,
        targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        match input {
            Input::Stored(mut stored) => match self.parts_of(&stored)? {
                Some(info) if info.format == Format::WebP => {
                    self.render_webp(&stored, &info, drawn, targets, metrics)
                }
                Some(info) => self.render_part(&stored, &info, drawn, targets, metrics),
                None => self.render_whole(&mut stored, drawn, targets, metrics),
            },
            Input::Pixels(pixels, (width, height)) => {
                self.plan((width, height), drawn)?;
                let rows = self.outputs.rows(targets)?;
                let view = self.outputs.view(pixels, width, height);
                self.outputs.write(rows, |renderer, plan, out| {
                    renderer.render_view(plan, view, out, metrics)
                })
            }
        }
    }

    /// Plans the images of a sample whose image has this size.
    fn plan(&mut self, size: (u32, u32), drawn: Drawn<'_>) -> Result<(), SampleFault> {
        self.size = size;
        self.outputs.plan(size, drawn)
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
        self.outputs.trim(bytes);
        self.links.iter_mut().for_each(|link| link.trim(bytes));
        if self.image.data.capacity() > bytes {
            self.image.data = Vec::new();
        }
    }

    /// Makes three equal channels of a decoded image of one, which operations take.
    fn spread_grey(&mut self) -> Result<(), SampleFault> {
        let image = &mut self.image;
        if image.channels != 1 || self.outputs.is_wide() {
            return Ok(());
        }
        let grey = image.data.len();
        let bytes = grey.saturating_mul(CHANNELS);
        let limit = self.decoder.options().limits.max_decoded_bytes;
        if bytes as u64 > limit {
            return Err(SampleFault::OutputSize { bytes: bytes as u64, limit });
        }
        image.channels = Color::Rgb.channels();
        image.data.resize(bytes, 0);
        for pixel in (0..grey).rev() {
            let value = image.data[pixel];
            image.data[pixel * CHANNELS..][..CHANNELS].fill(value);
        }
        Ok(())
    }

    fn render_whole(
        &mut self,
        stored: &mut Stored<'_>,
        drawn: Drawn<'_>,
        targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        self.damage = decode_whole(&mut self.decoder, stored, &mut self.image)?;
        self.spread_grey()?;
        metrics.lap(Stage::Decode);
        self.plan((self.image.width, self.image.height), drawn)?;
        let rows = self.outputs.rows(targets)?;
        let Image { width, height, data, .. } = &self.image;
        let view = self.outputs.view(data, *width, *height);
        self.outputs
            .write(rows, |renderer, plan, out| renderer.render_view(plan, view, out, metrics))
    }
}
