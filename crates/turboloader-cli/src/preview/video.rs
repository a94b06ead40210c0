//! `tl preview` of one video: frames with their times.

use std::num::NonZeroUsize;

use turboloader::sheet::{BACKGROUND, BRIGHT, Canvas, DIM, Painter, Sheet, evenly_spaced};
use turboloader::video::{VideoBytes, show_frames};

use super::{Args, GRID_SAMPLES, failure};
use crate::failure::{Failure, Verdict};
use crate::output::write_file;

/// Draws frames that are spread over the video.
pub(super) fn run(args: &Args, video: &VideoBytes) -> Result<Verdict, Failure> {
    if args.recipe.is_some() || args.ops || args.view.is_given() {
        let what =
            "options that select samples, --recipe and --ops are for data sets, not one video";
        return Err(Failure::Usage { what });
    }
    let index = video.index()?;
    let count = args.count.map_or(GRID_SAMPLES, NonZeroUsize::get);
    let frames = evenly_spaced(index.frame_count(), count);
    let sheet = Sheet::new(frames.len(), 0, args.size).map_err(failure)?;
    let mut canvas = Canvas::new(sheet.width, sheet.height, BACKGROUND);
    let mut painter = Painter::new(args.size);
    let base = index.info().time_base;
    let shown = show_frames(&index, video, &frames, &mut |number, image| {
        let Ok(place) = frames.binary_search(&number) else { return };
        let at = sheet.corner(place, 0);
        painter.picture(&mut canvas, at, image);
        let start = index.frame(number).map_or(0.0, |frame| base.seconds(frame.pts));
        painter.caption(&mut canvas, at, 0, &format!("frame {number}"), BRIGHT);
        painter.caption(&mut canvas, at, 1, &format!("{start:.3} s"), DIM);
    });
    shown.map_err(|error| video.fault(error))?;
    write_file(&args.output, args.force, |file| canvas.write_png(file))?;
    Ok(Verdict::Good)
}
