//! Where the bytes and the pixels of a sample come from when there are caches.

use tbl_format::SampleFormat;
use tl_transform::{Draw, Plan};

use crate::cache::{CacheKind, PayloadForm};
use crate::reader::{self, ReadRow};
use crate::row::Interrupted;
use crate::run::Run;
use crate::sample::{Input, Stored, Target};
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::tally::Tally;
use crate::worker::process::{read, row_index};

/// Replaces `bytes` by the stored bytes of a sample, and says what they are. `None` when no cache
/// has to do with them.
pub(super) fn fetch(
    run: &Run,
    (draw, row): (Draw, &ReadRow),
    bytes: &mut Vec<u8>,
    tally: &mut Tally,
) -> Result<Option<PayloadForm>, Interrupted> {
    let (caches, kind) = (run.caches(), CacheKind::Encoded);
    if !caches.has(kind) {
        return Ok(None);
    }
    let wanted = run.wanted(draw);
    if let Some(block) = caches.held(kind, wanted) {
        bytes.clear();
        bytes.extend_from_slice(block.bytes());
        return Ok(Some(block.form()));
    }
    let facts = wanted.dataset.facts(wanted.sample)?;
    let form = (facts.format, (facts.width, facts.height));
    if let Err(name) = caches.read(kind, wanted, (&facts, facts.bytes), bytes) {
        reader::fetch(run, (wanted.sample, row), bytes, tally)?;
        tally.read(bytes.len());
        caches.keep(kind, wanted, name, bytes, form);
    }
    Ok(Some(form))
}

/// Renders a sample from its pixels, which are decoded whole and kept if they are not there yet.
/// Decoding all of an image and part of it give the same pixels, but not the same errors: whatever
/// is wrong with it is left to the way without a cache.
pub(super) fn render<'s>(
    run: &Run,
    scratch: &'s mut Scratch,
    (draw, row): (Draw, &ReadRow),
    target: Target<'_>,
) -> Result<&'s [Plan], Interrupted> {
    let (caches, kind, wanted) = (run.caches(), CacheKind::Decoded, run.wanted(draw));
    let max_decoded_bytes = scratch.limits.decode.max_decoded_bytes;
    let Scratch { renderer: Some(renderer), bytes, tally, .. } = scratch else {
        unreachable!("a cache of pixels is refused where nothing is decoded");
    };
    if let Some(block) = caches.held(kind, wanted) {
        tally.lap(Stage::Read);
        let input = Input::Pixels(block.bytes(), block.form().1);
        return Ok(renderer.render_timed(input, draw, target, tally)?);
    }
    let facts = wanted.dataset.facts(wanted.sample)?;
    let limit = max_decoded_bytes.max(facts.bytes);
    let name = match caches.read(kind, wanted, (&facts, limit), bytes) {
        Ok(size) => {
            tally.lap(Stage::Read);
            return Ok(renderer.render_timed(Input::Pixels(bytes, size), draw, target, tally)?);
        }
        Err(name) => name,
    };
    let (format, size) = match fetch(run, (draw, row), bytes, tally)? {
        Some(form) => form,
        None => read(run, (wanted.sample, row), bytes, tally)?,
    };
    let row_index = row_index(wanted.dataset, wanted.sample, format, &mut scratch.row_index)?;
    let mut stored = Stored { format, size, bytes, row_index };
    tally.lap(Stage::Read);
    if caches.may_keep(kind, wanted, name)
        && let Some(image) = renderer.decode(&mut stored)
    {
        tally.lap(Stage::Decode);
        let form = (SampleFormat::RawU8, (image.width, image.height));
        caches.keep(kind, wanted, name, &image.data, form);
        tally.lap(Stage::Read);
        return Ok(renderer.render_decoded(draw, target, tally)?);
    }
    Ok(renderer.render_timed(Input::Stored(stored), draw, target, tally)?)
}
