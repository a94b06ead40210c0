//! From a sample's number to its row: read, decode, render.

use tbl_format::SampleFormat;
use tl_decode::{Damage, Image};
use tl_transform::Draw;

use crate::error::SampleFault;
use crate::run::Run;
use crate::sample::{Stored, Target};
use crate::worker::{Scratch, trim};

/// A sample that is in its row.
pub(super) struct Processed {
    pub(super) label: Option<i64>,
    pub(super) damage: Option<Damage>,
}

/// Reads, decodes and renders one sample.
pub(super) fn process(
    run: &Run,
    scratch: &mut Scratch,
    draw: Draw,
    out: &mut [u8],
    image: &mut Image,
) -> Result<Processed, SampleFault> {
    let (dataset, index) = (run.dataset(), draw.sample);
    trim(&mut image.data);
    let Some(renderer) = &mut scratch.renderer else {
        (image.width, image.height) = (0, 0);
        dataset.read_into(index, &mut image.data)?;
        run.shared().counters.read(image.data.len());
        return Ok(Processed { label: dataset.label(index), damage: None });
    };
    let facts = dataset.facts(index)?;
    dataset.read_into(index, &mut scratch.bytes)?;
    run.shared().counters.read(scratch.bytes.len());
    let (format, size) = (facts.format, (facts.width, facts.height));
    let indexed =
        format == SampleFormat::Jpeg && dataset.row_index_into(index, &mut scratch.row_index)?;
    let row_index = indexed.then_some(&scratch.row_index[..]);
    let stored = Stored { format, size, bytes: &mut scratch.bytes, row_index };
    let target = if run.spec().is_some() { Target::Row(out) } else { Target::Image(image) };
    renderer.render(stored, draw, target)?;
    Ok(Processed { label: dataset.label(index), damage: renderer.damage() })
}
