//! Decoding by the user's decoders, which choose files by name as well.

use crate::fetch::RowSource;
use crate::metrics::WorkerMetrics;
use crate::row::Interrupted;
use crate::sample::{SampleRenderer, Stored};
use crate::stage::Stage;

/// Decodes a sample, if a decoder of the user's takes it, for [`SampleRenderer::render_decoded`]. False
/// if none does.
pub(super) fn decode(
    source: RowSource<'_>,
    renderer: &mut SampleRenderer,
    stored: &Stored<'_>,
    metrics: &mut WorkerMetrics,
) -> Result<bool, Interrupted> {
    if !renderer.has_decoders() {
        return Ok(false);
    }
    let entry = source.run.dataset().entry(source.sample())?;
    let is_decoded = renderer.decode_custom(entry.key.as_deref().unwrap_or_default(), stored)?;
    if is_decoded {
        metrics.lap(Stage::Decode);
    }
    Ok(is_decoded)
}
