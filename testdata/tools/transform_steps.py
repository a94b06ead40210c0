"""Operations of `transform_cases.py` as steps of tl-transform, in the JSON that serde reads."""

import torch
from PIL import Image
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional import _geometry as geometry
from transform_operations import basic, size_after


class Missing(Exception):
    """There is no step for an operation."""


def steps(operations, width, height, mode):
    """The steps that do `operations` to an image of this size in a mode."""
    result = []
    for operation in basic(operations, width, height):
        name, parameters = operation
        if name not in STEPS:
            raise Missing(f"no step does {name}")
        result += STEPS[name]((width, height), mode, **parameters)
        width, height = size_after(operation, width, height)
    return result


def request(operations, width, height, mode):
    """What `transform_server.Server` is asked for."""
    normalize = {}
    if operations and operations[-1][0] == "normalize":
        operations, normalize = operations[:-1], {"normalize": operations[-1][1]}
    return {"steps": steps(operations, width, height, mode), "parity": mode, **normalize}


def passing(image, mode, region=None, resized=None, **rest):
    region = region or [0, 0, *image]
    resized = resized or region[2:]
    step = {
        "region": region,
        "resized": resized,
        "window": [0, 0, *resized],
        "padding": {},
        "flip": False,
        "interpolation": "bilinear",
        "parity": mode,
    }
    step.update(rest)
    step["interpolation"] = step["interpolation"].replace("-", "_")
    return [{"pass": step}]


def resize(image, mode, size, interpolation, antialias=True):
    return passing(image, mode, resized=size[::-1], interpolation=interpolation, antialias=antialias)


def crop(image, mode, top, left, width, height):
    return passing(image, mode, region=[left, top, width, height])


def resized_crop(image, mode, top, left, width, height, size, interpolation):
    region = [left, top, width, height]
    return passing(image, mode, region=region, resized=size[::-1], interpolation=interpolation)


def pad(image, mode_of_pixels, padding, mode, fill):
    padding = dict(zip(("left", "top", "right", "bottom"), padding))
    if mode == "constant":
        return passing(image, mode_of_pixels, padding=padding, fill=fill)
    return [{"pad": {"padding": padding, "mode": mode}}]


def turned(image, mode, angle, interpolation, expand, fill):
    size = list(expanded(image, mode, angle, interpolation)) if expand else None
    rotation = {"angle": angle, "expand": size, "center": None}
    return [{"warp": {"rotate": {**rotation, "interpolation": interpolation, "fill": fill}}}]


def expanded(image, mode, angle, interpolation):
    """The size of a rotated image that holds every corner."""
    if mode == "pil":
        return Image.new("L", image).rotate(angle, expand=True).size
    return tuple(
        F.rotate(torch.zeros(1, image[1], image[0], dtype=torch.uint8), angle, expand=True).shape[:0:-1]
    )


def affine(image, mode, center=None, **parameters):
    return [{"warp": {"affine": {"center": center, **parameters}}}]


def perspective(image, mode, startpoints, endpoints, interpolation, fill):
    try:
        coefficients = geometry._perspective_coefficients(startpoints, endpoints, None)
    except torch.linalg.LinAlgError:
        # torchvision refuses too.
        return [{"warp": "singular"}]
    warp = {"coefficients": coefficients, "interpolation": interpolation, "fill": fill}
    return [{"warp": {"perspective": warp}}]


def color(name, parameter=None):
    """A change of colours, which is a name, or a name and its one parameter."""
    if parameter is None:
        return lambda image, mode: [{"color": name}]
    return lambda image, mode, **given: [{"color": {name: given[parameter]}}]


def gaussian_blur(image, mode, kernel_size, sigma):
    return [{"filter": {"gaussian_blur": {"kernel_size": kernel_size, "sigma": sigma}}}]


def gaussian_noise(image, mode, mean, sigma, number):
    return [{"noise": {"gaussian": {"mean": mean, "sigma": sigma, "clip": True, "key": number}}}]


def erase(image, mode, i, j, h, w, color):
    return [{"erase": {"rectangle": {"rect": [j, i, w, h], "fill": {"value": color}}}}]


def augmix(image, mode, share, weights, chains):
    """Chains of operations between marks; torchvision interpolates them bilinearly, on tensors."""
    result = [{"mix": {"begin": {"weight": share}}}]
    for number, (weight, chain) in enumerate(zip(weights, chains, strict=True), 1):
        operations = [("policy", {"id": name, "magnitude": magnitude}) for name, magnitude in chain]
        for step in steps(operations, *image, "tensor"):
            if "warp" in step:
                for warp in step["warp"].values():
                    warp["interpolation"] = "bilinear"
            result.append(step)
        result.append({"mix": {"end" if number == len(chains) else "chain": {"weight": weight}}})
    return result


STEPS = {
    "augmix": augmix,
    "resize": resize,
    "crop": crop,
    "resized_crop": resized_crop,
    "pad": pad,
    "horizontal_flip": lambda image, mode: passing(image, mode, flip=True),
    "vertical_flip": lambda image, mode: passing(image, mode, flip_vertical=True),
    "brightness": color("brightness", "factor"),
    "contrast": color("contrast", "factor"),
    "saturation": color("saturation", "factor"),
    "sharpness": color("sharpness", "factor"),
    "hue": lambda image, mode, factor: [{"color": {"hue": {"factor": factor}}}],
    "grayscale": color("grayscale"),
    "invert": color("invert"),
    "posterize": color("posterize", "bits"),
    "solarize": color("solarize", "threshold"),
    "autocontrast": color("autocontrast"),
    "equalize": color("equalize"),
    "permute_channels": color("permute_channels", "permutation"),
    "rotate": turned,
    "affine": affine,
    "perspective": perspective,
    "gaussian_blur": gaussian_blur,
    "gaussian_noise": gaussian_noise,
    "erase": erase,
}


def needs_server(operations):
    """Whether only tl-transform can say what the operations do."""
    return any(name == "elastic" for name, _ in operations)


def elastic(image, mode, sample, alpha, sigma, **rest):
    stream = {"draw": {"seed": 1, "epoch": 2, "sample": sample}, "op": 3}
    warp = {"alpha": [alpha] * 2, "sigma": [sigma] * 2, "stream": stream, **rest}
    return [{"warp": {"elastic": warp}}]


STEPS["elastic"] = elastic


def fill_in(operations, server, pixels, mode):
    """The operations with what tl-transform drew itself."""
    height, width, _ = pixels.shape
    return [
        (name, displaced(server, pixels, steps([(name, parameters)], width, height, mode), parameters))
        if name == "elastic"
        else (name, parameters)
        for name, parameters in operations
    ]


def displaced(server, pixels, elastic_steps, parameters):
    header, displacements = server.ask(pixels, steps=elastic_steps, displacements=True)
    if displacements is None:
        raise ValueError(header["error"])
    interpolation, fill = parameters["interpolation"], parameters["fill"]
    return {
        "displacement": torch.from_numpy(displacements.copy()),
        "interpolation": interpolation,
        "fill": fill,
    }
