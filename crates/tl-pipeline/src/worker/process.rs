//! From a sample's number to its row: read, decode, render.

use tbl_format::SampleFormat;
use tbl_io::Facts;
use tl_decode::Damage;
use tl_handoff::slab::Parts;
use tl_handoff::sync::Arc;
use tl_transform::{Draw, Plan};

use crate::row::RowExtras;

use crate::cache::{CacheKind, PayloadForm};
use crate::dataset::Dataset;
use crate::error::SampleFault;
use crate::fields::{Fields, Placed};
use crate::form::Form;
use crate::form::ImageSpec;
use crate::note::LoaderNote;
use crate::reader::{self, ReadRow};
use crate::row::Interrupted;
use crate::run::Run;
use crate::sample::{Input, SampleRenderer, Stored, Target};
use crate::scratch::{Scratch, trim};
use crate::stage::Stage;
use crate::tally::Tally;
use crate::work::Work;
use crate::worker::cached;

/// A sample that is in its row.
pub(super) struct Processed {
    pub(super) label: Option<i64>,
    /// Height and width of the image.
    pub(super) size: [u32; 2],
    pub(super) damage: Option<Damage>,
}

/// Makes one sample's row: its image, and its fields as they lie on the image.
pub(super) fn process(
    run: &Run,
    scratch: &mut Scratch,
    (draw, row): (Draw, &ReadRow),
    form: &Form,
    mut parts: Parts<'_, RowExtras>,
) -> Result<Processed, Interrupted> {
    parts.extra.fields.clear();
    if let Some(gatherer) = &run.shared().gatherer {
        let Scratch { table, tally, .. } = scratch;
        let label = gatherer.gather(run.dataset(), draw, &mut parts, table)?;
        tally.read(gatherer.row_bytes());
        tally.lap(Stage::Read);
        return Ok(Processed { label, size: [0; 2], damage: None });
    }
    let Parts { image: out, mask, extra, .. } = parts;
    let processed = process_image(run, scratch, (draw, row), form, (out, &mut *extra))?;
    if run.config().fields == Fields::default() {
        return Ok(processed);
    }
    let Scratch { renderer, annotator, tally, limits, .. } = scratch;
    let fields = &mut extra.fields;
    tally.read(annotator.read(run.dataset(), draw.sample, limits.stored, fields)?);
    tally.lap(Stage::Read);
    let placed = renderer.as_ref().and_then(|renderer| {
        let room = form.spec.map(|spec| (spec.width, spec.height));
        Some(Placed { plan: renderer.plans().first()?, size: renderer.image_size(), room })
    });
    if let Some(placed) = placed {
        annotator.place(&placed, fields, mask)?;
        tally.lap(Stage::Transform);
    }
    Ok(processed)
}

/// Reads, decodes and renders one sample.
fn process_image(
    run: &Run,
    scratch: &mut Scratch,
    (draw, row): (Draw, &ReadRow),
    form: &Form,
    (out, extra): (&mut [u8], &mut RowExtras),
) -> Result<Processed, Interrupted> {
    let (dataset, index, caches) = (run.dataset(), draw.sample, run.caches());
    let RowExtras { image, view_of, .. } = extra;
    trim(&mut image.data, scratch.limits.keep);
    let label = dataset.try_label(index)?;
    let view = if run.config().work == Work::Views { dataset.view(index)? } else { None };
    if let Some(view) = view {
        (image.width, image.height) = (0, 0);
        image.data.clear();
        *view_of = Some(Arc::clone(dataset));
        scratch.tally.read(view.len());
        scratch.tally.lap(Stage::Read);
        return Ok(Processed { label, size: [0; 2], damage: None });
    }
    if run.room().is_bounded() {
        check_stored(&dataset.facts(index)?, scratch.limits.stored)?;
    }
    if scratch.renderer.is_none() {
        (image.width, image.height) = (0, 0);
        if cached::fetch(run, (draw, row), &mut image.data, &mut scratch.tally)?.is_none() {
            reader::fetch(run, (index, row), &mut image.data, &mut scratch.tally)?;
            scratch.tally.read(image.data.len());
        }
        scratch.tally.lap(Stage::Read);
        return Ok(Processed { label, size: [0; 2], damage: None });
    }
    let target = match form.spec {
        Some(ImageSpec { width, height, .. }) if form.is_padded => {
            Target::Padded { row: out, size: (width, height) }
        }
        Some(_) => Target::Row(out),
        None => Target::Image(image),
    };
    let plans = if caches.has(CacheKind::Decoded) {
        cached::render(run, scratch, (draw, row), target)?
    } else {
        render(run, scratch, (draw, row), target)?
    };
    let size = plans.first().map_or((0, 0), Plan::output_size);
    let damage = scratch.renderer.as_ref().and_then(SampleRenderer::damage);
    if let Some(lost) = scratch.renderer.as_mut().and_then(SampleRenderer::take_reductions) {
        run.shared().note(LoaderNote::Reduced { sample: index, lost });
    }
    Ok(Processed { label, size: [size.1, size.0], damage })
}

/// Checks what reading a sample takes: what is stored of a compressed one lies behind it.
fn check_stored(facts: &Facts, limit: u64) -> Result<(), SampleFault> {
    let packed = if facts.stored_bytes == facts.bytes { 0 } else { facts.stored_bytes };
    let bytes = facts.bytes.saturating_add(packed);
    if bytes > limit { Err(SampleFault::StoredSize { bytes, limit }) } else { Ok(()) }
}

fn render<'s>(
    run: &Run,
    scratch: &'s mut Scratch,
    (draw, row): (Draw, &ReadRow),
    target: Target<'_>,
) -> Result<&'s [Plan], Interrupted> {
    let Scratch { bytes, renderer, tally, .. } = scratch;
    let (format, size) = match cached::fetch(run, (draw, row), bytes, tally)? {
        Some(form) => form,
        None => read(run, (draw.sample, row), bytes, tally)?,
    };
    let row_index = row_index(run.dataset(), draw.sample, format, &mut scratch.row_index)?;
    let stored = Stored { format, size, bytes, row_index };
    tally.lap(Stage::Read);
    let renderer = renderer.as_mut().expect("samples are decoded");
    Ok(renderer.render_timed(Input::Stored(stored), draw, target, tally)?)
}

/// Replaces `bytes` by the stored bytes of a sample, and says what they are.
pub(super) fn read(
    run: &Run,
    (index, row): (u64, &ReadRow),
    bytes: &mut Vec<u8>,
    tally: &mut Tally,
) -> Result<PayloadForm, Interrupted> {
    let facts = run.dataset().facts(index)?;
    reader::fetch(run, (index, row), bytes, tally)?;
    tally.read(bytes.len());
    Ok((facts.format, (facts.width, facts.height)))
}

/// The row index of a JPEG, where one is stored.
pub(super) fn row_index<'a>(
    dataset: &Dataset,
    index: u64,
    format: SampleFormat,
    bytes: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>, SampleFault> {
    let indexed = format == SampleFormat::Jpeg && dataset.row_index_into(index, bytes)?;
    Ok(indexed.then_some(&bytes[..]))
}
