"""A client of `benches/examples/jpeg_requests.rs`, for the tools beside it."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = "cargo build --release --package tl-benches --example jpeg_requests"
LEVELS = ("scalar", "avx2", "avx512", "neon")


class Server:
    """A process that decodes one file after the other."""

    def __init__(self, program=None):
        program = program or ROOT / "target/release/examples/jpeg_requests"
        if not pathlib.Path(program).exists():
            raise SystemExit(f"{program} is missing; `{BUILD}` makes it")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def decode(self, decoder, path, scale="1/1", region=None, damaged="error"):
        """Returns width, height, pixels and None, or three times None and the error."""
        region = ",".join(map(str, region)) if region else "-"
        self.process.stdin.write(f"{decoder} {scale} {region} {damaged} {path}\n".encode())
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the decoder ended at {path} with {self.process.wait()}")
        word, _, rest = answer.decode("utf-8", "replace").rstrip("\n").partition(" ")
        if word != "ok":
            return None, None, None, rest
        width, height, size = map(int, rest.split())
        return width, height, self.process.stdout.read(size), None

    def levels(self):
        """The levels of this CPU."""
        return [level for level in LEVELS if self.decode(level, __file__)[3] != f"this CPU has no {level}"]
