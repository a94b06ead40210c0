"""Compiles kernels.cu, which includes decode.cu, to PTX with the NVRTC of a wheel: `compile.py KERNELS PTX`.

`cargo xtask ptx` runs it with a fixed version of the wheel, so that equal sources give equal bytes.
"""

import ctypes
import re
import sys
from pathlib import Path

# Drivers from 450 (CUDA 11.0) on take it; the compiler writes its own version, but uses nothing newer.
PTX_VERSION = "7.0"
OPTIONS = [b"--gpu-architecture=compute_70", b"--std=c++14", b"--device-as-default-execution-space"]


def fnv(text: bytes) -> int:
    """The 64-bit FNV-1a hash, by which a test finds out that the PTX is of other sources."""
    result = 0xCBF29CE484222325
    for byte in text:
        result = (result ^ byte) * 0x100000001B3 % 2**64
    return result


def main() -> None:
    source, target = sys.argv[1:]
    import nvidia.cuda_nvrtc

    folder = Path(nvidia.cuda_nvrtc.__path__[0]) / "lib"
    # NVRTC finds its other half only once that is loaded.
    for part in sorted(folder.glob("libnvrtc-builtins.so*")):
        ctypes.CDLL(str(part), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(next(folder.glob("libnvrtc.so*"))))
    program = ctypes.c_void_p()
    text = Path(source).read_bytes()

    def check(result: int, action: str) -> None:
        if result:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            sys.exit(f"{action} failed with {result}:\n{log.value.decode()}")

    created = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernels.cu", 0, None, None)
    check(created, "nvrtcCreateProgram")
    wanted = [*OPTIONS, f"--include-path={Path(source).parent}".encode()]
    options = (ctypes.c_char_p * len(wanted))(*wanted)
    check(nvrtc.nvrtcCompileProgram(program, len(wanted), options), "compiling")
    size = ctypes.c_size_t()
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), "nvrtcGetPTXSize")
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx), "nvrtcGetPTX")
    lowered, count = re.subn(r"^\.version .*$", f".version {PTX_VERSION}", ptx.value.decode(), flags=re.M)
    if count != 1:
        sys.exit("the PTX has no version")
    sources = text + (Path(source).parent / "decode.cu").read_bytes()
    lines = [f"// Sources: {fnv(sources):016x}", *lowered.strip().splitlines()]
    Path(target).write_text("\n".join(line.rstrip() for line in lines) + "\n")


main()
