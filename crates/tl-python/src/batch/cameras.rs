//! The cameras of rows: parts of the clips of each row.

use tl_pipeline::Loader;

use crate::batch::PyBatch;
use crate::tensor::Tensor;

/// A camera, by the name that batches have it under.
#[derive(Clone, Debug)]
pub(super) struct CameraField {
    pub(super) name: String,
    /// The number of its frames in a row; one has no dimension.
    frames: usize,
}

/// The cameras of a loader's rows, in the order of their clips; none of other samples.
#[cfg(feature = "arrow")]
pub(super) fn cameras(loader: &Loader) -> Vec<CameraField> {
    let mut rows = loader.dataset().shards().iter();
    let rows = rows.find_map(|shard| tl_pipeline::LeRobot::of(&**shard));
    let cameras = rows.map(tl_pipeline::LeRobot::cameras).unwrap_or_default().iter();
    cameras.map(|one| CameraField { name: one.name.clone(), frames: one.frame_count() }).collect()
}

/// None: rows are read from Parquet files.
#[cfg(not(feature = "arrow"))]
pub(super) fn cameras(_: &Loader) -> Vec<CameraField> {
    Vec::new()
}

impl PyBatch {
    /// The frames of camera number `place`.
    pub(super) fn camera_tensor(&self, place: usize) -> Option<Tensor> {
        let cameras = &self.contents.cameras;
        let most = cameras.iter().map(|camera| camera.frames).max()?;
        let frames = cameras.get(place)?.frames;
        let (rows, sizes) = self.shape.as_ref()?.split_first()?;
        // Height, width and channels, in the order of the layout.
        let image = sizes.get(sizes.len().checked_sub(3)?..)?;
        let frame = image.iter().product::<usize>() * self.element.bytes();
        let start = place * most * frame;
        let all = &self.memory.images;
        let counted = (frames > 1).then_some(frames);
        let shape = [*rows].into_iter().chain(counted).chain(image.iter().copied()).collect();
        let memory = all.part(start, all.len().checked_sub(start)?);
        Some(Tensor::strided(&memory, shape, self.element, cameras.len() * most * frame))
    }
}
