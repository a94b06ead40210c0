//! The values of a row that do not lie in the slab, and the reasons that a row has none.

use tl_cuda::{Erasures, Picture};
use tl_decode::Image;
use tl_handoff::sync::Arc;

use crate::audit::Outcome;
use crate::dataset::Dataset;
use crate::error::{SampleError, SampleFault};
use crate::fields::RowFields;

/// Bytes of a picture that a row keeps for its next one.
const KEPT_PICTURE_BYTES: usize = 1 << 20;

/// The values of a row in addition to its bytes in the slab.
#[derive(Debug, Default)]
pub(crate) struct RowExtras {
    /// The sample itself where batches hold no fixed-size images: its bytes, or its pixels.
    pub(crate) image: Image,
    /// The data set whose mapping has the sample, where it was not copied.
    pub(crate) view_of: Option<Arc<Dataset>>,
    pub(crate) fields: RowFields,
    /// The images that a device decodes, one for each view, instead of pixels in the slab. Memory that
    /// is reused: either all of them are empty, or none.
    pub(crate) pictures: Vec<Picture>,
    /// The rectangles that a device erases in the images of the row.
    pub(crate) erasures: Erasures,
    /// True for a row without content, to be left out.
    pub(crate) left_out: bool,
    /// The faults of the row's sample, and their outcomes.
    pub(crate) findings: Vec<Finding>,
}

impl RowExtras {
    /// Bytes that the row owns.
    pub(crate) fn bytes(&self) -> u64 {
        self.image.data.len() as u64 + self.picture_bytes() as u64 + self.fields.bytes()
    }

    /// Clears it, for a row with nothing in it.
    pub(crate) fn clear(&mut self) {
        (self.image.width, self.image.height) = (0, 0);
        self.image.data.clear();
        self.fields.clear();
        self.clear_pictures();
        self.view_of = None;
    }

    /// Leaves nothing to a device.
    pub(crate) fn clear_pictures(&mut self) {
        self.erasures.clear();
        for picture in &mut self.pictures {
            if picture.bytes() > KEPT_PICTURE_BYTES {
                *picture = Picture::default();
            }
            picture.clear();
        }
    }

    fn picture_bytes(&self) -> usize {
        self.pictures.iter().map(Picture::bytes).sum::<usize>() + self.erasures.bytes()
    }

    /// Lets go of buffers above `keep` bytes, and of what is in them, and of what is made anew for
    /// each sample.
    pub(crate) fn trim(&mut self, keep: usize) {
        if self.image.data.capacity() > keep {
            self.image = Image::new();
        }
        self.clear_pictures();
        self.pictures.retain(|picture| picture.bytes() <= keep);
        if self.erasures.bytes() > keep {
            self.erasures = Erasures::default();
        }
        self.fields.clear();
        if self.fields.kept_bytes() > keep {
            self.fields = RowFields::default();
        }
    }

    /// Makes buffers above `keep` bytes as small as what they hold.
    pub(crate) fn fit(&mut self, keep: usize) {
        if self.image.data.capacity() > keep {
            self.image.data.shrink_to_fit();
        }
        if self.fields.kept_bytes() > keep {
            self.fields.fit();
        }
    }
}

/// Something wrong with a row's sample.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) outcome: Outcome,
    pub(crate) error: Arc<SampleError>,
}

/// The reason that a row has no sample.
pub(crate) enum Interrupted {
    /// Something is wrong with the sample.
    Fault(SampleFault),
    /// The run is over, and nobody waits for the row.
    Over,
}

impl<E: Into<SampleFault>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}
