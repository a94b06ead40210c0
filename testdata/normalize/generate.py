#!/usr/bin/env python3
"""Writes means and deviations with the CRC-32 of what torchvision makes of every sample.

    python generate.py > cases.txt

One case a line: three means, three deviations, and the CRC-32 of the CHW result of
ToDtype(float32, scale=True) and Normalize(mean, std) on an image of 256 pixels, pixel i being
(i, i, i), as float32, float16 and bfloat16, little endian.
"""
import random
import zlib

import torch
import torchvision
from torchvision.transforms import v2

KNOWN = [
    ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
    ([0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]),
    ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]),
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
]


def main():
    rng = random.Random(1)
    drawn = [([round(rng.random(), 6) for _ in range(3)], [round(rng.uniform(0.05, 1.0), 6) for _ in range(3)]) for _ in range(45)]
    ramp = torch.arange(256, dtype=torch.uint8).expand(3, 1, 256).contiguous()
    print(f"# torch {torch.__version__}, torchvision {torchvision.__version__}, CPU")
    for mean, std in KNOWN + drawn:
        out = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(mean, std)])(ramp)
        crcs = [zlib.crc32(t.contiguous().view(torch.uint8).numpy().tobytes()) for t in (out, out.half(), out.bfloat16())]
        print(*mean, *std, *(f"{crc:08x}" for crc in crcs))


main()
