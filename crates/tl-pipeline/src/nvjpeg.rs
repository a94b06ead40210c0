//! Recipes that decode with nvJPEG: the loaders that can carry them out.

use tl_cuda::{Device, DeviceReason, NvJpeg, NvJpegLibrary};
use tl_handoff::sync::Arc;
use tl_transform::{DecodeMode, Draw, Recipe};

use crate::batching::Batching;
use crate::config::LoaderConfig;
use crate::dataset::Dataset;
use crate::delivery::{Delivery, DeviceOptions};
use crate::device_part::{is_pixels, pixels_for_device};
use crate::error::{PipelineError, SampleFault};
use crate::policy::OnError;
use crate::work::Work;

/// The recipe, if it decodes with nvJPEG.
pub(crate) fn recipe(config: &LoaderConfig) -> Option<&Recipe> {
    match &config.work {
        Work::Images(recipe) if recipe.decode_mode() == DecodeMode::NvJpeg => Some(recipe),
        Work::Images(_)
        | Work::Clips(_)
        | Work::Bytes
        | Work::Views
        | Work::Columns(_)
        | Work::Tokens(_) => None,
    }
}

/// Refuses a loader that cannot leave the pixels of such a recipe on a device from file to batch.
pub(crate) fn check(config: &LoaderConfig) -> Result<(), PipelineError> {
    let Some(recipe) = recipe(config) else { return Ok(()) };
    let unusable = |why: String| {
        Err(PipelineError::Unusable(format!("recipe `{recipe}` decodes with nvJPEG, {why}")))
    };
    if !matches!(config.delivery, Delivery::Device(_)) {
        return unusable("which needs batches on a device: set the loader's device".to_owned());
    }
    let refused = match pixels_for_device(config, recipe) {
        Err(op) => Some(op),
        Ok(_) if config.on_error == OnError::Fill && !is_pixels(recipe) => Some("OnError::Fill"),
        Ok(_) if config.batching != Batching::InOrder => Some("buckets"),
        Ok(_) => recipe.beyond_one_pass().or_else(|| several_passes(recipe)),
    };
    match refused {
        Some(op) => {
            unusable(format!("and `{op}` runs on the CPU: leave it out, or decode exactly or fast"))
        }
        None => Ok(()),
    }
}

/// Width and height of an image that operations are tried on.
const TRIED: (u32, u32) = (640, 480);

/// The name of operations such as two resizes in sequence, which only a plan shows.
fn several_passes(recipe: &Recipe) -> Option<&'static str> {
    let plan = recipe.plan(TRIED.0, TRIED.1, Draw::default()).ok()?;
    (!plan.is_one_pass()).then_some("a sequence of resizes")
}

/// The library on `device`.
pub(crate) fn open(device: &Device, options: &DeviceOptions) -> Result<Arc<NvJpeg>, DeviceReason> {
    let library = NvJpegLibrary::load(options.nvjpeg.as_deref(), options.packages.as_deref())?;
    Ok(Arc::new(NvJpeg::new(device, library)?))
}

/// The error for a failure of the device; that of a file names its sample.
pub(crate) fn device_error(dataset: &Dataset, reason: DeviceReason) -> PipelineError {
    let DeviceReason::NvJpegFile { sample, function, error } = reason else {
        return PipelineError::Device { reason };
    };
    let fault = SampleFault::NvJpegFile { function, error };
    Arc::new(dataset.sample_error(sample, fault)).into()
}
