#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod avi;
mod container;
mod error;
mod index;
mod info;
mod limits;
mod matroska;
mod mp4;
mod packed;
mod packets;
mod plan;
mod read;

pub use container::Container;
pub use error::{Limit, VideoError};
pub use index::{Frame, Packet, VideoIndex};
pub use info::{Codec, Color, FrameTimes, Ratio, VideoInfo};
pub use limits::Limits;
pub use plan::{DecodePlan, Run};
pub use read::ReadAt;
