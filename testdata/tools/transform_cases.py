"""Every transform with injected parameters, and what torchvision makes of an image with them.

A case is a list of operations, `(name, parameters)` as torchvision's functional names them.
`reference` runs it through torchvision on a Pillow image (mode `pil`) or on a uint8 tensor (mode
`tensor`); `transform_steps.py` writes the same list as steps of tl-transform.
"""

import dataclasses
import io
import random
import warnings
from collections.abc import Callable

import numpy
import torch
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

torch.set_num_threads(1)
warnings.filterwarnings("ignore", message="Anti-alias option is always applied")

MODES = ("pil", "tensor")


class Draws:
    """Parameters: random ones, or with no generator the typical ones that are measured."""

    def __init__(self, rng=None):
        self.rng = rng

    def uniform(self, low, high, typical):
        return typical if self.rng is None else self.rng.uniform(low, high)

    def integer(self, low, high, typical):
        return typical if self.rng is None else self.rng.randint(low, max(low, high))

    def choice(self, options):
        return options[0] if self.rng is None else self.rng.choice(options)

    def color(self):
        return [self.integer(0, 255, typical) for typical in (124, 116, 104)]


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the tables: an op of a recipe in one of its variants."""

    op: str
    variant: str
    modes: tuple[str, ...]
    draw: Callable

    @property
    def name(self):
        return f"{self.op} {self.variant}".rstrip()

    def case(self, draws, width, height):
        operations = self.draw(draws, width, height)
        return operations if isinstance(operations, list) else [operations]


ROWS: list[Row] = []


def row(op, variant="", modes=MODES, **fixed):
    """Registers a function that draws the operations of a case; `fixed` are its other arguments."""

    def register(draw):
        ROWS.append(Row(op, variant, modes, lambda d, w, h: draw(d, w, h, **fixed)))
        return draw

    return register


# Geometry.


def resize(draws, width, height, interpolation, antialias, scale):
    low, high, typical = scale
    size = [max(1, int(draws.uniform(low, high, typical) * side)) for side in (height, width)]
    return "resize", {"size": size, "interpolation": interpolation, "antialias": antialias}


DOWN, UP = (0.05, 1.0, 0.448), (1.0, 3.0, 1.6)
for filter_ in ("bilinear", "bicubic", "lanczos", "box", "hamming"):
    modes = MODES if filter_ in ("bilinear", "bicubic", "lanczos") else ("pil",)
    row("Resize", f"{filter_}, smaller", modes, interpolation=filter_, antialias=True, scale=DOWN)(resize)
    row("Resize", f"{filter_}, larger", modes, interpolation=filter_, antialias=True, scale=UP)(resize)
row("Resize", "nearest", interpolation="nearest", antialias=True, scale=(0.05, 3.0, 0.448))(resize)
row("Resize", "nearest-exact", interpolation="nearest-exact", antialias=True, scale=(0.05, 3.0, 0.448))(
    resize
)
for filter_ in ("bilinear", "bicubic"):
    name = f"{filter_}, not antialiased"
    row("Resize", name, ("tensor",), interpolation=filter_, antialias=False, scale=(0.05, 3.0, 0.448))(resize)


@row("Resize", "shorter side, max_size")
def resize_shorter(draws, width, height):
    short = draws.integer(1, min(width, height) * 2, 256)
    limit = draws.integer(short + 1, short * 3 + 2, 400)
    return "resize_shorter", {"size": short, "max_size": limit}


@row("CenterCrop", "inside")
def center_crop(draws, width, height):
    size = [draws.integer(1, height, min(200, height)), draws.integer(1, width, min(200, width))]
    return "center_crop", {"size": size}


@row("CenterCrop", "larger than the image")
def center_crop_padded(draws, width, height):
    size = [height + draws.integer(0, 40, 25), width + draws.integer(-width + 1, 40, 24)]
    return "center_crop", {"size": size}


def random_crop(draws, width, height, mode):
    amount = min(draws.integer(1, 30, 32), limit(mode, width, height))
    padding = [amount] * 4
    crop_width = draws.integer(1, width + 2 * amount, min(224, width))
    crop_height = draws.integer(1, height + 2 * amount, min(224, height))
    left = draws.integer(0, width + 2 * amount - crop_width, amount // 2)
    top = draws.integer(0, height + 2 * amount - crop_height, amount // 2)
    fill = [0, 0, 0] if mode == "constant" else None
    crop = {"top": top, "left": left, "height": crop_height, "width": crop_width}
    return [("pad", {"padding": padding, "mode": mode, "fill": fill}), ("crop", crop)]


def limit(mode, width, height):
    """The widest padding of a mode; reflection repeats no edge."""
    shorter = min(width, height)
    return {"reflect": shorter - 1, "symmetric": shorter}.get(mode, 10_000)


def pad(draws, width, height, mode):
    most = limit(mode, width, height)
    padding = [min(draws.integer(0, 40, typical), most) for typical in (16, 24, 32, 8)]
    return "pad", {"padding": padding, "mode": mode, "fill": draws.color() if mode == "constant" else None}


for mode_ in ("constant", "edge", "reflect", "symmetric"):
    row("RandomCrop", f"padding {mode_}", mode=mode_)(random_crop)
for mode_ in ("constant", "edge", "reflect", "symmetric"):
    row("Pad", mode_, mode=mode_)(pad)


def random_resized_crop(draws, width, height, interpolation):
    crop_width = draws.integer(1, width, int(width * 0.7))
    crop_height = draws.integer(1, height, int(height * 0.7))
    left = draws.integer(0, width - crop_width, (width - crop_width) // 2)
    top = draws.integer(0, height - crop_height, (height - crop_height) // 2)
    size = [draws.integer(1, 300, 224), draws.integer(1, 300, 224)]
    where = {"top": top, "left": left, "height": crop_height, "width": crop_width}
    return "resized_crop", {**where, "size": size, "interpolation": interpolation}


for filter_ in ("bilinear", "bicubic"):
    row("RandomResizedCrop", filter_, interpolation=filter_)(random_resized_crop)


def views(draws, width, height, count):
    size = [draws.integer(1, height, min(200, height)), draws.integer(1, width, min(200, width))]
    return f"{count}_crop", {"size": size, "view": draws.integer(0, 4 if count == "five" else 9, 4)}


row("FiveCrop", "one view", count="five")(views)
row("TenCrop", "one view", count="ten")(views)


@row("RandomHorizontalFlip")
def horizontal_flip(_draws, _width, _height):
    return "horizontal_flip", {}


@row("RandomVerticalFlip")
def vertical_flip(_draws, _width, _height):
    return "vertical_flip", {}


FILLS = (None, [124, 116, 104])


def rotation(draws, _width, _height, interpolation, expand=False):
    angle = draws.uniform(-180, 180, 30.0)
    fill = draws.choice(FILLS)
    return "rotate", {"angle": angle, "interpolation": interpolation, "expand": expand, "fill": fill}


def affine(draws, width, height, interpolation):
    return "affine", {
        "angle": draws.uniform(-180, 180, 20.0),
        "translate": [
            draws.integer(-(width // 3), width // 3, 20),
            draws.integer(-(height // 3), height // 3, -15),
        ],
        "scale": draws.uniform(0.5, 2.0, 1.1),
        "shear": [draws.uniform(-30, 30, 8.0), draws.uniform(-30, 30, 0.0)],
        "interpolation": interpolation,
        "fill": draws.choice(FILLS),
    }


def perspective(draws, width, height, interpolation):
    across, down = int(0.5 * (width // 2)) + 1, int(0.5 * (height // 2)) + 1

    def corner(right, bottom, x, y):
        x = min(draws.integer(0, across - 1, int(x * across)), width - 1)
        y = min(draws.integer(0, down - 1, int(y * down)), height - 1)
        return [width - 1 - x if right else x, height - 1 - y if bottom else y]

    last = [width - 1, height - 1]
    return "perspective", {
        "startpoints": [[0, 0], [last[0], 0], last, [0, last[1]]],
        "endpoints": [
            corner(0, 0, 0.4, 0.3),
            corner(1, 0, 0.5, 0.2),
            corner(1, 1, 0.3, 0.6),
            corner(0, 1, 0.2, 0.5),
        ],
        "interpolation": interpolation,
        "fill": draws.choice(FILLS),
    }


for filter_ in ("nearest", "bilinear", "bicubic"):
    row("RandomRotation", filter_, MODES if filter_ != "bicubic" else ("pil",), interpolation=filter_)(
        rotation
    )
row("RandomRotation", "bilinear, expand", interpolation="bilinear", expand=True)(rotation)
row("RandomRotation", "nearest, expand", interpolation="nearest", expand=True)(rotation)


@row("RandomRotation", "by 90, 180 or 270, expand")
def quarter_turns(draws, _width, _height):
    angle = draws.choice((90.0, 180.0, 270.0, -90.0))
    return "rotate", {"angle": angle, "interpolation": "nearest", "expand": True, "fill": None}


for filter_ in ("nearest", "bilinear", "bicubic"):
    row("RandomAffine", filter_, MODES if filter_ != "bicubic" else ("pil",), interpolation=filter_)(affine)
for filter_ in ("nearest", "bilinear", "bicubic"):
    row("RandomPerspective", filter_, MODES if filter_ != "bicubic" else ("pil",), interpolation=filter_)(
        perspective
    )


def elastic(draws, _width, _height, interpolation):
    number = draws.integer(0, 1 << 40, 7)
    sigma = draws.uniform(1.0, 5.0, 5.0)
    return "elastic", {
        "sample": number,
        "alpha": 50.0,
        "sigma": sigma,
        "interpolation": interpolation,
        "fill": [0, 0, 0],
    }


row("ElasticTransform", "bilinear", interpolation="bilinear")(elastic)
row("ElasticTransform", "nearest", interpolation="nearest")(elastic)


@row("RandomZoomOut")
def zoom_out(draws, width, height):
    ratio = draws.uniform(1.0, 4.0, 2.0)
    canvas_width, canvas_height = int(width * ratio), int(height * ratio)
    left = draws.integer(0, canvas_width - width, (canvas_width - width) // 3)
    top = draws.integer(0, canvas_height - height, (canvas_height - height) // 3)
    padding = [left, top, canvas_width - width - left, canvas_height - height - top]
    return "pad", {"padding": padding, "mode": "constant", "fill": draws.color()}


@row("RandomShortestSize")
def shortest_size(draws, width, height):
    target = draws.integer(1, min(width, height) * 2, 300)
    ratio = min(target / min(width, height), draws.integer(target, target * 3, 480) / max(width, height))
    size = [max(1, int(side * ratio)) for side in (height, width)]
    return "resize", {"size": size, "interpolation": "bilinear", "antialias": True}


# Colour.


def factor(draws, _width, _height, name):
    return name, {"factor": draws.uniform(0.0, 2.0, 1.3)}


for name_ in ("brightness", "contrast", "saturation"):
    row("ColorJitter", name_, name=name_)(factor)


@row("ColorJitter", "hue")
def hue(draws, _width, _height):
    return "hue", {"factor": draws.uniform(-0.5, 0.5, 0.08)}


@row("ColorJitter", "brightness, contrast, saturation, hue in a drawn order")
def color_jitter(draws, _width, _height):
    operations = [
        ("brightness", {"factor": draws.uniform(0.6, 1.4, 1.2)}),
        ("contrast", {"factor": draws.uniform(0.6, 1.4, 0.8)}),
        ("saturation", {"factor": draws.uniform(0.6, 1.4, 1.3)}),
        ("hue", {"factor": draws.uniform(-0.1, 0.1, 0.05)}),
    ]
    if draws.rng:
        draws.rng.shuffle(operations)
    return operations


@row("Grayscale")
def grayscale(_draws, _width, _height):
    return "grayscale", {}


@row("RandomInvert")
def invert(_draws, _width, _height):
    return "invert", {}


@row("RandomPosterize")
def posterize(draws, _width, _height):
    return "posterize", {"bits": draws.integer(0, 8, 3)}


@row("RandomSolarize")
def solarize(draws, _width, _height):
    return "solarize", {"threshold": draws.choice((128.0, 0.0, 255.0, 63.75, draws.uniform(0, 255, 128.0)))}


row("RandomAdjustSharpness", name="sharpness")(factor)


@row("RandomAutocontrast")
def autocontrast(_draws, _width, _height):
    return "autocontrast", {}


@row("RandomEqualize")
def equalize(_draws, _width, _height):
    return "equalize", {}


@row("RandomChannelPermutation")
def channel_permutation(draws, _width, _height):
    return "permute_channels", {
        "permutation": list(draws.choice(((2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0))))
    }


@row("RandomPhotometricDistort")
def photometric_distort(draws, _width, _height):
    contrast = [("contrast", {"factor": draws.uniform(0.5, 1.5, 1.3)})]
    before = draws.choice((True, False))
    return [
        ("brightness", {"factor": draws.uniform(0.875, 1.125, 1.1)}),
        *(contrast if before else []),
        ("saturation", {"factor": draws.uniform(0.5, 1.5, 0.8)}),
        ("hue", {"factor": draws.uniform(-0.05, 0.05, 0.04)}),
        *([] if before else contrast),
        ("permute_channels", {"permutation": list(draws.choice(((2, 0, 1), (0, 1, 2), (1, 0, 2))))}),
    ]


# Filters, noise and erasing.


def gaussian_blur(draws, width, height, kernels):
    kernels = [size for size in kernels if size // 2 < min(width, height)] or [1]
    size = draws.choice(kernels)
    sigma = draws.uniform(0.1, 2.0, 1.0)
    return "gaussian_blur", {"kernel_size": [size, size], "sigma": [sigma, sigma]}


row("GaussianBlur", "3", kernels=(3,))(gaussian_blur)
row("GaussianBlur", "5", kernels=(5,))(gaussian_blur)
row("GaussianBlur", "9 to 23", kernels=(23, 9, 11, 15))(gaussian_blur)


@row("GaussianBlur", "two sizes and sigmas")
def gaussian_blur_pair(draws, width, height):
    across = draws.choice([size for size in (7, 1, 3, 5) if size // 2 < width] or [1])
    down = draws.choice([size for size in (3, 1, 5, 9) if size // 2 < height] or [1])
    return "gaussian_blur", {
        "kernel_size": [across, down],
        "sigma": [draws.uniform(0.1, 3, 1.5), draws.uniform(0.1, 3, 0.8)],
    }


# torchvision has none for Pillow images, and its deviates are its own: the mean is compared.
@row("GaussianNoise", "", ("tensor",))
def gaussian_noise(draws, _width, _height):
    sigma = 0.1 if draws.rng is None else 0.0
    return "gaussian_noise", {"mean": draws.uniform(-0.5, 0.5, 0.0), "sigma": sigma, "number": 5}


@row("RandomErasing", "colour")
def erase(draws, width, height):
    box_width, box_height = draws.integer(1, width, width // 3), draws.integer(1, height, height // 3)
    left = draws.integer(0, width - box_width, width // 4)
    top = draws.integer(0, height - box_height, height // 4)
    return "erase", {"i": top, "j": left, "h": box_height, "w": box_width, "color": draws.color()}


@row("ToDtype, Normalize", "to planes of f32")
def normalize(_draws, _width, _height):
    return "normalize", {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}


# Policies: torchvision's own spaces of magnitudes, with the choice and the magnitude injected.


def policy_operations(draws, width, height, transform, names, count):
    operations = []
    for number in range(count):
        choice = (
            names[number] if draws.rng is None else draws.rng.choice(sorted(transform._AUGMENTATION_SPACE))
        )
        magnitudes, signed = transform._AUGMENTATION_SPACE[choice]
        bins = getattr(transform, "num_magnitude_bins", 10)
        values = magnitudes(bins, height, width)
        magnitude = 0.0
        if values is not None:
            magnitude = float(values[draws.integer(0, bins - 1, min(9, bins - 1))])
            magnitude *= -1 if signed and draws.choice((False, True)) else 1
        operations.append(("policy", {"id": choice, "magnitude": magnitude}))
    return operations


RAND, WIDE, AUTO = v2.RandAugment(), v2.TrivialAugmentWide(), v2.AutoAugment()
row("RandAugment", "two ops", transform=RAND, names=("Rotate", "Color"), count=2)(policy_operations)
row("TrivialAugmentWide", "", transform=WIDE, names=("ShearX",), count=1)(policy_operations)
row("AutoAugment", "two ops", transform=AUTO, names=("Posterize", "Rotate"), count=2)(policy_operations)

POLICY_NAMES = sorted(RAND._AUGMENTATION_SPACE)


def policy_single(draws, width, height, choice):
    magnitudes, signed = RAND._AUGMENTATION_SPACE[choice]
    values = magnitudes(31, height, width)
    magnitude = 0.0 if values is None else float(values[draws.integer(0, 30, 9)])
    if signed and draws.choice((False, True)):
        magnitude = -magnitude
    return "policy", {"id": choice, "magnitude": magnitude}


for name_ in POLICY_NAMES:
    row("RandAugment", name_, choice=name_)(policy_single)


@row("AugMix")
def augmix(draws, width, height):
    transform = v2.AugMix()
    generator = draws.rng or random.Random(3)
    chains = []
    for _ in range(3):
        chain = []
        for _ in range(generator.randint(1, 3)):
            choice = generator.choice(sorted(transform._AUGMENTATION_SPACE))
            magnitudes, signed = transform._AUGMENTATION_SPACE[choice]
            values = magnitudes(10, height, width)
            magnitude = 0.0 if values is None else float(values[generator.randrange(3)])
            chain.append((choice, -magnitude if signed and generator.random() < 0.5 else magnitude))
        chains.append(chain)
    share = numpy.float32(generator.random())
    weights = numpy.array([generator.random() for _ in range(3)], numpy.float32)
    weights = weights / weights.sum() * (numpy.float32(1) - share)
    return "augmix", {
        "share": float(share),
        "weights": [float(weight) for weight in weights],
        "chains": chains,
    }


# What torchvision makes of them.


def mode_of(name):
    return v2.InterpolationMode(name)


def five_or_ten(function):
    return lambda image, size, view: function(image, size)[view]


def erase_box(image, i, j, h, w, color):
    return F.erase(image, i, j, h, w, torch.tensor(color, dtype=torch.uint8)[:, None, None])


def run_policy(image, id, magnitude, transform=RAND):
    return transform._apply_image_or_video_transform(
        image, id, magnitude, interpolation=transform.interpolation, fill=transform._fill
    )


def run_augmix(image, share, weights, chains):
    """`AugMix.forward` with its draws given."""
    transform = v2.AugMix()
    batch = image if isinstance(image, torch.Tensor) else F.pil_to_tensor(image)
    batch = batch[None]
    mix = torch.tensor([share], dtype=torch.float32).reshape(-1, 1, 1, 1) * batch
    for weight, chain in zip(weights, chains):
        mixed = batch
        for choice, magnitude in chain:
            mixed = run_policy(mixed, choice, magnitude, transform)
        mix.add_(torch.tensor([weight], dtype=torch.float32).reshape(-1, 1, 1, 1) * mixed)
    mix = mix[0].to(torch.uint8)
    return mix if isinstance(image, torch.Tensor) else F.to_pil_image(mix)


def run_normalize(image, mean, std):
    image = image if isinstance(image, torch.Tensor) else F.pil_to_tensor(image)
    return F.normalize(F.to_dtype(image, torch.float32, scale=True), mean, std)


def run_grayscale(image):
    return F.rgb_to_grayscale(image, num_output_channels=3)


REFERENCE = {
    "resize": lambda image, size, interpolation, antialias: F.resize(
        image, size, mode_of(interpolation), antialias=antialias
    ),
    "resize_shorter": lambda image, size, max_size: F.resize(
        image, [size], max_size=max_size, antialias=True
    ),
    "center_crop": lambda image, size: F.center_crop(image, size),
    "pad": lambda image, padding, mode, fill: F.pad(image, padding, fill=fill, padding_mode=mode),
    "crop": F.crop,
    "resized_crop": lambda image, interpolation, **where: F.resized_crop(
        image, interpolation=mode_of(interpolation), antialias=True, **where
    ),
    "five_crop": five_or_ten(F.five_crop),
    "ten_crop": five_or_ten(F.ten_crop),
    "horizontal_flip": F.horizontal_flip,
    "vertical_flip": F.vertical_flip,
    "rotate": lambda image, interpolation, **rest: F.rotate(
        image, interpolation=mode_of(interpolation), **rest
    ),
    "affine": lambda image, interpolation, **rest: F.affine(
        image, interpolation=mode_of(interpolation), **rest
    ),
    "perspective": lambda image, interpolation, **rest: F.perspective(
        image, interpolation=mode_of(interpolation), **rest
    ),
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation,
    "hue": F.adjust_hue,
    "sharpness": F.adjust_sharpness,
    "grayscale": run_grayscale,
    "invert": F.invert,
    "posterize": F.posterize,
    "solarize": F.solarize,
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "permute_channels": F.permute_channels,
    "elastic": lambda image, interpolation, **rest: F.elastic(
        image, interpolation=mode_of(interpolation), **rest
    ),
    "gaussian_blur": F.gaussian_blur,
    "gaussian_noise": lambda image, mean, sigma, number: F.gaussian_noise(image, mean, sigma),
    "erase": erase_box,
    "normalize": run_normalize,
    "policy": run_policy,
    "augmix": run_augmix,
}
FACTORS = ("brightness", "contrast", "saturation", "hue", "sharpness")


def apply(operations, image):
    """Runs the operations on a Pillow image or a tensor, as torchvision runs them."""
    for name, parameters in operations:
        function = REFERENCE[name]
        image = function(image, parameters["factor"]) if name in FACTORS else function(image, **parameters)
    return image


def drawing(operations, image):
    """As `apply`, with everything drawn that the parameters do not hold: for measuring."""
    for name, parameters in operations:
        if name == "elastic":
            fields = {key: parameters[key] for key in ("alpha", "sigma", "fill")}
            chosen = mode_of(parameters["interpolation"])
            image = v2.ElasticTransform(**fields, interpolation=chosen)(image)
        else:
            image = apply([(name, parameters)], image)
    return image


def to_tensor(pixels):
    return torch.from_numpy(numpy.ascontiguousarray(pixels.transpose(2, 0, 1)))


def to_pixels(image):
    """Height x width x 3 bytes of either kind of image."""
    if isinstance(image, torch.Tensor):
        return numpy.ascontiguousarray(image.permute(1, 2, 0).numpy())
    return numpy.asarray(image)


def reference(operations, pixels, mode):
    """torchvision's result as an array, or the text of its refusal."""
    image = Image.fromarray(pixels) if mode == "pil" else to_tensor(pixels)
    try:
        return to_pixels(apply(operations, image))
    except (ValueError, RuntimeError, TypeError, OverflowError, ZeroDivisionError) as error:
        return f"{type(error).__name__}: {error}"


# Images.


def noise(seed, width, height, black_and_white=False):
    """SplitMix64 in counter mode, little endian, as the tests draw it."""
    size = width * height * 3
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + numpy.arange(1, size // 8 + 2, dtype=numpy.uint64) * numpy.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    pixels = z.astype("<u8").view(numpy.uint8)[:size].reshape(height, width, 3)
    return (pixels & 1) * numpy.uint8(255) if black_and_white else pixels


def smooth(seed, width, height):
    """Slopes of three directions, in whole numbers so that tests can draw the same."""
    y, x = numpy.mgrid[:height, :width]
    channels = [(x * (3 + seed % 5) + y * (2 + channel) + channel * 40) % 256 for channel in range(3)]
    return numpy.stack(channels, 2).astype(numpy.uint8)


EDGE_SIZES = ((1, 1), (2, 2), (1, 17), (17, 1), (2, 9), (9, 2), (3, 3), (5, 4), (13, 7), (33, 31), (65, 64))


def edge_images():
    """Small, narrow, constant and extreme images, with names."""
    for number, (width, height) in enumerate(EDGE_SIZES):
        yield f"noise {width}x{height}", noise(number, width, height)
    for value in (0, 255, 77):
        yield f"constant {value}", numpy.full((19, 23, 3), value, numpy.uint8)
    yield "black and white", noise(99, 40, 27, black_and_white=True)
    yield "smooth", smooth(3, 64, 48)
    grey = noise(7, 21, 35)
    yield "grey", numpy.repeat(grey[..., :1], 3, 2)


def photographs(folder, count):
    """The first photographs of `imagenet`, decoded by Pillow."""
    files = sorted((folder / "imagenet").glob("*.JPEG"))
    step = max(1, len(files) // count)
    for file in files[::step][:count]:
        with Image.open(io.BytesIO(file.read_bytes())) as image:
            yield file.stem, numpy.asarray(image.convert("RGB"))
