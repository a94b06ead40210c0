//! Samples of which only the part is decoded that becomes pixels.

use tbl_format::SampleFormat;
use tl_decode::{
    DecodeError, Exif, Format, Image, ImageInfo, JpegRequest, Orientation, PixelType, RowIndex,
    WebpRequest,
};
use tl_simd::jpeg::Scale;
use tl_simd::resample::Rect;
use tl_transform::{Channels, DecodeMode, Draw};

use super::outputs::Rows;
use super::{Drawn, SampleRenderer, Stored, Targets};
use crate::error::SampleFault;
use crate::metrics::WorkerMetrics;
use crate::render::samples_read;
use crate::stage::Stage;

impl SampleRenderer {
    /// The header of an image that can be decoded in part: as stored, without turning it.
    pub(super) fn parts_of(&self, stored: &Stored<'_>) -> Result<Option<ImageInfo>, DecodeError> {
        if stored.format == SampleFormat::RawU8 {
            return Ok(None);
        }
        let has_parts = match Format::sniff(stored.bytes) {
            Some(Format::Jpeg) => true,
            // No sample of these becomes wider.
            Some(Format::WebP) => self.decoder.options().pixels == PixelType::U8,
            _ => false,
        };
        if !has_parts {
            return Ok(None);
        }
        let info = tl_decode::probe(stored.bytes)?;
        let turned =
            self.decoder.options().exif == Exif::Apply && info.orientation != Orientation::Upright;
        Ok((!turned).then_some(info))
    }

    /// Renders a sample of which the parts that its images need are decoded.
    pub(super) fn render_part(
        &mut self,
        stored: &Stored<'_>,
        info: &ImageInfo,
        drawn: Drawn<'_>,
        mut targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        self.plan((info.width, info.height), drawn)?;
        let pictures = targets.pictures.take();
        let rows = self.outputs.rows(targets)?;
        let request = JpegRequest {
            color: self.decoder.options().color,
            pixels: self.decoder.options().pixels,
            on_damaged: self.decoder.options().on_damaged,
            index: stored.row_index.map(RowIndex::parse).transpose()?,
            ..JpegRequest::default()
        };
        let scale = self.scale(info);
        if let Some(pictures) = pictures
            && let Drawn::At(Draw { sample, .. }) = drawn
            && self.prepare_pictures(sample, stored.bytes, info, &request, scale, pictures)?
        {
            metrics.lap(Stage::Decode);
            return Ok(());
        }
        if let Some(scale) = scale {
            let region =
                union(self.outputs.all_plans().map(|plan| samples_read(&plan.head, scale)));
            let request = JpegRequest { scale, region, ..request };
            match self.decoder.jpeg().decode_planes(stored.bytes, &request) {
                Ok(planes) => {
                    self.damage = planes.decoded().damage;
                    metrics.lap(Stage::Decode);
                    return self.outputs.write(rows, |renderer, plan, out| {
                        renderer.render_planes(plan, scale, &planes, out, metrics)
                    });
                }
                // Lossless files have no planes; what cannot be decoded at all says so below.
                Err(DecodeError::Unsupported(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let region = union(self.outputs.all_plans().map(|plan| plan.head.source()));
        let request = JpegRequest { region, ..request };
        self.damage = self.decoder.jpeg().decode(stored.bytes, &request, &mut self.image)?.damage;
        self.write_region(rows, region, metrics)
    }

    /// As `render_part` of a WebP file, whose pixels alone are decoded.
    pub(super) fn render_webp(
        &mut self,
        stored: &Stored<'_>,
        info: &ImageInfo,
        drawn: Drawn<'_>,
        targets: Targets<'_, '_>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        self.plan((info.width, info.height), drawn)?;
        let rows = self.outputs.rows(targets)?;
        let region = union(self.outputs.all_plans().map(|plan| plan.head.source()));
        let request = WebpRequest { region, color: self.decoder.options().color };
        self.decoder.webp().decode(stored.bytes, &request, &mut self.image)?;
        self.write_region(rows, region, metrics)
    }

    /// Writes the rows of a sample of which `region`, or all, was decoded.
    fn write_region(
        &mut self,
        rows: Rows<'_, '_>,
        region: Option<Rect>,
        metrics: &mut WorkerMetrics,
    ) -> Result<(), SampleFault> {
        self.spread_grey()?;
        metrics.lap(Stage::Decode);
        let Image { width, height, data, .. } = &self.image;
        let Rect { x, y, .. } = region.unwrap_or(Rect::of_size(*width, *height));
        let view = self.outputs.view(data, *width, *height).at(x, y);
        self.outputs
            .write(rows, |renderer, plan, out| renderer.render_view(plan, view, out, metrics))
    }

    /// The scale at which planes are decoded; `None` where pixels are.
    fn scale(&self, info: &ImageInfo) -> Option<Scale> {
        let mode = self.outputs.decode_mode();
        // The grey of colours follows from their pixels.
        let has_planes = match self.outputs.channels() {
            _ if self.outputs.is_wide() => false,
            Channels::Rgb => matches!(info.channels, 1 | 3),
            Channels::Grey => info.channels == 1,
            Channels::Rgba => false,
        };
        if matches!(mode, DecodeMode::Exact | DecodeMode::NvJpeg) || !has_planes {
            return None;
        }
        // The largest one is enough for all images of the sample.
        let scales = self.outputs.all_plans().map(|plan| mode.scale(&plan.head));
        scales.max_by_key(|scale| scale.apply(8))
    }
}

/// The smallest rectangle around all of them.
pub(super) fn union(mut rects: impl Iterator<Item = Rect>) -> Option<Rect> {
    let first = rects.next()?;
    Some(rects.fold(first, |all, rect| {
        let x = all.x.min(rect.x);
        let y = all.y.min(rect.y);
        let right = (all.x + all.width).max(rect.x + rect.width);
        let bottom = (all.y + all.height).max(rect.y + rect.height);
        Rect { x, y, width: right - x, height: bottom - y }
    }))
}
