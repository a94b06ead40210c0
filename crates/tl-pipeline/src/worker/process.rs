//! From a sample's number to its row: read, decode, render.

use tbl_format::SampleFormat;
use tl_decode::{Damage, Image};
use tl_transform::{Draw, Plan};

use crate::batch::ImageSpec;
use crate::error::SampleFault;
use crate::form::Form;
use crate::run::Run;
use crate::sample::{Stored, Target};
use crate::stage::Stage;
use crate::worker::{Scratch, trim};

/// A sample that is in its row.
pub(super) struct Processed {
    pub(super) label: Option<i64>,
    /// Height and width of the image.
    pub(super) size: [u32; 2],
    pub(super) damage: Option<Damage>,
}

/// Reads, decodes and renders one sample.
pub(super) fn process(
    run: &Run,
    scratch: &mut Scratch,
    draw: Draw,
    form: &Form,
    (out, image): (&mut [u8], &mut Image),
) -> Result<Processed, SampleFault> {
    let (dataset, index) = (run.dataset(), draw.sample);
    trim(&mut image.data);
    let Some(renderer) = &mut scratch.renderer else {
        (image.width, image.height) = (0, 0);
        dataset.read_into(index, &mut image.data)?;
        scratch.tally.read(image.data.len());
        scratch.tally.lap(Stage::Read);
        return Ok(Processed { label: dataset.label(index), size: [0; 2], damage: None });
    };
    let facts = dataset.facts(index)?;
    dataset.read_into(index, &mut scratch.bytes)?;
    scratch.tally.read(scratch.bytes.len());
    let (format, size) = (facts.format, (facts.width, facts.height));
    let indexed =
        format == SampleFormat::Jpeg && dataset.row_index_into(index, &mut scratch.row_index)?;
    let row_index = indexed.then_some(&scratch.row_index[..]);
    let stored = Stored { format, size, bytes: &mut scratch.bytes, row_index };
    let target = match form.spec {
        Some(ImageSpec { width, height, .. }) if form.is_padded => {
            Target::Padded { row: out, size: (width, height) }
        }
        Some(_) => Target::Row(out),
        None => Target::Image(image),
    };
    scratch.tally.lap(Stage::Read);
    let plans = renderer.render_timed(stored, draw, target, &mut scratch.tally)?;
    let size = plans.first().map_or((0, 0), Plan::output_size);
    let (label, damage) = (dataset.label(index), renderer.damage());
    Ok(Processed { label, size: [size.1, size.0], damage })
}
