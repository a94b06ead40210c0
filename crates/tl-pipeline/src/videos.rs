//! Videos: their bytes in place, their indexes, and the rendering of their clips.

mod indexes;
mod pixels;
mod render;
mod stored;

pub(crate) use indexes::VideoIndexes;
pub(crate) use render::ClipRenderer;
pub(crate) use stored::{Until, Video, in_place};
