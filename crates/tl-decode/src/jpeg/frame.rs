//! The frame header (ITU-T T.81 B.2.2) and what the application segments say about its colours.

use super::marker::{self, Segment};
use super::scan::MAX_COMPONENTS;
use crate::error::{DecodeError, Defect, Feature};
use crate::format::Format;
use crate::orientation::{Orientation, exif, xmp};

/// The coding process of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Process {
    /// Baseline and extended sequential, Huffman coded.
    Sequential,
    /// Progressive, Huffman coded.
    Progressive,
    /// Lossless, Huffman coded.
    Lossless,
    /// Arithmetic or hierarchical.
    Other,
}

/// One component of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks across an MCU of an interleaved scan: the horizontal sampling factor.
    pub(super) across: u8,
    /// Blocks down an MCU.
    pub(super) down: u8,
    /// The number of its quantiser.
    pub(super) quantizer: u8,
}

/// The frame header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The low half of the SOF marker.
    pub(super) kind: u8,
    pub(super) process: Process,
    pub(super) precision: u8,
    pub(super) width: u16,
    pub(super) height: u16,
    /// Components the file has; `components` holds no more than four of them.
    pub(super) component_count: u8,
    components: [Component; MAX_COMPONENTS],
    /// The largest sampling factors of any component.
    pub(super) max_sampling: (u8, u8),
}

impl Frame {
    pub(super) fn parse(segment: &Segment<'_>) -> Result<Self, DecodeError> {
        const HEAD: usize = 6;
        const PER_COMPONENT: usize = 3;
        let Some((&[precision, h1, h0, w1, w0, component_count], rest)) =
            segment.data.split_first_chunk::<HEAD>()
        else {
            return Err(marker::truncated("frame header", segment.at, HEAD, segment.data.len()));
        };
        let need = usize::from(component_count) * PER_COMPONENT;
        if rest.len() != need {
            return Err(marker::truncated("frame components", segment.at, need, rest.len()));
        }
        let width = u16::from_be_bytes([w1, w0]);
        if width == 0 || component_count == 0 {
            return Err(marker::value("frame width or component count", 0, segment.at));
        }
        let mut components = [Component::default(); MAX_COMPONENTS];
        let mut max_sampling = (1, 1);
        let (specs, _) = rest.as_chunks::<PER_COMPONENT>();
        for (index, &[id, factors, quantizer]) in specs.iter().enumerate() {
            let across = factors >> 4;
            let down = factors & 0x0F;
            if !(1..=4).contains(&across) || !(1..=4).contains(&down) {
                return Err(marker::value("sampling factors", factors.into(), segment.at));
            }
            max_sampling = (across.max(max_sampling.0), down.max(max_sampling.1));
            if let Some(component) = components.get_mut(index) {
                *component = Component { id, across, down, quantizer };
            }
        }
        Ok(Self {
            kind: segment.marker & 0x0F,
            process: match segment.marker {
                marker::SOF0 | marker::SOF1 => Process::Sequential,
                marker::SOF2 => Process::Progressive,
                marker::SOF3 => Process::Lossless,
                _ => Process::Other,
            },
            precision,
            width,
            height: u16::from_be_bytes([h1, h0]),
            component_count,
            components,
            max_sampling,
        })
    }

    pub(super) fn components(&self) -> &[Component] {
        let count = usize::from(self.component_count).min(MAX_COMPONENTS);
        &self.components[..count]
    }

    pub(super) fn size(&self) -> (u32, u32) {
        (self.width.into(), self.height.into())
    }

    /// MCUs of an interleaved scan, across and down.
    pub(super) fn mcus(&self) -> (u32, u32) {
        let (across, down) = self.max_sampling;
        let (width, height) = self.size();
        (width.div_ceil(u32::from(across) * 8), height.div_ceil(u32::from(down) * 8))
    }

    /// The blocks of a component that hold samples of the image, across and down.
    pub(super) fn blocks(&self, component: &Component) -> (u32, u32) {
        let (max_across, max_down) = self.max_sampling;
        let (width, height) = self.size();
        (
            (width * u32::from(component.across)).div_ceil(u32::from(max_across) * 8),
            (height * u32::from(component.down)).div_ceil(u32::from(max_down) * 8),
        )
    }

    /// Refuses by name what is not decoded.
    pub(super) fn require_supported(&self) -> Result<(), DecodeError> {
        if self.process == Process::Other {
            return Err(Feature::JpegFrame(self.kind).into());
        }
        if self.precision != 8 {
            return Err(Feature::JpegPrecision(self.precision).into());
        }
        if !matches!(self.component_count, 1 | 3 | 4) {
            return Err(Feature::JpegComponents(self.component_count).into());
        }
        if self.height == 0 {
            return Err(Feature::JpegHeightInDnl.into());
        }
        Ok(())
    }

    /// Refuses a size that the file cannot fill: each block takes at least one bit of one scan.
    pub(super) fn require_plausible(&self, file_bytes: usize) -> Result<(), DecodeError> {
        let blocks = u64::from(self.width.div_ceil(8)) * u64::from(self.height.div_ceil(8));
        let need = blocks.div_ceil(8);
        let have = file_bytes as u64;
        if need > have {
            let what = "entropy-coded data (at least)";
            return Err(
                Defect::Truncated { format: Format::Jpeg, what, offset: 0, need, have }.into()
            );
        }
        Ok(())
    }
}

/// The colour space of the components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlaneColor {
    /// One plane of grey.
    #[default]
    Grey,
    /// Luma and two planes of colour difference.
    YCbCr,
    /// Red, green and blue.
    Rgb,
    /// Four inks as Adobe stores them: 0 is full ink.
    Cmyk,
    /// `YCbCr` of the first three inks, and black; as Adobe stores them.
    Ycck,
}

/// The headers before the first scan, except tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prologue {
    pub(super) frame: Option<Frame>,
    /// Whether there was an EXIF block; the first one counts.
    exif: bool,
    orientation: Option<Orientation>,
    /// That of the last XMP packet.
    xmp_orientation: Option<Orientation>,
    jfif: bool,
    /// The transform flag of an Adobe segment.
    adobe: Option<u8>,
}

impl Prologue {
    /// Takes in a segment; those of no interest are passed over.
    pub(super) fn read(&mut self, segment: &Segment<'_>) -> Result<(), DecodeError> {
        const JFIF_BYTES: usize = 14;
        const ADOBE_TRANSFORM: usize = 11;
        let data = segment.data;
        match segment.marker {
            marker::APP0 => {
                self.jfif |= data.len() >= JFIF_BYTES && data.starts_with(b"JFIF\0");
            }
            marker::APP1 if data.starts_with(b"Exif\0\0") => {
                if !self.exif {
                    self.orientation = exif::orientation(data);
                }
                self.exif = true;
            }
            marker::APP1 => {
                if let Some(packet) = data.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0") {
                    self.xmp_orientation = xmp::orientation(packet);
                }
            }
            marker::APP14 if data.starts_with(b"Adobe") => {
                self.adobe = data.get(ADOBE_TRANSFORM).copied().or(self.adobe);
            }
            sof if marker::is_frame(sof) => {
                if self.frame.is_some() {
                    return Err(marker::stray("second frame header", segment.at));
                }
                self.frame = Some(Frame::parse(segment)?);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn require_frame(&self) -> Result<Frame, DecodeError> {
        self.frame.ok_or(marker::missing("a frame header before the first scan"))
    }

    pub(super) fn orientation(&self) -> Orientation {
        self.orientation.or(self.xmp_orientation).unwrap_or_default()
    }

    /// The colours of `frame`, guessed as libjpeg does where the file does not say. `None` for a
    /// number of components that has no meaning.
    pub(super) fn color(&self, frame: &Frame) -> Option<PlaneColor> {
        match frame.components() {
            [_] => Some(PlaneColor::Grey),
            [a, b, c] => {
                let ids = [a.id, b.id, c.id];
                let lossless = frame.process == Process::Lossless && ids == [1, 2, 3];
                let is_rgb = match self.adobe {
                    _ if self.jfif => false,
                    Some(transform) => transform == 0,
                    None => ids == *b"RGB" || lossless,
                };
                Some(if is_rgb { PlaneColor::Rgb } else { PlaneColor::YCbCr })
            }
            [_, _, _, _] => Some(match self.adobe {
                Some(0) | None => PlaneColor::Cmyk,
                Some(_) => PlaneColor::Ycck,
            }),
            _ => None,
        }
    }
}

/// Reads all segments up to the first scan, without looking into the tables.
pub(super) fn read_prologue(bytes: &[u8]) -> Result<(Frame, Prologue), DecodeError> {
    let mut walk = marker::Walk::new(bytes)?;
    let mut prologue = Prologue::default();
    loop {
        let segment = walk.next_segment()?;
        match segment.marker {
            marker::SOS => return prologue.require_frame().map(|frame| (frame, prologue)),
            marker::EOI => return Err(marker::missing("a scan")),
            _ => prologue.read(&segment)?,
        }
    }
}
