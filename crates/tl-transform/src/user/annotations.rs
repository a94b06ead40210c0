//! The annotations that a user's transform moves with its image.

use crate::annotations::Mask;
use crate::error::UserFault;

/// The annotations of an image, as a user's transform gets and leaves them: in pixels of the image,
/// and as many afterwards as before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserAnnotations {
    /// Boxes as left, top, right and bottom. A box that has left the image is NaN: it is dropped, with
    /// all that belongs to its object. `None` where the loader has no boxes.
    pub boxes: Option<Vec<[f32; 4]>>,
    /// The points of each field of keypoints.
    pub keypoints: Vec<UserKeypoints>,
    /// The mask of each object, of 0 and 1; `None` where the loader has none.
    pub masks: Option<Vec<Mask>>,
    /// The mask of the image; `None` where the loader has none.
    pub mask: Option<UserMask>,
}

/// Points of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct UserKeypoints {
    /// The number of points of an object or a sample, and the numbers of a point: across and down,
    /// and with 3 the visibility, which is 0 for points without a label.
    pub shape: [usize; 2],
    /// The numbers, of all points of all objects.
    pub numbers: Vec<f32>,
}

/// A number for each pixel of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMask {
    /// Width and height.
    pub size: (u32, u32),
    /// The numbers, row by row. Those of masks with 8 bits are below 256.
    pub numbers: Vec<u16>,
    /// Whether the mask has 16 bits.
    pub is_wide: bool,
}

/// How many there are of each kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counts {
    boxes: Option<usize>,
    keypoints: Vec<usize>,
    masks: Option<usize>,
    has_mask: bool,
}

impl UserAnnotations {
    pub(super) fn counts(&self) -> Counts {
        Counts {
            boxes: self.boxes.as_ref().map(Vec::len),
            keypoints: self.keypoints.iter().map(|points| points.numbers.len()).collect(),
            masks: self.masks.as_ref().map(Vec::len),
            has_mask: self.mask.is_some(),
        }
    }

    /// Refuses other annotations than there were, and masks of another size than the image has now.
    pub(super) fn check(&self, before: &Counts, size: (u32, u32)) -> Result<(), UserFault> {
        let refuse = |what, reason| Err(UserFault::Returned { what, reason });
        let after = self.counts();
        let many =
            |count: Option<usize>| count.map_or("none".to_owned(), |count| count.to_string());
        let counted = |after, before| {
            format!("returned {}, expected {} as before", many(after), many(before))
        };
        if after.boxes != before.boxes {
            return refuse("boxes", counted(after.boxes, before.boxes));
        }
        if after.masks != before.masks {
            return refuse("masks of objects", counted(after.masks, before.masks));
        }
        if after.keypoints != before.keypoints {
            let numbers = |counts: &Counts| Some(counts.keypoints.iter().sum());
            return refuse("numbers of keypoints", counted(numbers(&after), numbers(before)));
        }
        if after.has_mask != before.has_mask {
            return refuse("mask", "returned none, or one that was not given".to_owned());
        }
        self.check_coordinates()?;
        let (width, height) = size;
        let mask = self.mask.as_ref().map(|mask| mask.size);
        let sizes = self.masks.iter().flatten().map(Mask::size).chain(mask);
        if let Some((other, other_height)) = sizes.into_iter().find(|mask| *mask != size) {
            let reason =
                format!("returned {other}x{other_height} pixels for an image of {width}x{height}");
            return refuse("mask", reason);
        }
        let pixels = u64::from(width) * u64::from(height);
        match &self.mask {
            Some(mask) if mask.numbers.len() as u64 != pixels => {
                let have = mask.numbers.len();
                refuse("mask", format!("returned {have} numbers for {pixels} pixels"))
            }
            Some(mask) if !mask.is_wide && mask.numbers.iter().any(|number| *number > 255) => {
                refuse("mask", "returned numbers above 255 for a mask of 8 bits".to_owned())
            }
            Some(_) | None => Ok(()),
        }
    }
    /// Refuses coordinates that no point has. Boxes that are dropped are NaN.
    fn check_coordinates(&self) -> Result<(), UserFault> {
        let is_one = |number: &f32| number.abs() <= LARGEST;
        let refuse = |what, position: usize| {
            let reason = format!(
                "number {position} of those returned is not within -{LARGEST:e} to {LARGEST:e}"
            );
            Err(UserFault::Returned { what, reason })
        };
        let boxes = self.boxes.as_deref().unwrap_or_default();
        let is_wrong = |edges: &[f32; 4]| !edges.iter().all(|edge| edge.is_nan() || is_one(edge));
        if let Some(position) = boxes.iter().position(is_wrong) {
            return refuse("boxes", 4 * position);
        }
        for UserKeypoints { numbers, .. } in &self.keypoints {
            if let Some(position) = numbers.iter().position(|number| !is_one(number)) {
                return refuse("keypoints", position);
            }
        }
        Ok(())
    }
}

/// The largest coordinate of boxes and keypoints.
const LARGEST: f32 = 1e20;
