//! From the stored bytes of a sample to its pixels or its row of a batch: what has to be decoded
//! for a plan, and no more.

use std::mem;

use tbl_format::SampleFormat;
use tl_decode::{
    Color, Damage, DecodeError, DecodeOptions, Decoder, Exif, Format, Image, ImageInfo,
    JpegDecoder, JpegRequest, Orientation, RowIndex,
};
use tl_simd::Level;
use tl_simd::resample::ImageView;
use tl_transform::{DecodeMode, Plan, PlanError, Recipe};

use crate::error::SampleFault;
use crate::render::{Renderer, pixels_read, samples_read};

const CHANNELS: usize = 3;

/// A sample as a container holds it.
#[derive(Debug)]
pub struct Stored<'a> {
    /// What the bytes are; raw pixels are told from encoded images by this alone.
    pub format: SampleFormat,
    /// Width and height of raw pixels; of no meaning for the rest.
    pub size: (u32, u32),
    /// The bytes. Those of raw pixels may be exchanged for others.
    pub bytes: &'a mut Vec<u8>,
    /// The row index stored for a JPEG, if there is one. The result does not depend on it.
    pub row_index: Option<&'a [u8]>,
}

/// What the random part of a plan is a function of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// The loader's seed.
    pub seed: u64,
    /// The epoch.
    pub epoch: u32,
    /// The sample's number in the data set.
    pub sample: u64,
}

/// Where the result goes.
#[derive(Debug)]
pub enum Target<'a> {
    /// Memory of exactly the size that the recipe gives.
    Row(&'a mut [u8]),
    /// An image that takes on the size of the result. Its data are in the form of the recipe's
    /// output.
    Image(&'a mut Image),
}

/// Reads, plans, decodes and renders one sample after the other, and keeps its memory.
///
/// ```no_run
/// use tbl_format::SampleFormat;
/// use tl_decode::{DecodeOptions, Image};
/// use tl_pipeline::{Draw, SampleRenderer, Stored, Target};
/// use tl_transform::{Layout, Recipe};
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
    /// What was decoded: all of an image or the part that a plan reads.
    image: Image,
    renderer: Renderer,
    damage: Option<Damage>,
}

impl SampleRenderer {
    /// A renderer for `recipe`. It decodes to RGB whatever colour `options` names.
    #[must_use]
    pub fn new(recipe: &Recipe, options: DecodeOptions) -> Self {
        Self {
            recipe: recipe.clone(),
            decoder: Decoder::new(DecodeOptions { color: Color::Rgb8, ..options }),
            image: Image::new(),
            renderer: Renderer::new(recipe),
            damage: None,
        }
    }

    /// The same with the instructions of `level`; the results do not depend on it.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        let limits = self.decoder.options().limits;
        *self.decoder.jpeg() = JpegDecoder::new(limits).with_level(level);
        self.renderer = self.renderer.with_level(level);
        self
    }

    /// Makes of `stored` what the recipe says, and returns the plan that was carried out.
    ///
    /// # Errors
    /// What is wrong with the sample; the contents of the target are unspecified then.
    ///
    /// # Panics
    /// When a [`Target::Row`] has not the size of the result.
    pub fn render(
        &mut self,
        mut stored: Stored<'_>,
        draw: Draw,
        target: Target<'_>,
    ) -> Result<Plan, SampleFault> {
        self.damage = None;
        match target {
            // Without operations the pixels are the result, and go where it belongs at once.
            Target::Image(image) if self.recipe.ops().is_empty() => {
                self.damage = decode_whole(&mut self.decoder, &mut stored, image)?;
                Ok(Plan::whole(image.width, image.height))
            }
            Target::Row(_) | Target::Image(_) => match self.parts_of(&stored)? {
                Some(info) => self.render_part(&stored, &info, draw, target),
                None => self.render_whole(&mut stored, draw, target),
            },
        }
    }

    /// What was wrong with the last sample of [`SampleRenderer::render`], if damage is kept.
    ///
    /// Only what the plan reads is looked at: damage below a crop stays unseen.
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
    ) -> Result<Plan, SampleFault> {
        self.damage = decode_whole(&mut self.decoder, stored, &mut self.image)?;
        let plan = self.plan(self.image.width, self.image.height, draw)?;
        let out = self.room(&plan, target)?;
        let Image { width, height, data, .. } = &self.image;
        self.renderer.render(&plan, data, *width, *height, out);
        Ok(plan)
    }

    fn render_part(
        &mut self,
        stored: &Stored<'_>,
        info: &ImageInfo,
        draw: Draw,
        target: Target<'_>,
    ) -> Result<Plan, SampleFault> {
        let plan = self.plan(info.width, info.height, draw)?;
        let out = self.room(&plan, target)?;
        let mode = self.recipe.decode_mode();
        let request = JpegRequest {
            on_damaged: self.decoder.options().on_damaged,
            index: stored.row_index.map(RowIndex::parse).transpose()?,
            ..JpegRequest::default()
        };
        if mode != DecodeMode::Exact && matches!(info.channels, 1 | 3) {
            let scale = mode.scale(&plan);
            let region = Some(samples_read(&plan, scale));
            let request = JpegRequest { scale, region, ..request };
            match self.decoder.jpeg().decode_planes(stored.bytes, &request) {
                Ok(planes) => {
                    self.damage = planes.decoded().damage;
                    self.renderer.render_planes(&plan, scale, &planes, out);
                    return Ok(plan);
                }
                // Lossless files have no planes; what cannot be decoded at all says so below.
                Err(DecodeError::Unsupported(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let part = pixels_read(&plan);
        let request = JpegRequest { region: Some(part), ..request };
        self.damage = self.decoder.jpeg().decode(stored.bytes, &request, &mut self.image)?.damage;
        let Image { width, height, data, .. } = &self.image;
        let view = ImageView::packed(data, *width, *height, CHANNELS).at(part.x, part.y);
        self.renderer.render_view(&plan, view, out);
        Ok(plan)
    }

    fn plan(&self, width: u32, height: u32, draw: Draw) -> Result<Plan, PlanError> {
        self.recipe.plan(width, height, draw.seed, draw.epoch, draw.sample)
    }

    /// Makes room for the result of `plan`.
    fn room<'t>(&self, plan: &Plan, target: Target<'t>) -> Result<&'t mut [u8], SampleFault> {
        let image = match target {
            Target::Row(out) => return Ok(out),
            Target::Image(image) => image,
        };
        let bytes = self.renderer.output_bytes(plan.output_size());
        let limit = self.decoder.options().limits.max_decoded_bytes;
        if bytes as u64 > limit {
            return Err(SampleFault::OutputSize { bytes: bytes as u64, limit });
        }
        (image.width, image.height) = plan.output_size();
        image.channels = Color::Rgb8.channels();
        image.data.resize(bytes, 0);
        Ok(&mut image.data)
    }
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
