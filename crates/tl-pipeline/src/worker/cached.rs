//! Rendering with a cache of decoded images.

use tbl_format::SampleFormat;
use tl_transform::Plan;

use crate::cache::CacheKind;
use crate::fetch::RowSource;
use crate::row::Interrupted;
use crate::sample::{Drawn, Followers, Input, Targets};
use crate::scratch::Scratch;
use crate::stage::Stage;
use crate::worker::custom;

/// Renders a sample from its pixels, which are decoded whole and kept if they are not there yet.
/// Decoding all of an image and part of it give the same pixels, but not the same errors: whatever
/// is wrong with it is left to the way without a cache.
pub(super) fn render<'s>(
    source: RowSource<'_>,
    scratch: &'s mut Scratch,
    targets: Targets<'_, '_>,
) -> Result<&'s [Plan], Interrupted> {
    let caches = source.run.caches();
    let drawn = Drawn::At(source.draw);
    let kind = CacheKind::Decoded;
    let wanted = source.wanted();
    let max_decoded_bytes = scratch.limits.decode.max_decoded_bytes;
    let Scratch { renderer: Some(renderer), bytes, row_index, annotator, limits, metrics, .. } =
        scratch
    else {
        unreachable!("a cache of pixels is refused where nothing is decoded");
    };
    let followers = Some(Followers { annotator, limit: limits.stored });
    let targets = Targets { followers, ..targets };
    if let Some(block) = caches.held(kind, wanted) {
        metrics.lap(Stage::Read);
        let input = Input::Pixels(block.bytes(), block.form().1);
        return Ok(renderer.render_timed(input, drawn, targets, metrics)?);
    }
    let facts = wanted.dataset.facts(wanted.sample)?;
    let limit = max_decoded_bytes.max(facts.bytes);
    let name = match caches.read(kind, wanted, &facts, limit, bytes) {
        Ok(size) => {
            metrics.lap(Stage::Read);
            let input = Input::Pixels(bytes, size);
            return Ok(renderer.render_timed(input, drawn, targets, metrics)?);
        }
        Err(name) => name,
    };
    let mut stored = source.stored(bytes, row_index, metrics)?;
    let is_custom = custom::decode(source, renderer, &stored, metrics)?;
    let may_keep = caches.may_keep(kind, wanted, name);
    if is_custom && !may_keep {
        return Ok(renderer.render_decoded(drawn, targets, metrics)?);
    }
    let image = if is_custom {
        Some(renderer.decoded())
    } else {
        may_keep.then(|| renderer.decode(&mut stored)).flatten()
    };
    if let Some(image) = image {
        metrics.lap(Stage::Decode);
        let form = (SampleFormat::RawU8, (image.width, image.height));
        caches.keep(kind, wanted, name, &image.data, form);
        metrics.lap(Stage::Read);
        return Ok(renderer.render_decoded(drawn, targets, metrics)?);
    }
    Ok(renderer.render_timed(Input::Stored(stored), drawn, targets, metrics)?)
}
