"""The mistakes of a first day, with what each message has to say: what is wrong and what to write."""

from __future__ import annotations

import ast
import pathlib
import re
import warnings

import numpy as np
import pytest
import turboloader as tl
from turboloader import _advice
from turboloader import transforms as T  # noqa: N812
from turboloader._settings import Settings

# ruff: noqa: E501

P = str(pathlib.Path(__file__).parents[3] / "testdata" / "photos")


def L(**settings):  # noqa: N802
    """A loader of the photographs."""
    return tl.DataLoader(P, **{"batch_size": 4, **settings})


def it(**settings):
    """Its first batch."""
    return next(iter(L(**settings)))


NAMES = {"L": L, "P": P, "T": T, "it": it, "np": np, "pathlib": pathlib, "tl": tl}

# What is written, the kind of the error, and what its message has.
MISTAKES = [
    (
        "it(transform=T.ToTensor())",
        "SettingError",
        "recipe `ToFloat -> f32 CHW` keeps the sizes of images, and floats or channels first need one size: add Resize with height and width, RandomResizedCrop or CenterCrop; or set buckets",
    ),
    (
        "it(transform=[T.Resize(256), T.ToTensor()])",
        "SettingError",
        "recipe `Resize(256, bilinear) -> ToFloat -> f32 CHW` keeps the sizes of images, and floats or channels first need one size: add Resize with height and width, RandomResizedCrop or CenterCrop; or set buckets",
    ),
    (
        "it(transform=[T.Resize((8,8)), T.Normalize(), T.ToTensor()])",
        "RecipeError",
        "operation 1: Normalize cannot follow Resize: it works on floats, so put ToFloat (ToTensor) before it",
    ),
    (
        "it(transform=[T.Resize((8,8)), T.ToTensor(), T.ColorJitter(.1)])",
        "RecipeError",
        "operation 2: ColorJitter cannot follow ToFloat: it works on 8-bit pixels, so put it before ToFloat (ToTensor)",
    ),
    (
        "it(transform=[T.ToTensor(), T.Resize((8,8))])",
        "RecipeError",
        "operation 1: Resize cannot follow ToFloat: it works on 8-bit pixels, so put it before ToFloat (ToTensor)",
    ),
    ("it(transform=T.ToTensor)", "TypeError", "ToTensor is a class: pass an instance, ToTensor()"),
    (
        "it(transform=[T.Resize, T.ToTensor])",
        "TypeError",
        "Resize is a class: pass an instance, Resize()",
    ),
    (
        "it(transform=[[T.Resize(8)],[T.Resize(8)]])",
        "TypeError",
        "a list within a list of transforms: pass one list, or a dict of lists for several views of an image, such as {'a': [...], 'b': [...]}",
    ),
    (
        "T.Resize(-1)",
        "RecipeError",
        "Resize: size is -1: a size is 1 to 65535 pixels, or [height, width] of such",
    ),
    (
        'T.Resize("224")',
        "RecipeError",
        "Resize: size is '224': a size is 1 to 65535 pixels, or [height, width] of such",
    ),
    ("T.Resize(0)", "RecipeError", "Resize: size is 0, expected 1 to 65535"),
    (
        "T.Resize(2.5)",
        "RecipeError",
        "Resize: size is 2.5: a size is 1 to 65535 pixels, or [height, width] of such",
    ),
    (
        "T.Resize((1,2,3))",
        "RecipeError",
        "Resize: size is [1, 2, 3]: a size is 1 to 65535 pixels, or [height, width] of such",
    ),
    (
        'T.Resize(8,"cubic")',
        "RecipeError",
        "Resize: interpolation is 'cubic': unknown variant `cubic`, expected one of `nearest`, `nearest-exact`, `nearest_exact`, `box`, `bilinear`, `hamming`, `bicubic`, `lanczos`",
    ),
    ("T.Resize()", "TypeError", "Resize: missing a required argument: 'size'"),
    (
        'T.Resize(8, interp="bilinear")',
        "TypeError",
        "Resize got an unexpected keyword argument 'interp': did you mean interpolation?",
    ),
    (
        "T.RandomHorizontalFlip(2)",
        "RecipeError",
        "RandomHorizontalFlip: p is 2, expected a probability, 0 to 1",
    ),
    (
        'T.RandomHorizontalFlip("x")',
        "RecipeError",
        "RandomHorizontalFlip: p is 'x': invalid type: string \"x\", expected f64",
    ),
    (
        "T.ColorJitter(-1)",
        "RecipeError",
        "ColorJitter: brightness is -1, expected 0 or a positive number",
    ),
    (
        "T.Normalize([.5,.5],[.5,.5])",
        "RecipeError",
        "Normalize: mean is [0.5, 0.5]: 2 numbers, expected one for each of 3 channels, or of 4",
    ),
    (
        "T.Normalize([.5]*3,[0]*3)",
        "RecipeError",
        "Normalize: std is 0, expected a finite number above 0",
    ),
    (
        'L(image_size="224")',
        "SettingError",
        "image_size is '224', expected a whole number, 0 or more",
    ),
    (
        "L(image_size=(1,2,3))",
        "SettingError",
        "image_size is (1, 2, 3), expected one number or (height, width)",
    ),
    ('L(batch_size="8")', "SettingError", "batch_size is '8', expected a whole number from 1 to"),
    ("L(batch_size=-1)", "SettingError", "batch_size is -1, expected a whole number from 1 to"),
    ("L(batch_size=0)", "SettingError", "batch_size is 0, expected a whole number from 1 to"),
    ("L(batch_size=2.0)", "SettingError", "batch_size is 2.0, expected a whole number from 1 to"),
    ("L(batch_size=None)", "SettingError", "batch_size is None, expected a whole number from 1 to"),
    ("L(transform={1: T.Resize(8)})", "SettingError", "expected names with transforms"),
    ("tl.open(P)[1.0]", "SettingError", "select: 1.0 is not a number, expected places or a mask"),
    (
        "T.Views(2, T.Views(3, T.Resize((8, 8))))",
        "RecipeError",
        "Views: transform is Views too: pass Views(6, ...)",
    ),
    (
        'tl.open(P).preview("sheet.jpg")',
        "SettingError",
        "preview writes a PNG file, and 'sheet.jpg' is the name of another",
    ),
    (
        'tl.manifest("m.csv", files="caption")',
        "SettingError",
        "files is the text 'caption', expected a list of names",
    ),
    (
        'tl.coco(P, "a.json", fields="boxes")',
        "SettingError",
        "fields is the text 'boxes', expected a list of names",
    ),
    (
        'tl.pairs("i/*.jpg", mask=3)',
        "SettingError",
        "mask is 3, expected a pattern such as 'masks/*.png'",
    ),
    (
        'tl.pairs("i/*.jpg", "m/*.png")',
        "TypeError",
        "pairs takes 1 positional argument, not 2: pass the pattern of each field by name",
    ),
    (
        "tl.mix(tl.open(P), tl.open(P))",
        "TypeError",
        "mix takes 1 positional argument, not 2: pass a weight for each data set, mix({a: 3, b: 1})",
    ),
    (
        "tl.mix([tl.open(P), tl.open(P)])",
        "SettingError",
        "mix takes a weight for each data set: mix({a: 3, b: 1})",
    ),
    (
        "tl.concat([tl.open(P), tl.open(P)])",
        "SettingError",
        "concat takes data sets one by one: concat(a, b), or concat(*data_sets)",
    ),
    (
        "tl.open(P).split([0.8, 0.2])",
        "SettingError",
        "split takes fractions one by one: split(0.8, 0.2)",
    ),
    (
        'tl.open(P).weights({"animals": 2})',
        "SettingError",
        "weights is a dict, expected a number for each sample; balance() draws as many samples of every class",
    ),
    (
        'tl.pairs("i/*.jpg", mask="m/*.png", spilt="train.txt")',
        "TypeError",
        "pairs got an unexpected keyword argument 'spilt': did you mean split?",
    ),
    (
        'tl.pairs(images="i/*.jpg", mask="m/*.png")',
        "TypeError",
        "pairs got an unexpected keyword argument 'images': pass image",
    ),
    (
        'tl.pairs("i/*.jpg", mask="m/*.png", fields={"mask": tl.Mask()})',
        "TypeError",
        "pairs got an unexpected keyword argument 'fields': name the patterns, such as mask='masks/*.png', and call with_fields",
    ),
    (
        'tl.manifest("m.csv", "path")',
        "TypeError",
        "manifest takes 1 positional argument, not 2: pass image, label, files, root, store by name",
    ),
    (
        'L(image_size=8, fields=("image", "lable"))',
        "SettingError",
        "fields names 'lable', a batch has image, label, index, valid, size: did you mean label?",
    ),
    (
        'L(image_size=8, fields={"pixels": "image", "id": "keys"})',
        "SettingError",
        "fields names 'keys', a batch has image, label, index, valid, size: did you mean key?",
    ),
    ("L(seed=-1)", "SettingError", "seed is -1, expected a whole number, 0 or more"),
    ('L(seed="a")', "SettingError", "seed is 'a', expected a whole number, 0 or more"),
    (
        'L(memory="x")',
        "SettingError",
        "Memory: budget is 'x', expected bytes: a number, or text such as '2GB' or '512 MiB'",
    ),
    (
        "L(memory=-1)",
        "SettingError",
        "Memory: budget is -1, expected bytes: a number, or text such as '2GB' or '512 MiB'",
    ),
    ("L(num_workers=-1)", "SettingError", "num_workers is -1, expected a whole number, 0 or more"),
    (
        'L(num_workers="4")',
        "SettingError",
        "num_workers is '4', expected a whole number, 0 or more",
    ),
    (
        "L(pin_memory_device='cuda:1')",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'pin_memory_device': pass pin_memory='cuda:N', or device='cuda:N' for batches there",
    ),
    (
        "L(persistent_workers=True)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'persistent_workers': threads last as long as the loader; leave it out",
    ),
    (
        "L(collate_fn=list)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'collate_fn': a batch has fields by name; fields=('image', 'label') gives pairs",
    ),
    (
        "L(sampler=[1,2])",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'sampler': shuffle and seed decide the order; turboloader.torch.Dataset takes samplers",
    ),
    (
        "L(batch_sampler=[1,2])",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'batch_sampler': batches follow shuffle and seed; turboloader.torch.Dataset takes samplers",
    ),
    (
        "L(worker_init_fn=print)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'worker_init_fn': the workers are threads, and what is random follows from seed",
    ),
    (
        "L(timeout=3)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'timeout': pass store=tl.Store(deadline=...) for reads of stores",
    ),
    (
        "L(generator=None)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'generator': pass seed",
    ),
    (
        'L(multiprocessing_context="spawn")',
        "TypeError",
        "DataLoader got an unexpected keyword argument 'multiprocessing_context': the workers are threads",
    ),
    (
        "tl.DataLoader(dataset=P)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'dataset': pass data, or see turboloader.compat.MapDataLoader for Python objects",
    ),
    (
        "tl.DataLoader(root=P)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'root': pass data",
    ),
    (
        "L(target_transform=int)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'target_transform': turboloader.torch.Dataset has it; labels of a batch are one tensor",
    ),
    (
        "L(batchsize=3)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'batchsize': did you mean batch_size?",
    ),
    ("L(bs=3)", "TypeError", "DataLoader got an unexpected keyword argument 'bs': pass batch_size"),
    (
        "L(shufle=True)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'shufle': did you mean shuffle?",
    ),
    (
        "L(image_sz=8)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'image_sz': did you mean image_size?",
    ),
    (
        "L(workers=8)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'workers': pass num_workers",
    ),
    (
        "L(size=8)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'size': pass image_size, or a transform such as Resize",
    ),
    (
        "L(labls=[1])",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'labls': did you mean labels?",
    ),
    (
        "L(augment=True)",
        "TypeError",
        "DataLoader got an unexpected keyword argument 'augment': pass the transforms as transform=[...]",
    ),
    (
        'L(shuffle="yes")',
        "SettingError",
        "shuffle is 'yes', expected True, False, 'block:SAMPLESxWINDOW' or "
        "'lanes:LANES/SAMPLESxWINDOW', where SAMPLES is a number, or 'source' for the blocks of the "
        "files",
    ),
    ('L(drop_last="no")', "SettingError", "drop_last is 'no', expected True or False"),
    ('L(output_format="pytorch")', "SettingError", "output_format is 'pytorch': pass 'torch'"),
    (
        'L(output_format="numpy_chw")',
        "SettingError",
        "output_format is 'numpy_chw': pass 'numpy' with channels_last=False",
    ),
    (
        'L(output_format="torchh")',
        "SettingError",
        "output_format is torchh, expected one of tensor, numpy, torch, jax, tf",
    ),
    (
        "L(output_format=None)",
        "SettingError",
        "output_format is None, expected one of tensor, numpy, torch, jax, tf",
    ),
    (
        'L(errors="ignore")',
        "SettingError",
        "Errors: policy is ignore, expected one of raise, skip, replace, fill",
    ),
    ('L(tail="keep")', "SettingError", "tail is keep, expected one of drop, pad and uneven"),
    (
        'L(dtype="float", image_size=8)',
        "SettingError",
        "dtype is float, expected float32, float16, bfloat16, uint8 or uint16",
    ),
    (
        'L(dtype="int8", image_size=8)',
        "SettingError",
        "dtype is int8, expected float32, float16, bfloat16, uint8 or uint16",
    ),
    (
        "L(dtype=np.float64, image_size=8)",
        "SettingError",
        "dtype is float64, expected float32, float16, bfloat16, uint8 or uint16",
    ),
    ('L(parity="cv2", image_size=8)', "SettingError", "parity is cv2, expected one of pil, tensor"),
    (
        "L(decode_margin=0.5, image_size=8)",
        "RecipeError",
        "decode margin is 0.5, expected a number from 1 to 65536",
    ),
    (
        'L(format="zip")',
        "SettingError",
        "format is zip, expected one of auto, folder, imagefolder, tar, webdataset, tbl, idv, tbf",
    ),
    ('L(format="tar")', "SettingError", "format is tar, but the files are folder"),
    ("tl.DataLoader()", "SettingError", "no data set: pass data, a path or a Dataset"),
    ("tl.DataLoader(None)", "SettingError", "no data set: pass data, a path or a Dataset"),
    (
        "tl.DataLoader(3)",
        "SettingError",
        "data is 3, expected a path or URL, or a list of them; or a Dataset of turboloader.open",
    ),
    ("tl.open(3)", "SettingError", "path is 3, expected a path or URL, or a list of them"),
    ('tl.DataLoader("nothing.tar")', "PathNotFoundError", "No such file or directory"),
    (
        "tl.DataLoader(np.zeros((3,4,4,3),np.uint8))",
        "SettingError",
        "data has a value of type ndarray, expected paths: turboloader.from_items takes the bytes of images, turboloader.from_arrays arrays, turboloader.concat data sets",
    ),
    (
        'tl.DataLoader([b"abc"])',
        "SettingError",
        "data has a value of type bytes, expected paths: turboloader.from_items takes the bytes of images, turboloader.from_arrays arrays, turboloader.concat data sets",
    ),
    (
        "tl.DataLoader([np.zeros(3)])",
        "SettingError",
        "data has a value of type ndarray, expected paths: turboloader.from_items takes the bytes of images, turboloader.from_arrays arrays, turboloader.concat data sets",
    ),
    ("tl.DataLoader([])", "SettingError", "no data set: the list of paths is empty"),
    ('tl.DataLoader("")', "SettingError", "the path of the data set is an empty text"),
    ('tl.DataLoader("~/nothing")', "PathNotFoundError", "No such file or directory"),
    ('tl.DataLoader("file:///tmp/x.tar")', "PathNotFoundError", "No such file or directory"),
    (
        'tl.DataLoader("pipe:cat x.tar")',
        "SettingError",
        "pipe:cat x.tar: commands are not run; pass a file, a folder or a URL",
    ),
    (
        'tl.DataLoader("a.tar::b.tar")',
        "SettingError",
        "a.tar::b.tar: pass a list instead of names with :: between them",
    ),
    (
        'tl.DataLoader("{a,b}.tar")',
        "SettingError",
        "{a,b}.tar: pass a list instead of alternatives in braces; only ranges such as {000..127} are expanded",
    ),
    (
        'tl.DataLoader("/tmp/none-*.tar")',
        "PathNotFoundError",
        "/tmp/none-*.tar: no file matches this pattern",
    ),
    (
        'L(columns=["json"])',
        "SettingError",
        "columns: only supported for tables (IDV, TBF, Parquet, Arrow, .npy, .npz, safetensors, Zarr); files next to images are fields, such as fields={'json': tl.Bytes()}",
    ),
    (
        'L(fields={"jsn": tl.Bytes()})',
        "SettingError",
        "no sample has a file `jsn`; the files are called: jpg, png, webp",
    ),
    (
        'L(columns="json")',
        "SettingError",
        "Columns: columns is the text 'json', expected a list of names",
    ),
    (
        'L(mask={"column":"seg.png"})',
        "TypeError",
        "DataLoader got an unexpected keyword argument 'mask': pass fields={'mask': tl.Mask('png')}",
    ),
    (
        "L(batch_transform=T.CutMix, image_size=8)",
        "TypeError",
        "batch_transform is a class: pass an instance, CutMix()",
    ),
    (
        "L(batch_transform=T.Resize(8), image_size=8)",
        "TypeError",
        "batch_transform: Resize(size=8, interpolation='bilinear', max_size=None, antialias=True) does not mix batches, as MixUp or CutMix do",
    ),
    (
        "L(transform=[T.Resize((8,8)), T.CutMix(num_classes=6)])",
        "TypeError",
        "CutMix mixes the images of a batch: pass it as batch_transform",
    ),
    (
        "T.Compose(T.ToTensor())",
        "TypeError",
        "Compose: transforms is ToFloat(), expected a list of transforms",
    ),
    (
        "T.Compose(T.Resize(8), T.ToTensor())",
        "TypeError",
        "Compose.__init__() takes 2 positional arguments but 3 were given",
    ),
    (
        "T.RandomApply(T.Resize(8))",
        "TypeError",
        "RandomApply: transforms is Resize(size=8, interpolation='bilinear', max_size=None, antialias=True), expected a list of transforms",
    ),
    (
        'L(transform="resize")',
        "SettingError",
        "transform is 'resize', expected transforms such as T.Resize((224, 224)), or a list of them",
    ),
    (
        "L(transform=224)",
        "SettingError",
        "transform is 224, expected transforms such as T.Resize((224, 224)), or a list of them",
    ),
    (
        "L(transform=T.Resize(8), image_size=8)",
        "SettingError",
        "image_size and transform: pass only one; T.Resize sets the size",
    ),
    (
        'tl.decode("a.jpg")',
        "TypeError",
        "data has type str, expected the bytes of an image: pass pathlib.Path(..).read_bytes()",
    ),
    (
        'tl.decode(pathlib.Path("a.jpg"))',
        "TypeError",
        "data has type PosixPath, expected the bytes of an image: pass pathlib.Path(..).read_bytes()",
    ),
    (
        "tl.decode(np.zeros(3))",
        "DecodeError",
        "malformed: not a JPEG, PNG, WebP, BMP, TIFF, GIF, PNM, QOI, JPEG 2000, JPEG XL or AVIF file (starts with 00 00 00 00, 24 bytes long)",
    ),
    (
        'tl.decode(b"")',
        "DecodeError",
        "malformed: not a JPEG, PNG, WebP, BMP, TIFF, GIF, PNM, QOI, JPEG 2000, JPEG XL or AVIF file (0 bytes long)",
    ),
    (
        'tl.probe("a")',
        "TypeError",
        "data has type str, expected the bytes of an image: pass pathlib.Path(..).read_bytes()",
    ),
    (
        'T.Resize(8)(b"xx")',
        "TypeError",
        "image has type bytes, expected an array: turboloader.decode(data).numpy() makes one of the bytes of a file",
    ),
    (
        'T.Resize(8)("a.jpg")',
        "TypeError",
        "image has type str, expected an array: turboloader.decode(data).numpy() makes one of the bytes of a file",
    ),
    (
        "T.Resize(8)(np.zeros((8,8,3)))",
        "TypeError",
        "image has shape (8, 8, 3) and dtype float64, expected (height, width, 3) and uint8",
    ),
    (
        "T.Resize(8)(np.zeros((3,8,8),np.uint8))",
        "TypeError",
        "image has shape (3, 8, 8) and dtype uint8, expected (height, width, 3) and uint8: turn it by transpose(1, 2, 0)",
    ),
    (
        "T.Resize(8)(np.zeros((8,8),np.uint8))",
        "TypeError",
        "image has shape (8, 8) and dtype uint8, expected (height, width, 3) and uint8",
    ),
    (
        "T.Resize(8)(np.zeros((2,8,8,3),np.uint8))",
        "TypeError",
        "image has shape (2, 8, 8, 3) and dtype uint8, expected (height, width, 3) and uint8",
    ),
    (
        "L(image_size=8).load_state_dict({})",
        "StateError",
        "not a state of turboloader: missing field `version`",
    ),
    (
        "L(image_size=8).load_state_dict(None)",
        "StateError",
        "not a state of turboloader: invalid type: null, expected struct LoaderState",
    ),
    (
        'L(image_size=8).load_state_dict("x")',
        "StateError",
        'not a state of turboloader: invalid type: string "x", expected struct LoaderState',
    ),
    (
        "L(image_size=16).load_state_dict(L(image_size=8).state_dict())",
        "StateError",
        ": set the transform, the clips, the type and the parity that the state was saved with",
    ),
    (
        "L(image_size=8,seed=1).load_state_dict(L(image_size=8).state_dict())",
        "StateError",
        "the state's seed is 42, this loader's is 1",
    ),
    (
        "L(image_size=8,batch_size=3).load_state_dict(L(image_size=8).state_dict())",
        "StateError",
        "the state's global batch is 4, this loader's is 3: batch size times ranks must be",
    ),
    (
        "L(image_size=8,shuffle=True).load_state_dict(L(image_size=8).state_dict())",
        "StateError",
        ": pass the samples (split, filter and other views) and the shuffle that the state was saved with",
    ),
    (
        'tl.DataLoader(P+"/animals",batch_size=2,image_size=8).load_state_dict(tl.DataLoader(P+"/food",batch_size=2,image_size=8).state_dict())',
        "StateError",
        ": open the data that the state was saved with, in the same order",
    ),
    (
        "L(image_size=8).set_epoch(-1)",
        "SettingError",
        "epoch is -1, expected a whole number, 0 or more",
    ),
    (
        'L(image_size=8).set_epoch("1")',
        "SettingError",
        "epoch is '1', expected a whole number, 0 or more",
    ),
    (
        'it(image_size=8)["images"]',
        "KeyError",
        "'images: a batch has image, label, index, valid, size'",
    ),
    ("it(image_size=8)[99]", "IndexError", "row 99 of 4"),
    (
        "it(image_size=8).images",
        "AttributeError",
        'a batch has no attribute "images": its fields are ["image", "label", "index", "valid", "size"]',
    ),
    (
        "L(image_size=8)[0]",
        "TypeError",
        "a DataLoader cannot be indexed: turboloader.torch.Dataset has samples by number, and torch's DataLoader takes a turboloader.torch.IterableDataset",
    ),
    ("next(L(image_size=8))", "TypeError", "'DataLoader' object is not an iterator"),
    ('it()["image"].numpy()', "AttributeError", "'list' object has no attribute 'numpy'"),
    (
        'it(image_size=8)["image"].permute(0,3,1,2)',
        "AttributeError",
        'a Tensor has no attribute "permute": .numpy(), .torch() and .jax() share its memory, so use .torch().permute or the like',
    ),
    (
        'it(image_size=8)["image"]/255',
        "TypeError",
        "a Tensor has no arithmetic: .numpy(), .torch() and .jax() share its memory, so use .torch() / .. or the like",
    ),
    (
        "L(ranks=1)",
        "SettingError",
        "ranks is 1, expected 'auto', turboloader.Ranks(rank, world_size) or None",
    ),
    (
        "L(ranks=tl.Ranks(2, 2))",
        "SettingError",
        "Ranks: rank is 2, expected less than world_size (2)",
    ),
    (
        'L(ranks="auto")',
        "SettingError",
        "ranks='auto': neither torch.distributed is initialised nor are RANK and WORLD_SIZE set, or those of Horovod, MPI or Slurm; pass turboloader.Ranks(rank, world_size), or None for one process",
    ),
    (
        'L(drop_last=True,tail="pad")',
        "SettingError",
        "conflicting settings: drop_last and tail='pad'; pass only one",
    ),
    (
        'L(errors=tl.Errors("raise", at_most=3))',
        "SettingError",
        'Errors: at_most has no effect with policy="raise"',
    ),
    (
        'L(cache=tl.Cache("1GB", folder="/tmp/x"))',
        "SettingError",
        "Cache: folder needs disk, the size of the cache there",
    ),
    (
        "L(cache=True)",
        "SettingError",
        "cache is True, expected a turboloader.Cache",
    ),
    (
        'L(buckets="8")',
        "SettingError",
        "Buckets: window is '8', expected a whole number from 1 to 4294967295",
    ),
    (
        "L(buckets=0)",
        "SettingError",
        "Buckets: window is 0, expected a whole number from 1 to 4294967295",
    ),
    (
        "L(columns=tl.Columns(neighbors=[3]), image_size=8)",
        "SettingError",
        "columns: only supported for tables (IDV, TBF, Parquet, Arrow, .npy, .npz, safetensors, Zarr)",
    ),
    (
        'L(fields=("images",), image_size=8)',
        "SettingError",
        "fields names 'images', a batch has image, label, index, valid, size: did you mean image?",
    ),
    (
        "T.recipe(3)",
        "TypeError",
        "int is neither a transform of turboloader nor a function of an image (see from_torchvision)",
    ),
    ('T.manual_seed("a")', "TypeError", "'str' object cannot be interpreted as an integer"),
    ('tl.TblReader("none.tbl")', "PathNotFoundError", "No such file or directory"),
    ('tl.convert("none.tar","/tmp/x.tbl")', "PathNotFoundError", "No such file or directory"),
    (
        'tl.convert(P,"/tmp/x.zip")',
        "SettingError",
        "/tmp/x.zip ends with .zip, expected .tbl, .tar or .parquet, or to='tbl'",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake[0])
def test_mistakes_are_explained(mistake):
    code, kind, message = mistake
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            eval(code, {**NAMES})
    assert (type(caught.value).__name__, message in str(caught.value)) == (kind, True), str(
        caught.value
    )


def test_there_are_as_many_as_were_found():
    assert len(MISTAKES) >= 114
    assert len({code for code, _, _ in MISTAKES}) == len(MISTAKES)


def test_sizes_have_units(data):
    for written, expected in (
        ("2GB", 2_000_000_000),
        ("2 GiB", 2 << 30),
        ("1.5kB", 1500),
        ("512 MiB", 512 << 20),
        ("100", 100),
        ("3g", 3 << 30),
        ("2Gi", 2 << 30),
        ("100 B", 100),
        ("1.9", 1),
        ("0.9999999999999999999999999T", (1 << 40) - 1),
        ("9007199254740993", 9007199254740993),
        ("4000000000 GB", 4 * 10**18),
        (7, 7),
        (None, None),
    ):
        assert tl.Memory(written).budget == expected
    for wrong in ("2iB", "2P", "1,5G", "1.G", ".5G", "G", "", "-1", "٣GB", "5  G", "2GiBi"):
        with pytest.raises(tl.SettingError, match=r"budget is .*, expected bytes: a number, or"):
            tl.Memory(wrong)
    for large in ("9" * 400, "99999999TB", "9" * 5000, 1 << 63, str(1 << 63)):
        with pytest.raises(tl.SettingError, match=r"^Memory: budget is .*(at most|expected) .*"):
            tl.Memory(large)
    for large in ("9" * 400, "99999999TB", (1 << 62) + 1):
        with pytest.raises(tl.SettingError, match=f"at most {1 << 62} bytes"):
            tl.Cache(disk=large)
    with pytest.raises(tl.SettingError, match="the memory budget is 1000 bytes"):
        tl.DataLoader(data, memory="1 kB", image_size=8)
    assert len(tl.DataLoader(data, memory="1GB", image_size=8)) == 4


def test_no_seed_is_a_new_one(data):
    loaders = [tl.DataLoader(data, 8, shuffle=True, seed=None, image_size=8) for _ in range(4)]
    seeds = {loader.state_dict()["seed"] for loader in loaders}
    assert len(seeds) == 4
    again = tl.DataLoader(data, 8, shuffle=True, seed=seeds.pop(), image_size=8)
    assert again.state_dict()["seed"] not in seeds
    with pytest.raises(tl.SettingError, match="seed=None would give each rank another order"):
        tl.DataLoader(data, seed=None, ranks=tl.Ranks(0, 2))


# A value for each setting of earlier versions.
EARLIER = {
    "block_bytes": 4096,
    "boxes": {"column": "json"},
    "cache_decoded": True,
    "cache_dir": "/tmp/cache",
    "cache_l1_mb": 256,
    "cache_l2_gb": 10,
    "connections": 8,
    "credentials": "instance",
    "deadline": 30.0,
    "enable_cache": True,
    "enable_distributed": True,
    "features": ["Age"],
    "hedge": False,
    "label": "Label",
    "mask": {"column": "png"},
    "max_error_rate": 0.01,
    "max_errors": 3,
    "memory_budget": "2GB",
    "neighbor_columns": ["embedding"],
    "neighbor_direction": "incoming",
    "neighbors": [5, 3],
    "on_error": "skip",
    "prefetch_batches": 4,
    "prefetch_bytes": "1GB",
    "read_ahead": 1 << 20,
    "storage_options": {"token": "secret"},
    "unpack_to": "/tmp/plain",
    "world_rank": 1,
    "world_size": 8,
}


def test_every_earlier_setting_names_its_successor():
    assert list(EARLIER) == sorted(_advice._GROUPED)
    for name, value in EARLIER.items():
        with pytest.raises(TypeError, match=f"argument '{name}': pass ") as caught:
            tl.DataLoader(P, **{name: value})
        _, _, written = str(caught.value).partition(": pass ")
        assert "secret" not in written
        # It is Python, and what it makes can be passed.
        others = {"tl": tl, "rank": 0, "world_size": 8}
        settings = eval(f"dict({written.replace('{...}', '{}')})", others)
        assert len(settings) == 1 and Settings(P, **settings)


@pytest.mark.parametrize(
    ("call", "name", "advice"),
    [
        ("tl.open", "storage_options", "pass store=tl.Store({...})"),
        ("tl.open", "unpack_to", "pass store=tl.Store(unpack_to='secret')"),
        ("tl.open", "stores", "did you mean store?"),
        ("tl.manifest", "storage_options", "pass store=tl.Store({...})"),
        ("tl.coco", "deadline", "pass store=tl.Store(deadline='secret')"),
        ("tl.imagenet", "storage_options", "pass store=tl.Store({...})"),
        ("tl.pairs", "storage_options", "pass store=tl.Store({...})"),
        ("tl.convert", "storage_options", "pass store=tl.Store({...})"),
        ("tl.verify", "storage_options", "pass store=tl.Store({...})"),
        ("tl.TblReader", "unpack_to", "pass store=tl.Store(unpack_to='secret')"),
        ("tl.IdvFile", "connections", "pass store=tl.Store(connections='secret')"),
        ("tl.TbfSegment", "credentials", "pass store=tl.Store(credentials='secret')"),
        ("tlt.Dataset", "storage_options", "pass store=tl.Store({...})"),
        ("tlt.Dataset", "on_error", "pass errors='secret'"),
        ("tlt.IterableDataset", "on_error", "pass errors='secret'"),
    ],
)
def test_earlier_settings_name_their_successor_wherever_it_is_one(call, name, advice):
    names = {"tl": tl}
    if call.startswith("tlt"):
        pytest.importorskip("torch")
        import turboloader.torch as tlt

        names["tlt"] = tlt
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'") as caught:
        eval(call, names)(P, **{name: "secret"})
    assert str(caught.value).endswith(f": {advice}")


MIGRATION = pathlib.Path(__file__).parents[3] / "docs" / "migration" / "turboloader.md"
ROW = re.compile(r"^\| (?P<before>.*`.*) \| (?P<now>.*`.*) \|$", re.MULTILINE)
CODE = re.compile(r"`(\w+=[^`]+)`")


def arguments(code: str) -> dict[str, dict[str, str]]:
    """Settings of a loader, and of a group in it; a name stands for any value."""
    keywords = ast.parse(f"f({code})", mode="eval").body.keywords
    found = {}
    for keyword in keywords:
        value = keyword.value
        within = {"": value}
        if isinstance(value, ast.Call):
            of_group = {str(place): one for place, one in enumerate(value.args)}
            within = of_group | {one.arg: one.value for one in value.keywords}
        found[keyword.arg] = {
            name: "any" if isinstance(one, ast.Name) else ast.dump(one)
            for name, one in within.items()
        }
    return found


def test_the_table_of_earlier_settings_has_the_forms_of_messages():
    _, _, section = MIGRATION.read_text().partition("## Settings")
    table, _, _ = section.partition("## Conversion")
    checked = 0
    for row in ROW.finditer(table):
        forms = [arguments(code) for code in CODE.findall(row["now"])]
        for name, value in (one for code in CODE.findall(row["before"]) for one in given(code)):
            with pytest.raises((TypeError, tl.SettingError)) as caught:
                tl.DataLoader(P, **{name: value})
            _, _, said = re.sub("such as", "pass", str(caught.value)).rpartition("pass ")
            said = said if re.match(r"\w+=", said) else f"{name}={said}"
            ((setting, parts),) = arguments(said).items()
            assert any(
                all(
                    form.get(setting, {}).get(part) in (one, "any") or one == "any"
                    for part, one in parts.items()
                )
                for form in forms
            ), f"{name}: {said}"
            checked += 1
    assert checked >= 20


def given(code: str) -> list[tuple[str, object]]:
    return list(eval(f"dict({code})", {"folder": "/tmp/cache"}).items())
