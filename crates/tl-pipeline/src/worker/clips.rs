//! The row of a video: its clips, of the packets that they need, where they lie.

#[cfg(feature = "arrow")]
use crate::error::SampleFault;
use crate::fetch::RowSource;
use crate::row::Interrupted;
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::videos::{Until, Video, in_place};
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
    let is_over = || source.run.is_over();
    #[cfg(feature = "arrow")]
    if let Some(rows) = crate::lerobot::of(dataset, source.sample())? {
        let mut read = 0;
        let mut size = [0; 2];
        for number in 0..rows.camera_count() {
            let camera = rows.camera(number);
            let rendered = camera.open().map_err(SampleFault::from).and_then(|stored| {
                let stored = Video::new(stored);
                let video = Until { video: &stored, is_over: &is_over };
                let draw = source.draw;
                let rendered = clips.render_camera(videos, &camera, &video, draw, out, metrics);
                read += stored.read.get();
                rendered
            });
            if is_over() {
                return Err(Interrupted::Over);
            }
            size = rendered.map_err(|fault| camera.fault(fault))?;
        }
        metrics.read(read);
        return Ok(size);
    }
    let rendered = if let Some(stored) = in_place(dataset, source.sample())? {
        let stored = Video::new(stored);
        let video = Until { video: &stored, is_over: &is_over };
        let rendered = clips.render(dataset, videos, &video, source.draw, out, metrics);
        metrics.read(stored.read.get());
        rendered
    } else {
        check_stored(&dataset.facts(source.sample())?, limits.stored)?;
        source.bytes(bytes, metrics)?;
        metrics.lap(Stage::Read);
        let video = Until { video: &*bytes, is_over: &is_over };
        clips.render(dataset, videos, &video, source.draw, out, metrics)
    };
    // A sample whose work was broken off has no fault.
    if is_over() { Err(Interrupted::Over) } else { Ok(rendered?) }
}
