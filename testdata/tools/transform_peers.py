"""The transforms as Pillow, OpenCV and kornia-rs do them, for `bench_transforms.py`.

Each library is used the way its own documentation does: look-up tables and fused calls where it has
them, results allocated by the library. A function returns None for what a library does not offer.
"""

import cv2
import kornia_rs
import numpy
from kornia_rs import imgproc
from PIL import Image, ImageChops, ImageEnhance, ImageFilter, ImageOps
from torchvision.transforms.v2.functional import _geometry as geometry
from transform_operations import basic

cv2.setNumThreads(1)
BYTES = numpy.arange(256)
FLOATS = BYTES.astype(numpy.float32)
PILLOW_FILTER = {
    name: getattr(Image.Resampling, name.upper())
    for name in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
}
PILLOW_FILTER["nearest-exact"] = Image.Resampling.NEAREST
CV_FILTER = {
    "nearest": cv2.INTER_NEAREST,
    "nearest-exact": cv2.INTER_NEAREST_EXACT,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "lanczos": cv2.INTER_LANCZOS4,
    "box": cv2.INTER_AREA,
}
CV_BORDER = {
    "constant": cv2.BORDER_CONSTANT,
    "edge": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "symmetric": cv2.BORDER_REFLECT,
}


def fill_of(fill):
    return tuple(fill) if fill else (0, 0, 0)


def affine_matrix(parameters, width, height):
    """Maps centres of output pixels to the input: the matrix torchvision gives Pillow."""
    center = [width * 0.5, height * 0.5] if parameters.get("center") is None else parameters["center"]
    if "translate" not in parameters:
        return geometry._get_inverse_affine_matrix([0.0, 0.0], -parameters["angle"], [0, 0], 1.0, [0.0, 0.0])
    return geometry._get_inverse_affine_matrix(
        center, parameters["angle"], parameters["translate"], parameters["scale"], parameters["shear"]
    )


def between_integers(matrix):
    """The matrix for coordinates that are whole at the centres of pixels."""
    a, b, c, d, e, f = matrix
    return numpy.array([[a, b, c + (a + b) / 2 - 0.5], [d, e, f + (d + e) / 2 - 0.5]])


def perspective_matrix(parameters):
    coefficients = geometry._perspective_coefficients(
        parameters["startpoints"], parameters["endpoints"], None
    )
    matrix = numpy.array([*coefficients, 1.0]).reshape(3, 3)
    half = numpy.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1.0]])
    return coefficients, numpy.linalg.inv(half) @ matrix @ half


# Pillow.


def pillow_crop(image, p):
    return image.crop((p["left"], p["top"], p["left"] + p["width"], p["top"] + p["height"]))


def pillow_erase(image, i, j, h, w, color):
    image = image.copy()
    image.paste(tuple(color), (j, i, j + w, i + h))
    return image


def pillow_affine(image, parameters):
    matrix = affine_matrix(parameters, image.width, image.height)
    resample = PILLOW_FILTER[parameters["interpolation"]]
    return image.transform(
        image.size, Image.Transform.AFFINE, matrix, resample, fillcolor=fill_of(parameters["fill"])
    )


def pillow_perspective(image, parameters):
    coefficients, _ = perspective_matrix(parameters)
    resample = PILLOW_FILTER[parameters["interpolation"]]
    return image.transform(
        image.size, Image.Transform.PERSPECTIVE, coefficients, resample, fillcolor=fill_of(parameters["fill"])
    )


def pillow_pad(image, padding, mode, fill):
    return ImageOps.expand(image, tuple(padding), tuple(fill)) if mode == "constant" else None


def pillow_hue(image, factor):
    hue, saturation, value = image.convert("HSV").split()
    hue = hue.point([(number + int(factor * 255)) % 256 for number in range(256)])
    return Image.merge("HSV", (hue, saturation, value)).convert("RGB")


def pillow_permute(image, permutation):
    bands = image.split()
    return Image.merge("RGB", [bands[number] for number in permutation])


def pillow_blur(image, kernel_size, sigma):
    return image.filter(ImageFilter.GaussianBlur(tuple(sigma)))


PILLOW = {
    "resize": lambda image, p: (
        image.resize(p["size"][::-1], PILLOW_FILTER[p["interpolation"]]) if p["antialias"] else None
    ),
    "crop": lambda image, p: pillow_crop(image, p),
    "pad": lambda image, p: pillow_pad(image, **p),
    "resized_crop": lambda image, p: pillow_crop(image, p).resize(
        p["size"][::-1], PILLOW_FILTER[p["interpolation"]]
    ),
    "horizontal_flip": lambda image, p: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    "vertical_flip": lambda image, p: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
    "rotate": lambda image, p: image.rotate(
        p["angle"], PILLOW_FILTER[p["interpolation"]], p["expand"], fillcolor=fill_of(p["fill"])
    ),
    "affine": pillow_affine,
    "perspective": pillow_perspective,
    "brightness": lambda image, p: ImageEnhance.Brightness(image).enhance(p["factor"]),
    "contrast": lambda image, p: ImageEnhance.Contrast(image).enhance(p["factor"]),
    "saturation": lambda image, p: ImageEnhance.Color(image).enhance(p["factor"]),
    "sharpness": lambda image, p: ImageEnhance.Sharpness(image).enhance(p["factor"]),
    "hue": lambda image, p: pillow_hue(image, **p),
    "grayscale": lambda image, p: image.convert("L").convert("RGB"),
    "invert": lambda image, p: ImageChops.invert(image),
    "posterize": lambda image, p: ImageOps.posterize(image, p["bits"]),
    "solarize": lambda image, p: ImageOps.solarize(image, p["threshold"]),
    "autocontrast": lambda image, p: ImageOps.autocontrast(image),
    "equalize": lambda image, p: ImageOps.equalize(image),
    "permute_channels": lambda image, p: pillow_permute(image, **p),
    "gaussian_blur": lambda image, p: pillow_blur(image, **p),
    "erase": lambda image, p: pillow_erase(image, **p),
}


# OpenCV.


def table(values):
    return numpy.clip(values, 0, 255).astype(numpy.uint8)


def cv_warp(image, parameters):
    height, width = image.shape[:2]
    if parameters.get("expand"):
        return cv_rotate_expanded(image, parameters)
    matrix = between_integers(rotation_about_center(parameters, width, height))
    flags = CV_FILTER[parameters["interpolation"]] | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(
        image, matrix, (width, height), flags=flags, borderValue=fill_of(parameters["fill"])
    )


def rotation_about_center(parameters, width, height):
    if "translate" in parameters:
        return affine_matrix(parameters, width, height)
    full = {
        **parameters,
        "angle": -parameters["angle"],
        "translate": [0, 0],
        "scale": 1.0,
        "shear": [0.0, 0.0],
    }
    return affine_matrix(full, width, height)


TURNS = {90.0: cv2.ROTATE_90_COUNTERCLOCKWISE, 180.0: cv2.ROTATE_180, 270.0: cv2.ROTATE_90_CLOCKWISE}


def cv_rotate_expanded(image, parameters):
    turn = TURNS.get(parameters["angle"] % 360)
    if turn is not None:
        return cv2.rotate(image, turn)
    height, width = image.shape[:2]
    matrix = rotation_about_center(parameters, width, height)
    wide, high = geometry._compute_affine_output_size(affine_matrix(parameters, width, height), width, height)
    a, b, c, d, e, f = matrix
    x, y = (wide - width) / 2, (high - height) / 2
    matrix = between_integers([a, b, c - a * x - b * y, d, e, f - d * x - e * y])
    flags = CV_FILTER[parameters["interpolation"]] | cv2.WARP_INVERSE_MAP
    return cv2.warpAffine(image, matrix, (wide, high), flags=flags, borderValue=fill_of(parameters["fill"]))


def cv_perspective(image, parameters):
    _, matrix = perspective_matrix(parameters)
    flags = CV_FILTER[parameters["interpolation"]] | cv2.WARP_INVERSE_MAP
    size = image.shape[1::-1]
    return cv2.warpPerspective(image, matrix, size, flags=flags, borderValue=fill_of(parameters["fill"]))


def cv_resize(image, size, interpolation, antialias):
    smaller = size[0] < image.shape[0]
    if interpolation not in CV_FILTER:
        return None
    filter_ = (
        cv2.INTER_AREA if antialias and smaller and interpolation == "bilinear" else CV_FILTER[interpolation]
    )
    return cv2.resize(image, size[::-1], interpolation=filter_)


def cv_crop(image, top, left, height, width):
    return image[top : top + height, left : left + width].copy()


def cv_resized_crop(image, top, left, height, width, size, interpolation):
    return cv_resize(image[top : top + height, left : left + width], size, interpolation, True)


def cv_pad(image, padding, mode, fill):
    left, top, right, bottom = padding
    return cv2.copyMakeBorder(image, top, bottom, left, right, CV_BORDER[mode], value=fill_of(fill))


def cv_contrast(image, factor):
    mean = int(cv2.mean(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))[0] + 0.5)
    return cv2.LUT(image, table(mean + numpy.float32(factor) * (FLOATS - mean)))


def cv_saturation(image, factor):
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return cv2.addWeighted(image, factor, grey, 1 - factor, 0)


SMOOTH = numpy.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], numpy.float32) / 13


def cv_sharpness(image, factor):
    blurred = cv2.filter2D(image, -1, SMOOTH)
    blurred[0], blurred[-1], blurred[:, 0], blurred[:, -1] = image[0], image[-1], image[:, 0], image[:, -1]
    return cv2.addWeighted(image, factor, blurred, 1 - factor, 0)


def cv_hue(image, factor):
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV_FULL)
    tables = numpy.stack([(BYTES + int(factor * 255)) % 256, BYTES, BYTES], 1)
    return cv2.cvtColor(cv2.LUT(hsv, tables.astype(numpy.uint8).reshape(1, 256, 3)), cv2.COLOR_HSV2RGB_FULL)


def cv_autocontrast(image):
    tables = []
    for band in cv2.split(image):
        low, high, _, _ = cv2.minMaxLoc(band)
        scale = 255 / (high - low) if high > low else 1.0
        tables.append(table((BYTES - (low if high > low else 0)) * scale))
    return cv2.LUT(image, numpy.stack(tables, 1).reshape(1, 256, 3))


def cv_equalize(image):
    return cv2.merge([cv2.equalizeHist(band) for band in cv2.split(image)])


def cv_permute(image, permutation):
    result = numpy.empty_like(image)
    pairs = [number for target, source in enumerate(permutation) for number in (source, target)]
    cv2.mixChannels([image], [result], pairs)
    return result


def cv_blur(image, kernel_size, sigma):
    return cv2.GaussianBlur(
        image, tuple(kernel_size), sigma[0], sigmaY=sigma[1], borderType=cv2.BORDER_REFLECT_101
    )


def cv_noise(image, mean, sigma, number):
    noise = numpy.empty(image.shape, numpy.int16)
    cv2.randn(noise, (mean * 255,) * 3, (sigma * 255,) * 3)
    return cv2.add(image, noise, dtype=cv2.CV_8U)


def cv_erase(image, i, j, h, w, color):
    image = image.copy()
    image[i : i + h, j : j + w] = color
    return image


def cv_normalize(image, mean, std):
    planes = cv2.dnn.blobFromImage(image, 1 / 255, mean=[number * 255 for number in mean])[0]
    planes /= numpy.array(std, numpy.float32).reshape(3, 1, 1)
    return planes.transpose(1, 2, 0)


CV = {
    "resize": lambda image, p: cv_resize(image, **p),
    "crop": lambda image, p: cv_crop(image, **p),
    "pad": lambda image, p: cv_pad(image, **p),
    "resized_crop": lambda image, p: cv_resized_crop(image, **p),
    "horizontal_flip": lambda image, p: cv2.flip(image, 1),
    "vertical_flip": lambda image, p: cv2.flip(image, 0),
    "rotate": cv_warp,
    "affine": cv_warp,
    "perspective": cv_perspective,
    "brightness": lambda image, p: cv2.LUT(image, table(FLOATS * numpy.float32(p["factor"]))),
    "contrast": lambda image, p: cv_contrast(image, **p),
    "saturation": lambda image, p: cv_saturation(image, **p),
    "sharpness": lambda image, p: cv_sharpness(image, **p),
    "hue": lambda image, p: cv_hue(image, **p),
    "grayscale": lambda image, p: cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB),
    "invert": lambda image, p: cv2.bitwise_not(image),
    "posterize": lambda image, p: cv2.LUT(image, table(BYTES & (0xFF00 >> p["bits"]))),
    "solarize": lambda image, p: cv2.LUT(
        image, table(numpy.where(BYTES >= p["threshold"], 255 - BYTES, BYTES))
    ),
    "autocontrast": lambda image, p: cv_autocontrast(image),
    "equalize": lambda image, p: cv_equalize(image),
    "permute_channels": lambda image, p: cv_permute(image, **p),
    "gaussian_blur": lambda image, p: cv_blur(image, **p),
    "gaussian_noise": lambda image, p: cv_noise(image, **p),
    "erase": lambda image, p: cv_erase(image, **p),
    "normalize": lambda image, p: cv_normalize(image, **p),
}


# kornia-rs.


def kornia_resize(image, p):
    names = {"nearest": "nearest", "bilinear": "bilinear", "bicubic": "bicubic", "lanczos": "lanczos"}
    name = names.get(p["interpolation"])
    return imgproc.resize(image, tuple(p["size"]), name, antialias=p.get("antialias", True)) if name else None


def kornia_warp(image, parameters):
    if (
        parameters.get("expand")
        or parameters["interpolation"] not in ("nearest", "bilinear")
        or parameters["fill"]
    ):
        return None
    height, width = image.shape[:2]
    matrix = between_integers(rotation_about_center(parameters, width, height))
    forward = numpy.linalg.inv(numpy.vstack([matrix, [0, 0, 1]]))[:2]
    values = tuple(forward.astype(numpy.float32).ravel().tolist())
    return imgproc.warp_affine(image, values, (height, width), parameters["interpolation"])


def kornia_perspective(image, parameters):
    if parameters["interpolation"] not in ("nearest", "bilinear") or parameters["fill"]:
        return None
    _, matrix = perspective_matrix(parameters)
    values = tuple(numpy.linalg.inv(matrix).astype(numpy.float32).ravel().tolist())
    return imgproc.warp_perspective(image, values, image.shape[:2], parameters["interpolation"])


def through_image(method):
    def run(image, parameters):
        result = getattr(kornia_rs.image.Image(image), method)(*parameters.values())
        return result.numpy()

    return run


def kornia_crop(image, p):
    return imgproc.crop(image, p["left"], p["top"], p["width"], p["height"])


KORNIA = {
    "resize": kornia_resize,
    "crop": kornia_crop,
    "resized_crop": lambda image, p: kornia_resize(kornia_crop(image, p), p),
    "horizontal_flip": lambda image, p: imgproc.horizontal_flip(image),
    "vertical_flip": lambda image, p: imgproc.vertical_flip(image),
    "rotate": kornia_warp,
    "affine": kornia_warp,
    "perspective": kornia_perspective,
    "brightness": through_image("adjust_brightness"),
    "contrast": through_image("adjust_contrast"),
    "saturation": through_image("adjust_saturation"),
    "hue": through_image("adjust_hue"),
    "grayscale": lambda image, p: imgproc.rgb_from_gray(imgproc.gray_from_rgb(image)),
    "gaussian_blur": lambda image, p: imgproc.gaussian_blur(
        image, tuple(p["kernel_size"]), tuple(p["sigma"])
    ),
}


def peers(operations, pixels):
    """Functions that do the operations with each library that has them all, by its name.

    Each takes and gives the library's own kind of image.
    """
    height, width = pixels.shape[:2]
    operations = basic(operations, width, height)
    images = {"Pillow": Image.fromarray(pixels), "OpenCV": pixels, "kornia-rs": pixels}
    for name, functions in {"Pillow": PILLOW, "OpenCV": CV, "kornia-rs": KORNIA}.items():
        if all(operation in functions for operation, _ in operations):
            run = chain(functions, operations, images[name])
            if attempt(run) is not None:
                yield name, run


def chain(functions, operations, image):
    def run():
        result = image
        for operation, parameters in operations:
            result = functions[operation](result, parameters)
        return result

    return run


def attempt(run):
    """What a library refuses, it does not offer."""
    try:
        return run()
    except (TypeError, ValueError, AttributeError, NotImplementedError, RuntimeError, cv2.error):
        return None
