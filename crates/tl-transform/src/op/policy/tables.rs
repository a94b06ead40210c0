//! The numbers of the policies, as torchvision has them.

use super::Action::{
    AutoContrast, Brightness, Color, Contrast, Equalize, Identity, Invert, Posterize, Rotate,
    Sharpness, ShearX, ShearY, Solarize, TranslateX, TranslateY,
};
use super::{Action, Reach, Space};

/// A share of the side, the largest shift of AutoAugment.
const SHIFT: Reach = Reach::Share(150.0 / 331.0);

/// AutoAugment's.
pub(super) const AUTO: Space = Space {
    actions: &[
        ShearX,
        ShearY,
        TranslateX,
        TranslateY,
        Rotate,
        Brightness,
        Color,
        Contrast,
        Sharpness,
        Posterize,
        Solarize,
        AutoContrast,
        Equalize,
        Invert,
    ],
    shear: 0.3,
    translate: SHIFT,
    rotate: 30.0,
    enhance: 0.9,
    posterize: (8.0, 4.0),
};

const ALL: &[Action] = &[
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
];

/// RandAugment's.
pub(super) const RAND: Space = Space { actions: ALL, translate: SHIFT, ..AUTO };

/// TrivialAugment's, the wide one.
pub(super) const WIDE: Space = Space {
    actions: ALL,
    shear: 0.99,
    translate: Reach::Pixels(32.0),
    rotate: 135.0,
    enhance: 0.99,
    posterize: (8.0, 6.0),
};

/// AugMix's without those that change how images look in the test sets of its paper.
pub(super) const MIX_PARTIAL: Space = Space {
    actions: &[
        ShearX,
        ShearY,
        TranslateX,
        TranslateY,
        Rotate,
        Posterize,
        Solarize,
        AutoContrast,
        Equalize,
    ],
    translate: Reach::Part(3.0),
    posterize: (4.0, 4.0),
    ..AUTO
};

/// AugMix's.
pub(super) const MIX: Space = Space {
    actions: &[
        ShearX,
        ShearY,
        TranslateX,
        TranslateY,
        Rotate,
        Posterize,
        Solarize,
        AutoContrast,
        Equalize,
        Brightness,
        Color,
        Contrast,
        Sharpness,
    ],
    translate: Reach::Part(3.0),
    ..MIX_PARTIAL
};

/// Two actions, each with its probability and the number of its magnitude, of 10.
pub(super) type SubPolicy = [(Action, f64, Option<u32>); 2];

/// Found on ImageNet.
pub(super) const IMAGENET: [SubPolicy; 25] = [
    [(Posterize, 0.4, Some(8)), (Rotate, 0.6, Some(9))],
    [(Solarize, 0.6, Some(5)), (AutoContrast, 0.6, None)],
    [(Equalize, 0.8, None), (Equalize, 0.6, None)],
    [(Posterize, 0.6, Some(7)), (Posterize, 0.6, Some(6))],
    [(Equalize, 0.4, None), (Solarize, 0.2, Some(4))],
    [(Equalize, 0.4, None), (Rotate, 0.8, Some(8))],
    [(Solarize, 0.6, Some(3)), (Equalize, 0.6, None)],
    [(Posterize, 0.8, Some(5)), (Equalize, 1.0, None)],
    [(Rotate, 0.2, Some(3)), (Solarize, 0.6, Some(8))],
    [(Equalize, 0.6, None), (Posterize, 0.4, Some(6))],
    [(Rotate, 0.8, Some(8)), (Color, 0.4, Some(0))],
    [(Rotate, 0.4, Some(9)), (Equalize, 0.6, None)],
    [(Equalize, 0.0, None), (Equalize, 0.8, None)],
    [(Invert, 0.6, None), (Equalize, 1.0, None)],
    [(Color, 0.6, Some(4)), (Contrast, 1.0, Some(8))],
    [(Rotate, 0.8, Some(8)), (Color, 1.0, Some(2))],
    [(Color, 0.8, Some(8)), (Solarize, 0.8, Some(7))],
    [(Sharpness, 0.4, Some(7)), (Invert, 0.6, None)],
    [(ShearX, 0.6, Some(5)), (Equalize, 1.0, None)],
    [(Color, 0.4, Some(0)), (Equalize, 0.6, None)],
    [(Equalize, 0.4, None), (Solarize, 0.2, Some(4))],
    [(Solarize, 0.6, Some(5)), (AutoContrast, 0.6, None)],
    [(Invert, 0.6, None), (Equalize, 1.0, None)],
    [(Color, 0.6, Some(4)), (Contrast, 1.0, Some(8))],
    [(Equalize, 0.8, None), (Equalize, 0.6, None)],
];

/// Found on CIFAR-10.
pub(super) const CIFAR10: [SubPolicy; 25] = [
    [(Invert, 0.1, None), (Contrast, 0.2, Some(6))],
    [(Rotate, 0.7, Some(2)), (TranslateX, 0.3, Some(9))],
    [(Sharpness, 0.8, Some(1)), (Sharpness, 0.9, Some(3))],
    [(ShearY, 0.5, Some(8)), (TranslateY, 0.7, Some(9))],
    [(AutoContrast, 0.5, None), (Equalize, 0.9, None)],
    [(ShearY, 0.2, Some(7)), (Posterize, 0.3, Some(7))],
    [(Color, 0.4, Some(3)), (Brightness, 0.6, Some(7))],
    [(Sharpness, 0.3, Some(9)), (Brightness, 0.7, Some(9))],
    [(Equalize, 0.6, None), (Equalize, 0.5, None)],
    [(Contrast, 0.6, Some(7)), (Sharpness, 0.6, Some(5))],
    [(Color, 0.7, Some(7)), (TranslateX, 0.5, Some(8))],
    [(Equalize, 0.3, None), (AutoContrast, 0.4, None)],
    [(TranslateY, 0.4, Some(3)), (Sharpness, 0.2, Some(6))],
    [(Brightness, 0.9, Some(6)), (Color, 0.2, Some(8))],
    [(Solarize, 0.5, Some(2)), (Invert, 0.0, None)],
    [(Equalize, 0.2, None), (AutoContrast, 0.6, None)],
    [(Equalize, 0.2, None), (Equalize, 0.6, None)],
    [(Color, 0.9, Some(9)), (Equalize, 0.6, None)],
    [(AutoContrast, 0.8, None), (Solarize, 0.2, Some(8))],
    [(Brightness, 0.1, Some(3)), (Color, 0.7, Some(0))],
    [(Solarize, 0.4, Some(5)), (AutoContrast, 0.9, None)],
    [(TranslateY, 0.9, Some(9)), (TranslateY, 0.7, Some(9))],
    [(AutoContrast, 0.9, None), (Solarize, 0.8, Some(3))],
    [(Equalize, 0.8, None), (Invert, 0.1, None)],
    [(TranslateY, 0.7, Some(9)), (AutoContrast, 0.9, None)],
];

/// Found on SVHN.
pub(super) const SVHN: [SubPolicy; 25] = [
    [(ShearX, 0.9, Some(4)), (Invert, 0.2, None)],
    [(ShearY, 0.9, Some(8)), (Invert, 0.7, None)],
    [(Equalize, 0.6, None), (Solarize, 0.6, Some(6))],
    [(Invert, 0.9, None), (Equalize, 0.6, None)],
    [(Equalize, 0.6, None), (Rotate, 0.9, Some(3))],
    [(ShearX, 0.9, Some(4)), (AutoContrast, 0.8, None)],
    [(ShearY, 0.9, Some(8)), (Invert, 0.4, None)],
    [(ShearY, 0.9, Some(5)), (Solarize, 0.2, Some(6))],
    [(Invert, 0.9, None), (AutoContrast, 0.8, None)],
    [(Equalize, 0.6, None), (Rotate, 0.9, Some(3))],
    [(ShearX, 0.9, Some(4)), (Solarize, 0.3, Some(3))],
    [(ShearY, 0.8, Some(8)), (Invert, 0.7, None)],
    [(Equalize, 0.9, None), (TranslateY, 0.6, Some(6))],
    [(Invert, 0.9, None), (Equalize, 0.6, None)],
    [(Contrast, 0.3, Some(3)), (Rotate, 0.8, Some(4))],
    [(Invert, 0.8, None), (TranslateY, 0.0, Some(2))],
    [(ShearY, 0.7, Some(6)), (Solarize, 0.4, Some(8))],
    [(Invert, 0.6, None), (Rotate, 0.8, Some(4))],
    [(ShearY, 0.3, Some(7)), (TranslateX, 0.9, Some(3))],
    [(ShearX, 0.1, Some(6)), (Invert, 0.6, None)],
    [(Solarize, 0.7, Some(2)), (TranslateY, 0.6, Some(7))],
    [(ShearY, 0.8, Some(4)), (Invert, 0.8, None)],
    [(ShearX, 0.7, Some(9)), (TranslateY, 0.8, Some(3))],
    [(ShearY, 0.8, Some(5)), (AutoContrast, 0.7, None)],
    [(ShearX, 0.7, Some(2)), (Invert, 0.1, None)],
];
