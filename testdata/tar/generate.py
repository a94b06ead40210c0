#!/usr/bin/env python3
"""Makes the archives beside this file and their manifest.toml, with GNU tar and Python's tarfile.

    python generate.py FOLDER
"""
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile

LONG = f"long/{'d' * 60}/{'e' * 60}/image.jpg"  # fits a ustar prefix
VERY_LONG = f"v/{'x' * 120}.jpg"  # does not
FILES = {
    "a.jpg": b"first",
    "a.cls": b"3\n",
    "sub/b.PNG": b"second" * 100,
    "empty.webp": b"",
    LONG: b"deep",
    VERY_LONG: b"long",
    "umlaut-\u00e4.bmp": b"bmp",
}
PLAIN = ["a.jpg", "a.cls", "sub", "empty.webp", "link.jpg"]
GNU_OPTIONS = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "-b1"]
PAX_OPTION = "--pax-option=delete=atime,delete=ctime,exthdr.name=%d/PaxHeaders/%f"
SPARSE_LAYOUTS = ["0.0", "0.1", "1.0"]
WHY = {
    "concatenated.tar": "two archives one after the other",
    "gnu-tar-gnu-sparse.tar": "a sparse member of type S",
    "gnu-tar-gnu.tar": "long names in members of type L",
    "gnu-tar-posix.tar": "long and non-ASCII names in PAX records",
    "gnu-tar-ustar.tar": "prefix field, hard link, symbolic link",
    "gnu-tar-v7.tar": "no magic, directory known by its slash",
    "no-end-marker.tar": "ends behind the last member",
    "python-gnu.tar": "long names as Python writes them",
    "python-pax.tar": "a global header, fractional times",
    "python-ustar.tar": "prefix field as Python splits it",
} | {f"gnu-tar-posix-sparse-{v}.tar": f"a sparse member in PAX layout {v}" for v in SPARSE_LAYOUTS}


def make_sources(folder):
    for path, contents in FILES.items():
        path = os.path.join(folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(contents)
    os.symlink("a.jpg", f"{folder}/link.jpg")
    os.link(f"{folder}/a.jpg", f"{folder}/sub/hard.jpg")
    with open(f"{folder}/sparse.tif", "wb") as file:
        file.truncate(200_000)
        file.seek(100_000)
        file.write(b"data")


def gnu_tar(source, path, tar_format, members, *options):
    command = ["tar", "-C", source, *GNU_OPTIONS, f"--format={tar_format}", *options]
    subprocess.check_call([*command, "-cf", path, *members])


def python_tar(path, tar_format, members, **options):
    with tarfile.open(path, "w", format=tar_format, **options) as archive:
        for name in members:
            info = tarfile.TarInfo(name)
            info.size = len(FILES[name])
            info.mtime = 1.5 if tar_format == tarfile.PAX_FORMAT else 0
            archive.addfile(info, io.BytesIO(FILES[name]))
    write(path, without_zeros(read(path)) + bytes(1024))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, contents):
    with open(path, "wb") as file:
        file.write(contents)


def without_zeros(archive):
    """The archive without its end; every header has a byte that is not zero."""
    archive = archive.rstrip(b"\0")
    return archive + bytes(-len(archive) % 512)


def make_archives(source, out):
    long = ["long", "v", "umlaut-\u00e4.bmp"]
    sparse = ["a.jpg", "sparse.tif"]
    gnu_tar(source, f"{out}/gnu-tar-v7.tar", "v7", PLAIN)
    gnu_tar(source, f"{out}/gnu-tar-ustar.tar", "ustar", [*PLAIN, "long"])
    gnu_tar(source, f"{out}/gnu-tar-gnu.tar", "gnu", PLAIN + long)
    gnu_tar(source, f"{out}/gnu-tar-gnu-sparse.tar", "gnu", sparse, "--sparse")
    gnu_tar(source, f"{out}/gnu-tar-posix.tar", "posix", PLAIN + long, PAX_OPTION)
    for layout in SPARSE_LAYOUTS:
        options = ["--sparse", f"--sparse-version={layout}", PAX_OPTION]
        gnu_tar(source, f"{out}/gnu-tar-posix-sparse-{layout}.tar", "posix", sparse, *options)
    names = ["a.jpg", "a.cls", "empty.webp", LONG]
    more = [VERY_LONG, "umlaut-\u00e4.bmp"]
    python_tar(f"{out}/python-ustar.tar", tarfile.USTAR_FORMAT, names)
    python_tar(f"{out}/python-gnu.tar", tarfile.GNU_FORMAT, names + more)
    headers = {"comment": "global"}
    python_tar(f"{out}/python-pax.tar", tarfile.PAX_FORMAT, names + more, pax_headers=headers)
    parts = [read(f"{out}/gnu-tar-ustar.tar"), read(f"{out}/gnu-tar-gnu.tar")]
    write(f"{out}/concatenated.tar", b"".join(parts))
    write(f"{out}/no-end-marker.tar", without_zeros(parts[0]))
    return {"concatenated.tar": parts}


def entry(out, name, parts):
    archive = read(f"{out}/{name}")
    members, skipped, start = [], [], 0
    for part in parts or [archive]:
        with tarfile.open(fileobj=io.BytesIO(part)) as opened:
            for member in opened:
                if member.issparse():
                    skipped.append(member.name)
                elif member.isreg():
                    digest = hashlib.sha256(opened.extractfile(member).read()).hexdigest()
                    fields = [member.name, str(member.size), str(start + member.offset_data), digest]
                    members.append("  [" + ", ".join(f'"{field}"' for field in fields) + "],\n")
        start += len(part)
    skipped = ", ".join(f'"{name}"' for name in skipped)
    return (
        f'\n[[file]]\nfile = "{name}"\nwhy = "{WHY[name]}"\n'
        f'sha256 = "{hashlib.sha256(archive).hexdigest()}"\n'
        f"has_end_marker = {str(archive.endswith(bytes(1024))).lower()}\n"
        f"skipped = [{skipped}]\nmembers = [\n{''.join(members)}]\n"
    )


def main(out):
    with tempfile.TemporaryDirectory() as source:
        make_sources(source)
        parts = make_archives(source, out)
    manifest = (
        "# Archives made by GNU tar 1.34 and tarfile of Python 3.11 (generate.py).\n"
        "# Expected: name, bytes, offset and SHA-256 of the regular members as tarfile reads them,\n"
        "# each part of a concatenated archive on its own, and the sparse members by name.\n"
    )
    manifest += "".join(entry(out, name, parts.get(name)) for name in sorted(WHY))
    write(f"{out}/manifest.toml", manifest.encode())


main(sys.argv[1])
