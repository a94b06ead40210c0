#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod avi;
mod container;
#[cfg(feature = "h264")]
mod decoder;
mod error;
mod figures;
#[cfg(feature = "h264")]
mod h264;
mod index;
mod info;
mod limits;
mod matroska;
mod mp4;
mod packed;
mod packets;
#[cfg(feature = "h264")]
mod picture;
mod plan;
mod read;
#[cfg(feature = "h264")]
mod rgb;
mod stored;

pub use container::Container;
#[cfg(feature = "h264")]
#[cfg_attr(docsrs, doc(cfg(feature = "h264")))]
pub use decoder::FrameDecoder;
pub use error::{CodecError, Limit, Name, VideoError};
pub use figures::{FrameCost, Groups};
pub use index::{Frame, Packet, VideoIndex};
pub use info::{Codec, Color, FrameTimes, Ratio, VideoInfo};
pub use limits::Limits;
#[cfg(feature = "h264")]
#[cfg_attr(docsrs, doc(cfg(feature = "h264")))]
pub use picture::{Chroma, Picture, Plane};
pub use plan::{DecodePlan, Run};
pub use read::ReadAt;
#[cfg(feature = "h264")]
#[cfg_attr(docsrs, doc(cfg(feature = "h264")))]
pub use rgb::{Parity, Region};
