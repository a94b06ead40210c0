#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "avif")]
mod avif;
mod bmp;
mod custom;
mod decoder;
mod error;
mod format;
mod gif;
mod image;
mod jpeg;
#[cfg(feature = "jpeg2000")]
mod jpeg2000;
#[cfg(feature = "jxl")]
mod jxl;
mod limits;
mod options;
mod orientation;
mod pixel;
mod png;
mod pnm;
mod qoi;
mod tiff;
mod webp;
mod wide;

pub use custom::{CustomDecoder, CustomError, CustomFault, Decode, Decoders, FindError, ImageForm};
pub use decoder::{Decoder, probe};
pub use error::{CodecError, DecodeError, Defect, Feature, Limit};
pub use format::Format;
pub use image::{Image, ImageInfo, PixelType, Reductions, SampleFormat};
pub use jpeg::{
    Damage, Decoded, EntropyComponent, EntropyRow, EntropyRowEnd, EntropyRows, HuffmanCodes,
    JpegCoefficients, JpegComponent, JpegDecoder, JpegParts, JpegRequest, OnDamaged, PartStage,
    Plane, PlaneColor, Planes, RowIndex, Upsampling,
};
pub use limits::Limits;
pub use options::{Color, DecodeOptions, Exif};
pub use orientation::Orientation;
pub use tl_simd::Level;
pub use tl_simd::jpeg::Scale;
pub use tl_simd::resample::Rect;
pub use webp::{WebpDecoder, WebpRequest};
