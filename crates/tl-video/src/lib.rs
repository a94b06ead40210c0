#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "av1")]
mod av1;
mod avi;
#[cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9"))]
mod codec;
mod container;
#[cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9"))]
mod decoder;
mod error;
mod figures;
#[cfg(feature = "h264")]
mod h264;
#[cfg(feature = "hevc")]
mod h265;
mod index;
mod info;
mod limits;
mod matroska;
mod mp4;
#[cfg(any(feature = "h264", feature = "hevc"))]
mod nal;
mod packed;
mod packets;
#[cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9"))]
mod picture;
mod plan;
mod read;
#[cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9"))]
mod rgb;
mod stored;
#[cfg(feature = "vp9")]
mod vp9;

pub use container::Container;
#[cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9"))]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9")))
)]
pub use decoder::FrameDecoder;
pub use error::{CodecError, Limit, Name, VideoError};
pub use figures::{FrameCost, Groups};
pub use index::{Frame, Packet, VideoIndex};
pub use info::{Codec, Color, FrameTimes, Ratio, VideoInfo};
pub use limits::Limits;
#[cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9"))]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9")))
)]
pub use picture::{Chroma, Picture, Plane};
pub use plan::{DecodePlan, Run};
pub use read::ReadAt;
#[cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9"))]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "av1", feature = "h264", feature = "hevc", feature = "vp9")))
)]
pub use rgb::{Parity, Region};
