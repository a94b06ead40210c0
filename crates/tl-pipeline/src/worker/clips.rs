//! The row of a video: its clips, of the packets that they need, where they lie.

use crate::fetch::RowSource;
use crate::row::Interrupted;
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::videos::{Video, in_place};
use crate::worker::process::check_stored;

/// Makes the clips of a sample, and returns height and width of their frames.
pub(super) fn render(
    source: RowSource<'_>,
    scratch: &mut Scratch,
    out: &mut [u8],
) -> Result<[u32; 2], Interrupted> {
    let Scratch { clips: Some(clips), bytes, limits, metrics, .. } = scratch else {
        unreachable!("workers on clips have a renderer for them")
    };
    let dataset = source.run.dataset();
    let videos = &source.run.shared().videos;
    if let Some(stored) = in_place(dataset, source.sample())? {
        let video = Video::new(stored);
        let rendered = clips.render(dataset, videos, &video, source.draw, out, metrics);
        metrics.read(video.read.get());
        return Ok(rendered?);
    }
    check_stored(&dataset.facts(source.sample())?, limits.stored)?;
    source.bytes(bytes, metrics)?;
    metrics.lap(Stage::Read);
    Ok(clips.render(dataset, videos, &*bytes, source.draw, out, metrics)?)
}
