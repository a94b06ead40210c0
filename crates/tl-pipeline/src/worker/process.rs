//! From a sample's number to its row: fetch, decode, render.

use tbl_io::{Facts, ReadError, is_transient};
use tl_decode::Damage;
use tl_handoff::slab::Parts;
use tl_handoff::sync::Arc;
use tl_transform::Plan;

use crate::cache::CacheKind;
use crate::dataset::Dataset;
use crate::error::SampleFault;
use crate::fetch::RowSource;
use crate::fields::{Fields, Placed};
use crate::layout::BatchLayout;
use crate::layout::ImageSpec;
use crate::row::{Interrupted, RowExtras};
use crate::sample::{Drawn, Followers, Input, SampleRenderer, Target, Targets};
use crate::scratch::{Scratch, trim};
use crate::stage::Stage;
use crate::work::Work;
use crate::worker::{cached, clips, custom};

/// A sample that is in its row.
pub(super) struct Processed {
    pub(super) label: Option<i64>,
    /// Height and width of the image.
    pub(super) size: [u32; 2],
    pub(super) damage: Option<Damage>,
}

/// Makes one sample's row: its image, and its fields as they lie on the image.
pub(super) fn process(
    source: RowSource<'_>,
    scratch: &mut Scratch,
    layout: &BatchLayout,
    mut parts: Parts<'_, RowExtras>,
) -> Result<Processed, Interrupted> {
    let run = source.run;
    parts.extra.fields.clear();
    if let Some(gatherer) = &run.shared().gatherer {
        let Scratch { table, metrics, .. } = scratch;
        let label = gatherer.gather(run.dataset(), source.draw, &mut parts, table)?;
        metrics.read(gatherer.row_bytes());
        metrics.lap(Stage::Read);
        return Ok(Processed { label, size: [0; 2], damage: None });
    }
    if let Some(tokens) = &run.shared().tokens {
        let Scratch { bytes, tokens: scratch, metrics, .. } = scratch;
        let dataset = run.dataset();
        if tokens.is_read_elsewhere() {
            source.bytes(bytes, metrics)?;
            tokens.convert(dataset, source.draw, &mut parts, bytes, scratch)?;
        } else {
            metrics.read(tokens.gather(dataset, source.draw, &mut parts, bytes, scratch)?);
        }
        metrics.lap(Stage::Read);
        return Ok(Processed { label: None, size: [0; 2], damage: None });
    }
    // A user's transform between plans takes annotations; else a damaged image costs nothing more.
    let fields_first = scratch.renderer.as_ref().is_some_and(SampleRenderer::is_linked);
    if fields_first {
        read_fields(source, scratch, &mut parts)?;
    }
    let processed = process_image(source, scratch, layout, parts.reborrow())?;
    if run.config().fields == Fields::default() {
        return Ok(processed);
    }
    if !fields_first {
        read_fields(source, scratch, &mut parts)?;
    }
    let Scratch { renderer, annotator, images, metrics, .. } = scratch;
    let Parts { mask, extra, mut columns, .. } = parts;
    let fields = &mut extra.fields;
    let placed = renderer.as_ref().map(|renderer| {
        let room = layout.spec.map(|spec| (spec.width, spec.height));
        Placed { plans: renderer.plans(), size: renderer.image_size(), room }
    });
    if let Some(placed) = placed {
        annotator.place(&placed, fields, mask, &mut columns)?;
        metrics.lap(Stage::Transform);
        for image in images {
            image.render(annotator, &placed, source.draw, &mut columns, metrics)?;
            if let Some(note) = image.take_reduced(source.sample()) {
                run.shared().note(note);
            }
        }
    }
    Ok(processed)
}

/// Reads the fields of a sample, and puts those into its row that do not move with the image.
fn read_fields(
    source: RowSource<'_>,
    scratch: &mut Scratch,
    parts: &mut Parts<'_, RowExtras>,
) -> Result<(), Interrupted> {
    let Scratch { annotator, metrics, limits, .. } = scratch;
    let Parts { extra, columns, .. } = parts;
    let dataset = source.run.dataset();
    let fields = &mut extra.fields;
    metrics.read(annotator.read(dataset, source.sample(), limits.stored, fields)?);
    annotator.write_values(limits.stored, columns)?;
    metrics.lap(Stage::Read);
    Ok(())
}

/// The sample where it is mapped. `None` if it is not, and if the mapping is lost by a page that
/// could not be read: the file is not, and its bytes are copied.
fn view(dataset: &Dataset, index: u64) -> Result<Option<&[u8]>, ReadError> {
    match dataset.view(index) {
        Err(error) if is_transient(&error) => Ok(None),
        view => view,
    }
}

/// Fetches, decodes and renders one sample.
fn process_image(
    source: RowSource<'_>,
    scratch: &mut Scratch,
    layout: &BatchLayout,
    parts: Parts<'_, RowExtras>,
) -> Result<Processed, Interrupted> {
    let Parts { image: out, extra, mut columns, .. } = parts;
    let run = source.run;
    let dataset = run.dataset();
    let index = source.sample();
    extra.clear_pictures();
    let RowExtras { image, view_of, pictures, erasures, .. } = extra;
    trim(&mut image.data, scratch.limits.keep);
    let label = dataset.try_label(index)?;
    let view = if run.config().work == Work::Views { view(dataset, index)? } else { None };
    if let Some(view) = view {
        (image.width, image.height) = (0, 0);
        image.data.clear();
        *view_of = Some(Arc::clone(dataset));
        scratch.metrics.read(view.len());
        scratch.metrics.lap(Stage::Read);
        return Ok(Processed { label, size: [0; 2], damage: None });
    }
    if scratch.clips.is_some() {
        let size = clips::render(source, scratch, out)?;
        return Ok(Processed { label, size, damage: None });
    }
    if run.memory().is_bounded() {
        check_stored(&dataset.facts(index)?, scratch.limits.stored)?;
    }
    if scratch.renderer.is_none() {
        (image.width, image.height) = (0, 0);
        source.bytes(&mut image.data, &mut scratch.metrics)?;
        scratch.metrics.lap(Stage::Read);
        return Ok(Processed { label, size: [0; 2], damage: None });
    }
    let target = match layout.spec {
        Some(ImageSpec { width, height, .. }) if layout.is_padded => {
            Target::Padded { row: out, size: (width, height) }
        }
        Some(_) => Target::Row(out),
        None => Target::Image(image),
    };
    let targets = Targets {
        first: target,
        others: Some(&mut columns),
        followers: None,
        pictures: Some(pictures),
    };
    let plans = if run.caches().has(CacheKind::Decoded) {
        cached::render(source, scratch, targets)?
    } else {
        render(source, scratch, targets)?
    };
    let size = plans.first().map_or((0, 0), Plan::output_size);
    if let Some(erasing) = &mut scratch.erasing {
        let plans = scratch.renderer.as_ref().map_or(&[][..], SampleRenderer::plans);
        erasing.draw(source.draw, plans, erasures)?;
    }
    let damage = scratch.renderer.as_ref().and_then(SampleRenderer::damage);
    if let Some(note) = scratch.renderer.as_mut().and_then(|renderer| renderer.take_reduced(index))
    {
        run.shared().note(note);
    }
    Ok(Processed { label, size: [size.1, size.0], damage })
}

/// Checks the memory for reading a sample: the stored bytes of a compressed one follow the unpacked
/// ones.
pub(super) fn check_stored(facts: &Facts, limit: u64) -> Result<(), SampleFault> {
    let packed = if facts.stored_bytes == facts.bytes { 0 } else { facts.stored_bytes };
    let bytes = facts.bytes.saturating_add(packed);
    if bytes > limit { Err(SampleFault::StoredSize { bytes, limit }) } else { Ok(()) }
}

fn render<'s>(
    source: RowSource<'_>,
    scratch: &'s mut Scratch,
    targets: Targets<'_, '_>,
) -> Result<&'s [Plan], Interrupted> {
    let Scratch { bytes, row_index, renderer, annotator, limits, metrics, .. } = scratch;
    let followers = Some(Followers { annotator, limit: limits.stored });
    let targets = Targets { followers, ..targets };
    let stored = source.stored(bytes, row_index, metrics)?;
    let renderer = renderer.as_mut().expect("samples are decoded");
    let drawn = Drawn::At(source.draw);
    if custom::decode(source, renderer, &stored, metrics)? {
        return Ok(renderer.render_decoded(drawn, targets, metrics)?);
    }
    Ok(renderer.render_timed(Input::Stored(stored), drawn, targets, metrics)?)
}
