"""Composite operations of `transform_cases.py` as the basic ones they stand for."""

import math

from torchvision.transforms.v2.functional import _geometry as geometry


def basic(operations, width, height):
    """The same operations without policies' names and without sizes that depend on the image."""
    result = []
    for name, parameters in operations:
        expanded = (
            EXPANSIONS[name](width, height, **parameters) if name in EXPANSIONS else [(name, parameters)]
        )
        for operation in expanded:
            width, height = size_after(operation, width, height)
            result.append(operation)
    return result


def size_after(operation, width, height):
    name, parameters = operation
    if name in ("resize", "resized_crop"):
        return parameters["size"][1], parameters["size"][0]
    if name == "crop":
        return parameters["width"], parameters["height"]
    if name == "pad":
        left, top, right, bottom = parameters["padding"]
        return width + left + right, height + top + bottom
    return width, height


def resize_shorter(width, height, size, max_size):
    size = geometry._compute_resized_output_size((height, width), size=[size], max_size=max_size)
    return [("resize", {"size": list(size), "interpolation": "bilinear", "antialias": True})]


def center_crop(width, height, size):
    crop_height, crop_width = size
    operations = []
    if crop_width > width or crop_height > height:
        left, top = max(0, (crop_width - width) // 2), max(0, (crop_height - height) // 2)
        right, bottom = max(0, (crop_width - width + 1) // 2), max(0, (crop_height - height + 1) // 2)
        padding = [left, top, right, bottom]
        operations.append(("pad", {"padding": padding, "mode": "constant", "fill": [0, 0, 0]}))
        width, height = width + left + right, height + top + bottom
    top, left = round((height - crop_height) / 2), round((width - crop_width) / 2)
    if (width, height) != (crop_width, crop_height):
        operations.append(("crop", {"top": top, "left": left, "height": crop_height, "width": crop_width}))
    return operations


def five_crop(width, height, size, view):
    crop_height, crop_width = size
    if view == 4:
        return center_crop(width, height, size)
    left = (width - crop_width) * (view % 2)
    top = (height - crop_height) * (view // 2)
    return [("crop", {"top": top, "left": left, "height": crop_height, "width": crop_width})]


def ten_crop(width, height, size, view):
    flip = [("horizontal_flip", {})] if view >= 5 else []
    return flip + five_crop(width, height, size, view % 5)


FACTORS = {
    "Brightness": "brightness",
    "Color": "saturation",
    "Contrast": "contrast",
    "Sharpness": "sharpness",
}
PLAIN = {"AutoContrast": "autocontrast", "Equalize": "equalize", "Invert": "invert"}


def policy(width, height, id, magnitude):
    warp = {
        "angle": 0.0,
        "translate": [0, 0],
        "scale": 1.0,
        "shear": [0.0, 0.0],
        "interpolation": "nearest",
        "fill": None,
    }
    slant = math.degrees(math.atan(magnitude))
    if id == "Identity":
        return []
    if id in FACTORS:
        return [(FACTORS[id], {"factor": 1.0 + magnitude})]
    if id in PLAIN:
        return [(PLAIN[id], {})]
    return {
        "ShearX": [("affine", {**warp, "shear": [slant, 0.0], "center": [0, 0]})],
        "ShearY": [("affine", {**warp, "shear": [0.0, slant], "center": [0, 0]})],
        "TranslateX": [("affine", {**warp, "translate": [int(magnitude), 0]})],
        "TranslateY": [("affine", {**warp, "translate": [0, int(magnitude)]})],
        "Rotate": [
            ("rotate", {"angle": magnitude, "interpolation": "nearest", "expand": False, "fill": None})
        ],
        "Posterize": [("posterize", {"bits": int(magnitude)})],
        "Solarize": [("solarize", {"threshold": 255.0 * magnitude})],
    }[id]


EXPANSIONS = {
    "resize_shorter": resize_shorter,
    "center_crop": center_crop,
    "five_crop": five_crop,
    "ten_crop": ten_crop,
    "policy": policy,
}
