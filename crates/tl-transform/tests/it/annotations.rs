//! Boxes and masks against torchvision's results (`testdata/annotations/generate.py`).

use std::path::PathBuf;

use serde::Deserialize;
use tl_simd::pad::{Border, Margins};
use tl_transform::{AnnotationError, BoundingBoxes, BoxFormat, Coordinates, Mask};

use crate::noise;

#[derive(Deserialize)]
struct BoxesCase {
    format: BoxFormat,
    canvas: (u32, u32),
    boxes: Vec<[f32; 4]>,
    moves: Vec<Move>,
    after: BoundingBoxes,
    sanitize: (f32, f32),
    stay: Vec<bool>,
}

#[derive(Deserialize)]
struct MaskCase {
    mask: (u32, u32),
    seed: u64,
    moves: Vec<Move>,
    after: (u32, u32),
    crc: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
pub(crate) enum Move {
    Crop { crop: (i64, i64, u32, u32) },
    Resize { resize: (u32, u32) },
    ResizeExact { resize_exact: (u32, u32) },
    Pad { pad: (u32, u32, u32, u32), border: String, fill: u8 },
    Flip { flip: () },
    FlipVertical { flip_vertical: () },
    Clamp { clamp: () },
    Convert { convert: BoxFormat },
}

impl Move {
    /// Moves boxes or keypoints.
    pub(crate) fn coordinates(
        &self,
        coordinates: &mut impl Coordinates,
    ) -> Result<(), AnnotationError> {
        let (width, height) = coordinates.canvas();
        match *self {
            Self::Crop { crop: (x, y, width, height) } => coordinates.crop((x, y), (width, height)),
            Self::Resize { resize } | Self::ResizeExact { resize_exact: resize } => {
                coordinates.resize(resize)
            }
            Self::Pad { pad: (left, top, right, bottom), .. } => {
                coordinates.pad((left, top), (left + width + right, top + height + bottom))
            }
            Self::Flip { flip: () } => {
                coordinates.flip();
                Ok(())
            }
            Self::FlipVertical { flip_vertical: () } => {
                coordinates.flip_vertical();
                Ok(())
            }
            Self::Clamp { .. } | Self::Convert { .. } => unreachable!("a change of boxes alone"),
        }
    }

    fn boxes(&self, boxes: &mut BoundingBoxes) -> Result<(), AnnotationError> {
        if let Self::Convert { convert } = *self {
            boxes.convert(convert);
        } else if let Self::Clamp { .. } = self {
            boxes.clamp();
        } else {
            self.coordinates(boxes)?;
        }
        Ok(())
    }

    fn mask(&self, mask: &mut Mask) -> Result<(), AnnotationError> {
        match self {
            Self::Crop { crop: (x, y, width, height) } => {
                mask.crop((*x, *y), (*width, *height))?;
            }
            Self::Resize { resize } => mask.resize(*resize)?,
            Self::ResizeExact { resize_exact } => mask.resize_exact(*resize_exact)?,
            Self::Pad { pad, border, fill } => {
                let (left, top, right, bottom) = *pad;
                let border = match border.as_str() {
                    "edge" => Border::Edge,
                    "reflect" => Border::Reflect,
                    "symmetric" => Border::Symmetric,
                    _ => Border::Constant([*fill; 4]),
                };
                mask.pad(Margins { left, top, right, bottom }, border)?;
            }
            Self::Flip { flip: () } => mask.flip(),
            Self::FlipVertical { flip_vertical: () } => mask.flip_vertical(),
            Self::Clamp { clamp: () } | Self::Convert { .. } => {}
        }
        Ok(())
    }
}

/// The cases in the repository, or those of the file that `TL_TRANSFORM_ANNOTATIONS` names.
fn cases() -> (Vec<BoxesCase>, Vec<MaskCase>) {
    let committed = tl_testdata::shipped!("annotations/cases.jsonl");
    let path = std::env::var_os("TL_TRANSFORM_ANNOTATIONS").map_or(committed, PathBuf::from);
    let text = std::fs::read_to_string(path).expect("the cases can be read");
    let (masks, boxes): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("{\"mask\""));
    let boxes = boxes.into_iter().map(|line| serde_json::from_str(line).expect("a case")).collect();
    (boxes, masks.into_iter().map(|line| serde_json::from_str(line).expect("a case")).collect())
}

#[test]
fn boxes_move_with_the_bits_of_torchvision() {
    let (cases, _) = cases();
    assert!(cases.len() >= 160, "{} cases", cases.len());
    for (number, case) in cases.into_iter().enumerate() {
        let mut boxes = BoundingBoxes::new(case.format, case.canvas, case.boxes).unwrap();
        case.moves.iter().try_for_each(|step| step.boxes(&mut boxes)).unwrap();
        assert_eq!(boxes, case.after, "case {number}");
        let count = case.stay.iter().filter(|stays| **stays).count();
        assert_eq!(boxes.sanitize(case.sanitize.0, case.sanitize.1), Ok(case.stay));
        assert_eq!(boxes.boxes().len(), count, "case {number}");
    }
}

#[test]
fn masks_move_with_the_numbers_of_torchvision() {
    let (_, cases) = cases();
    assert!(cases.len() >= 80, "{} cases", cases.len());
    for (number, case) in cases.into_iter().enumerate() {
        let (width, height) = case.mask;
        let numbers = noise((width * height) as usize, case.seed);
        let mut mask = Mask::new(width, height, numbers).unwrap();
        case.moves.iter().try_for_each(|step| step.mask(&mut mask)).unwrap();
        assert_eq!(mask.size(), case.after, "case {number}");
        assert_eq!(crc32fast::hash(mask.data()), case.crc, "case {number}");
    }
}

#[test]
fn what_is_no_box_and_no_mask_is_refused() {
    let boxes = |number| BoundingBoxes::new(BoxFormat::Xyxy, (4, 4), vec![[0.0; 4], [number; 4]]);
    assert_eq!(boxes(f32::NAN), Err(AnnotationError::NotFinite { position: 1 }));
    assert_eq!(boxes(f32::INFINITY), Err(AnnotationError::NotFinite { position: 1 }));
    let text = r#"{"format":"xyxy","canvas":[1,1],"boxes":[[1e99,0,0,0]]}"#;
    assert!(serde_json::from_str::<BoundingBoxes>(text).is_err(), "1e99 is infinite as a float");
    let limit = |name, value| Err(AnnotationError::Limit { name, value });
    assert_eq!(boxes(1.0).unwrap().sanitize(0.5, 1.0), limit("min_size", 0.5));
    assert_eq!(boxes(1.0).unwrap().sanitize(1.0, 0.0), limit("min_area", 0.0));
    let length = |width, height, have| Err(AnnotationError::MaskLength { width, height, have });
    assert_eq!(Mask::new(2, 3, vec![0; 5]), length(2, 3, 5));
    assert_eq!(Mask::new(0, 3, vec![]), length(0, 3, 0));
    assert_eq!(Mask::new(u32::MAX, u32::MAX, vec![1]), length(u32::MAX, u32::MAX, 1));
}

#[test]
fn a_crop_beside_a_mask_is_zero() {
    let mut mask = Mask::new(2, 2, vec![1; 4]).unwrap();
    mask.crop((2, 0), (2, 2)).unwrap();
    assert_eq!((mask.size(), mask.data()), ((2, 2), &[0; 4][..]));
    mask.crop((-9, i64::from(u32::MAX)), (1, 1)).unwrap();
    assert_eq!(mask.data(), [0]);
}

#[test]
fn a_mask_cut_down_to_nothing_stays_empty() {
    let mut mask = Mask::new(2, 2, vec![1; 4]).unwrap();
    mask.crop((0, 0), (0, 2)).unwrap();
    mask.resize((3, 3)).unwrap();
    assert_eq!((mask.size(), mask.data()), ((3, 3), &[0; 9][..]));
    mask.crop((5, 5), (0, 0)).unwrap();
    mask.pad(Margins { left: 1, top: 1, ..Margins::default() }, Border::Edge).unwrap();
    mask.flip();
    mask.flip_vertical();
    assert_eq!((mask.size(), mask.data()), ((1, 1), &[0][..]));
}

#[test]
fn annotations_of_impossible_images_are_refused() {
    const HUGE: u32 = u32::MAX;
    let size = |width, height| Err(AnnotationError::Size { width, height });
    let mut mask = Mask::new(2, 2, vec![1; 4]).unwrap();
    assert_eq!(mask.resize((1 << 20, 1 << 20)), size(1 << 20, 1 << 20));
    assert_eq!(mask.resize_exact((1, HUGE)), size(1, HUGE));
    assert_eq!(mask.crop((0, 0), (65_536, 1)), size(65_536, 1));
    let margins = Margins { left: HUGE, right: HUGE, ..Margins::default() };
    assert_eq!(mask.pad(margins, Border::Edge), size(HUGE, 2));
    assert_eq!(mask.data(), [1; 4]);
    for start in [i64::MAX, i64::MIN] {
        mask.crop((start, 0), (2, 2)).unwrap();
        assert_eq!(mask.data(), [0; 4]);
    }
    let boxes = |canvas| BoundingBoxes::new(BoxFormat::Xywh, canvas, vec![[-1e20, 0.0, 1e20, 9.0]]);
    for (width, height) in [(0, 5), (5, 0), (HUGE, HUGE), (65_536, 1)] {
        assert_eq!(boxes((width, height)), Err(AnnotationError::Size { width, height }));
        let mut boxes = boxes((1, 1)).unwrap();
        assert_eq!(boxes.resize((width, height)), size(width, height));
        assert_eq!(boxes.crop((0, 0), (width, height)), size(width, height));
        assert_eq!(boxes.pad((0, 0), (width, height)), size(width, height));
    }
    let mut boxes = boxes((1, 1)).unwrap();
    boxes.resize((65_535, 65_535)).unwrap();
    boxes.convert(BoxFormat::Cxcywh);
    boxes.flip();
    boxes.crop((i64::MIN, i64::MAX), (3, 3)).unwrap();
    assert!(boxes.boxes().as_flattened().iter().all(|c| c.is_finite()), "{boxes:?}");
}
