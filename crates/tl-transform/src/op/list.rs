//! The list of operations, with the texts and parameters that bindings present.

use serde::{Deserialize, Serialize};

use super::{
    AugMix, AutoAugment, CenterCrop, ColorJitter, Compose, ElasticTransform, FiveCrop,
    GaussianBlur, GaussianNoise, Grayscale, GridMask, Normalize, Operation, Pad, RandAugment,
    RandomAdjustSharpness, RandomAffine, RandomApply, RandomAutocontrast, RandomChannelPermutation,
    RandomChoice, RandomCrop, RandomEqualize, RandomErasing, RandomGrayscale, RandomHorizontalFlip,
    RandomInvert, RandomOrder, RandomPerspective, RandomPhotometricDistort, RandomPosterize,
    RandomResizedCrop, RandomRotation, RandomShortestSize, RandomSolarize, RandomVerticalFlip,
    RandomZoomOut, Resize, ScaleJitter, TenCrop, ToFloat, TrivialAugmentWide, UserTransform,
    operations,
};

operations! {
    /// One step of a recipe.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "op", rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Op: dyn Operation {
        // Geometry.
        /// Crops a random part of random aspect ratio and resizes it.
        ///
        /// After ten tries that do not fit, the part is the largest one in the middle.
        /// The result has the given size. Counterpart: `RandomResizedCrop`.
        RandomResizedCrop(
            size: Size,
            /// Bounds of the part's area, as a share of the image's: 0 or more.
            scale: Interval = [0.08, 1.0],
            /// Bounds of the part's width divided by its height: more than 0.
            ratio: Interval = [3.0 / 4.0, 4.0 / 3.0],
            interpolation: Filter = "bilinear",
            antialias: Antialias = true
        ),
        /// Resizes the image; one number is the shorter side.
        ///
        /// The longer side keeps the aspect ratio, rounded down.
        /// The result has the given size. Counterpart: `Resize`.
        Resize(
            /// The size afterwards: one number for the shorter side, or (height, width), 1 to 65535
            /// pixels each; None if `max_size` alone decides.
            size: OptionalSize,
            interpolation: Filter = "bilinear",
            /// The largest longer side, if `size` is one number; more than `size`.
            max_size: Count = null,
            antialias: Antialias = true
        ),
        /// Cuts out the middle.
        ///
        /// Smaller images get a black border first.
        /// The result has the given size. Counterpart: `CenterCrop`.
        CenterCrop(size: Size),
        /// Cuts out a random part of one size.
        ///
        /// The result has the given size. Counterpart: `RandomCrop`.
        RandomCrop(
            size: Size,
            /// A border that is added first: one width, (left and right, top and bottom), or (left,
            /// top, right, bottom), 0 to 65535 pixels each.
            padding: Sides = null,
            /// Whether images that are still too small are padded on both sides by what is missing.
            /// Otherwise they are an error.
            pad_if_needed: Flag = false,
            fill: Fill = 0,
            padding_mode: PaddingMode = "constant"
        ),
        /// Cuts out the corners and the middle: five images.
        ///
        /// Their order is top left, top right, bottom left, bottom right, middle.
        /// The result has an axis of five images of the given size in front. Counterpart:
        /// `FiveCrop`.
        FiveCrop(size: Size),
        /// Cuts out the corners and the middle, of the mirrored image too: ten images.
        ///
        /// The result has an axis of ten images of the given size in front. Counterpart: `TenCrop`.
        TenCrop(
            size: Size,
            /// Whether the mirrored image has its top and bottom swapped, not its left and right.
            vertical_flip: Flag = false
        ),
        /// Resizes so that the shorter side has one of several lengths.
        ///
        /// The result keeps the aspect ratio of the image, so sizes differ. Counterpart:
        /// `RandomShortestSize`.
        RandomShortestSize(
            /// The lengths of the shorter side, each equally likely, or one: 1 to 65535 pixels.
            min_size: Counts,
            /// The largest longer side, 1 to 65535 pixels; None for no limit.
            max_size: Count = null,
            interpolation: Filter = "bilinear",
            antialias: Antialias = true
        ),
        /// Resizes by a random factor.
        ///
        /// The image is fitted into the target, whose sides are multiplied by the factor.
        /// The result keeps the aspect ratio of the image, so sizes differ. Counterpart:
        /// `ScaleJitter`.
        ScaleJitter(
            /// The sides that an image is fitted into: a width and a height, as torchvision computes
            /// with them, though it documents the reverse.
            target_size: Pair,
            /// Bounds of the factor: more than 0.
            scale_range: Interval = [0.1, 2.0],
            interpolation: Filter = "bilinear",
            antialias: Antialias = true
        ),
        /// Adds a border.
        ///
        /// The result is larger by the border. Counterpart: `Pad`.
        Pad(
            /// The border: one width, (left and right, top and bottom), or (left, top, right,
            /// bottom), 0 to 65535 pixels each.
            padding: Sides,
            fill: Fill = 0,
            padding_mode: PaddingMode = "constant"
        ),
        /// Puts the image at a random place on a larger canvas at random.
        ///
        /// The result has the size of the canvas, so sizes differ. Counterpart: `RandomZoomOut`.
        RandomZoomOut(
            fill: Fill = 0,
            /// Bounds of the canvas's sides, as multiples of the image's: 1 or more.
            side_range: Interval = [1.0, 4.0],
            p: Probability = 0.5
        ),
        /// Mirrors left and right at random.
        ///
        /// The result keeps the size. Counterpart: `RandomHorizontalFlip`.
        RandomHorizontalFlip(p: Probability = 0.5),
        /// Mirrors top and bottom at random.
        ///
        /// The result keeps the size. Counterpart: `RandomVerticalFlip`.
        RandomVerticalFlip(p: Probability = 0.5),

        // Colour.
        /// Changes brightness, contrast, saturation and hue at random.
        ///
        /// The order of the changes is random too; None and 0 switch one off.
        /// The result keeps the size. Counterpart: `ColorJitter`.
        ColorJitter(
            /// The factor of all pixels: an amount of 0 or more around 1, or bounds of 0 or more.
            brightness: Range = null,
            /// The factor around the image's mean grey, in the same forms.
            contrast: Range = null,
            /// The factor around each pixel's grey, in the same forms.
            saturation: Range = null,
            /// The shift of hues in turns: an amount of 0 to 0.5, or bounds from -0.5 to 0.5.
            hue: Range = null
        ),
        /// Makes the image grey; it keeps three channels, which torchvision's default does not.
        ///
        /// A loader has images of one channel with `channels=1`.
        /// The result keeps the size. Counterpart: `Grayscale`.
        Grayscale(
            /// The channels of the result: 3.
            num_output_channels: Count = 3
        ),
        /// Makes the image grey at random.
        ///
        /// The result keeps the size and three channels. Counterpart: `RandomGrayscale`.
        RandomGrayscale(p: Probability = 0.1),
        /// Inverts the pixels at random.
        ///
        /// The result keeps the size. Counterpart: `RandomInvert`.
        RandomInvert(p: Probability = 0.5),
        /// Keeps the upper bits of the pixels at random.
        ///
        /// The result keeps the size. Counterpart: `RandomPosterize`.
        RandomPosterize(
            /// The number of bits to keep, 0 to 8.
            bits: Count,
            p: Probability = 0.5
        ),
        /// Inverts bright pixels at random.
        ///
        /// The result keeps the size. Counterpart: `RandomSolarize`.
        RandomSolarize(
            /// The smallest sample that is inverted, in the units of pixels: 0 to 255.
            threshold: Number,
            p: Probability = 0.5
        ),
        /// Sharpens or blurs at random.
        ///
        /// The result keeps the size. Counterpart: `RandomAdjustSharpness`.
        RandomAdjustSharpness(
            /// The factor, 0 or more: 0 blurs, 1 changes nothing, 2 sharpens.
            sharpness_factor: Number,
            p: Probability = 0.5
        ),
        /// Stretches each channel at random.
        ///
        /// Its smallest sample becomes 0 and its largest 255.
        /// The result keeps the size. Counterpart: `RandomAutocontrast`.
        RandomAutocontrast(p: Probability = 0.5),
        /// Makes each channel's histogram even at random.
        ///
        /// The result keeps the size. Counterpart: `RandomEqualize`.
        RandomEqualize(p: Probability = 0.5),
        /// Permutes the channels at random.
        ///
        /// The result keeps the size. Counterpart: `RandomChannelPermutation`.
        RandomChannelPermutation(),
        /// Changes colours as for SSD.
        ///
        /// Brightness, contrast, saturation, hue and the order of channels change independently.
        /// The result keeps the size. Counterpart: `RandomPhotometricDistort`.
        RandomPhotometricDistort(
            /// Bounds of the factor of all pixels: 0 or more.
            brightness: Interval = [0.875, 1.125],
            /// Bounds of the factor around the image's mean grey: 0 or more.
            contrast: Interval = [0.5, 1.5],
            /// Bounds of the factor around each pixel's grey: 0 or more.
            saturation: Interval = [0.5, 1.5],
            /// Bounds of the shift of hues in turns: -0.5 to 0.5.
            hue: Interval = [-0.05, 0.05],
            /// The probability of each change, 0 to 1.
            p: Probability = 0.5
        ),

        // Filters, noise and erasing.
        /// Blurs with a Gaussian of random width.
        ///
        /// The result keeps the size. Counterpart: `GaussianBlur`.
        GaussianBlur(
            /// The sides of the kernel: one number or (width, height), odd, 1 to 255 pixels.
            kernel_size: CountOrPair,
            /// The standard deviation in pixels: a number or bounds, more than 0.
            sigma: Range = [0.1, 2.0]
        ),
        /// Adds normal noise.
        ///
        /// The result keeps the size. Counterpart: `GaussianNoise` on `uint8`.
        GaussianNoise(
            /// The mean, where 1 is the whole range of samples: -16 to 16.
            mean: Number = 0.0,
            /// The standard deviation, where 1 is the whole range of samples: 0 to 16.
            sigma: Number = 0.1,
            /// Whether sums stay within the range of samples; otherwise they wrap around.
            clip: Flag = true
        ),
        /// Replaces a random rectangle.
        ///
        /// Takes pixels, or numbers after `ToTensor` and `Normalize`. After ten tries that do not
        /// fit, the image stays as it is.
        /// The result keeps the size. Counterpart: `RandomErasing`.
        RandomErasing(
            p: Probability = 0.5,
            /// Bounds of the rectangle's area, as a share of the image's: 0 to 1.
            scale: Interval = [0.02, 0.33],
            /// Bounds of the rectangle's height divided by its width: more than 0.
            ratio: Interval = [0.3, 3.3],
            /// The value of erased pixels: a number, one for each channel, or `"random"` for normal
            /// deviates, which must follow `ToTensor`.
            value: ErasingValue = 0.0
        ),
        /// Erases a grid.
        ///
        /// Takes pixels, or numbers after `ToTensor` and `Normalize`. It follows the code of Chen et
        /// al., "`GridMask` Data Augmentation" (2020).
        /// The result keeps the size. Counterpart: none.
        GridMask(
            p: Probability = 0.8,
            /// Bounds of the distance between stripes in pixels, 1 to 65535, the upper one excluded.
            distance: Pair = [96, 224],
            /// The width of a stripe, as a share of the distance: 0 to 1.
            ratio: Number = 0.6,
            /// The grid is turned by fewer than this many whole degrees, 1 to 360; 1 keeps it upright.
            rotate: Count = 360,
            /// The erased part: 0 for the stripes, 1 for the squares between them.
            mode: Count = 1,
            /// The value of erased pixels: a number, or one for each channel.
            value: Channels = 0.0
        ),

        // Composition.
        /// Applies a list in sequence.
        Compose,
        /// Applies a list with a probability.
        ///
        /// The result is that of the transforms. Counterpart: `RandomApply`.
        RandomApply(transforms: Transforms, p: Probability = 0.5),
        /// Applies one of a list.
        ///
        /// The result is that of the transform. Counterpart: `RandomChoice`.
        RandomChoice(
            transforms: Transforms,
            /// The weight of each transform, 0 or more; None if all are equally likely.
            p: Weights = null
        ),
        /// Applies a list in random order.
        ///
        /// The result is that of the transforms. Counterpart: `RandomOrder`.
        RandomOrder(transforms: Transforms),

        // Warps.
        /// Rotates by a random angle.
        ///
        /// The result keeps the size, unless `expand` enlarges it. Counterpart: `RandomRotation`.
        RandomRotation(
            /// The angle, counter-clockwise: the largest in both directions, or bounds.
            degrees: Range,
            interpolation: WarpFilter = "nearest",
            /// Whether the image is enlarged to hold all of its corners.
            expand: Flag = false,
            /// The point that stays, (x, y) from the upper left corner; None for the middle.
            center: Point = null,
            fill: Fill = 0
        ),
        /// Rotates, shifts, scales and shears at random.
        ///
        /// The result keeps the size. Counterpart: `RandomAffine`.
        RandomAffine(
            /// The angle, clockwise: the largest in both directions, or bounds.
            degrees: Range,
            /// The largest shifts, as shares of width and height: 0 to 1; None for no shift.
            translate: Interval = null,
            /// Bounds of the factor of size, more than 0; None keeps the size.
            scale: Interval = null,
            /// The angle of shear in degrees: the largest along x, bounds along x, or bounds along x
            /// and along y as four numbers; None for no shear.
            shear: Range = null,
            interpolation: WarpFilter = "nearest",
            fill: Fill = 0,
            /// The point that stays, (x, y) from the upper left corner; None for the middle.
            center: Point = null
        ),
        /// Moves the corners inwards at random.
        ///
        /// The result keeps the size. Counterpart: `RandomPerspective`.
        RandomPerspective(
            /// The largest move of a corner, as a share of the way to the middle: 0 to 1.
            distortion_scale: Number = 0.5,
            p: Probability = 0.5,
            interpolation: WarpFilter = "bilinear",
            fill: Fill = 0
        ),
        /// Moves neighbouring pixels by similar random displacements.
        ///
        /// The result keeps the size. Counterpart: `ElasticTransform`.
        ElasticTransform(
            /// The size of displacements: one number, or one along x and one along y.
            alpha: Range = 50.0,
            /// The smoothness of displacements: standard deviations in pixels in the same forms,
            /// 0.001 to 1000, or 0 for both.
            sigma: Range = 5.0,
            /// The filter: nearest or bilinear.
            interpolation: WarpFilter = "bilinear",
            fill: Fill = 0
        ),

        // Policies.
        /// Applies a pair of changes that was found by search.
        ///
        /// One of 25 pairs; each change has a probability and a magnitude.
        /// The result keeps the size. Counterpart: `AutoAugment`.
        AutoAugment(
            /// The data set that the pairs were found on: imagenet, cifar10 or svhn, or torchvision's
            /// `AutoAugmentPolicy`.
            policy: Policy = "imagenet",
            interpolation: WarpFilter = "nearest",
            fill: Fill = null
        ),
        /// Applies several random changes of one magnitude.
        ///
        /// Each is one of 14.
        /// The result keeps the size. Counterpart: `RandAugment`.
        RandAugment(
            /// The number of changes, 0 to 64.
            num_ops: Count = 2,
            /// The number of the magnitude, from 0 to `num_magnitude_bins` - 1.
            magnitude: Count = 9,
            /// The number of magnitudes, 2 to 65535.
            num_magnitude_bins: Count = 31,
            interpolation: WarpFilter = "nearest",
            fill: Fill = null
        ),
        /// Applies one random change of a random magnitude.
        ///
        /// It is one of 14, over wider ranges than those of `RandAugment`.
        /// The result keeps the size. Counterpart: `TrivialAugmentWide`.
        TrivialAugmentWide(
            /// The number of magnitudes, 2 to 65535.
            num_magnitude_bins: Count = 31,
            interpolation: WarpFilter = "nearest",
            fill: Fill = null
        ),
        /// Mixes the image with the results of chains of random changes.
        ///
        /// The result keeps the size. Counterpart: `AugMix`.
        AugMix(
            /// The magnitudes are the least ones of ten, this many: 1 to 10.
            severity: Count = 3,
            /// The number of chains, 1 to 16.
            mixture_width: Count = 3,
            /// The number of changes in a chain, to 16; 0 or less draws 1 to 3 for each chain.
            chain_depth: Count = (-1),
            /// The parameter of the distributions of weights, 0.000001 to 1000000; small ones are
            /// less even.
            alpha: Number = 1.0,
            /// Whether brightness, colour, contrast and sharpness change too.
            all_ops: Flag = true,
            /// The filter: nearest or bilinear.
            interpolation: WarpFilter = "bilinear",
            fill: Fill = null
        ),

        // The user's own.
        /// Runs the user's code.
        UserTransform,

        // Conversion.
        /// Maps 0 to 255 to 0 to 1.
        ///
        /// The result keeps the size and has floats, `float32` by default. Counterpart: `ToTensor`,
        /// or `ToDtype(torch.float32, scale=True)`.
        ToFloat() also "to_dtype" "to_tensor",
        /// Subtracts a mean and divides by a deviation; ImageNet's by default.
        ///
        /// Takes the floats of `ToTensor`, which it adds where it is missing.
        /// The result keeps the size and has floats, `float32` by default. Counterpart: `Normalize`.
        Normalize(
            /// The mean of each channel, or one for all, for values from 0 to 1.
            mean: Channels = [0.485, 0.456, 0.406],
            /// The standard deviation of each channel, or one for all: more than 0.
            std: Channels = [0.229, 0.224, 0.225]
        ) also "image_net_normalize",
    }
}
