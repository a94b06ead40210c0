"""A client of `crates/tl-transform/examples/transform_requests.rs`, for the tools beside it."""

import json
import pathlib
import subprocess

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = "cargo build --release --package tl-transform --example transform_requests"


class Server:
    """A process that carries out steps on one image after the other."""

    def __init__(self, level=None, program=None):
        program = program or ROOT / "target/release/examples/transform_requests"
        if not pathlib.Path(program).exists():
            raise SystemExit(f"{program} is missing; `{BUILD}` makes it")
        command = [str(program), "serve"] + ([level] if level else [])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, pixels, **request):
        """The answer's header and pixels; None for pixels when it has an `error`."""
        height, width, _ = pixels.shape
        line = json.dumps({"width": width, "height": height, **request})
        self.process.stdin.write(line.encode() + b"\n" + pixels.tobytes())
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the runner ended with {self.process.wait()} at {line}")
        header = json.loads(answer)
        if "error" in header:
            return header, None
        width, height = header["width"], header["height"]
        data = self.process.stdout.read(header["bytes"])
        if "displacements" in request:
            return header, numpy.frombuffer(data, numpy.float32).reshape(1, height, width, 2)
        if "normalize" in request:
            planes = numpy.frombuffer(data, numpy.float32).reshape(3, height, width)
            return header, planes.transpose(1, 2, 0)
        return header, numpy.frombuffer(data, numpy.uint8).reshape(height, width, 3)

    def run(self, pixels, request):
        """The pixels, or the text of an error."""
        header, result = self.ask(pixels, **request)
        return header["error"] if result is None else result

    def time(self, pixels, request, repeat):
        """Nanoseconds of one run, on average."""
        header, _ = self.ask(pixels, **request, repeat=repeat)
        if "error" in header:
            raise ValueError(header["error"])
        return header["nanoseconds"] / repeat
