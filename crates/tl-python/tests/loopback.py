"""A store on this machine that answers as S3 does, and a web server."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

SECRET = "planted-secret"
DUMMY = {"access_key_id": "dummy", "secret_access_key": SECRET}


class Handler(BaseHTTPRequestHandler):
    """Answers requests for ranges of the files below ``root``, lists them, and takes whole objects.

    Requests have a signature of the key ``dummy``, or end with ``?signature=planted-secret``.
    """

    protocol_version = "HTTP/1.1"
    root: pathlib.Path

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = parse_qs(url.query, keep_blank_values=True)
        query = {name: values[0] for name, values in asked.items()}
        is_signed = "Credential=dummy/" in self.headers.get("Authorization", "")
        if not is_signed and query.get("signature") != SECRET:
            return self.refuse(403, "InvalidAccessKeyId")
        path = self.root / unquote(url.path).strip("/")
        if query.get("list-type") == "2":
            return self.list(path, query.get("prefix", ""), query.get("delimiter", ""))
        if "uploads" in query:
            # Objects are taken whole.
            return self.answer(200, "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
        if not path.is_file():
            return self.refuse(404, "NoSuchKey")
        content = path.read_bytes()
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        part = content[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        end = first + len(part) - 1
        self.send_header("Content-Range", f"bytes {first}-{end}/{len(content)}")
        self.send_header("ETag", tag(content))
        self.end_headers()
        self.wfile.write(part)

    def do_HEAD(self) -> None:
        path = self.root / unquote(urlsplit(self.path).path).strip("/")
        if not path.is_file():
            self.send_response(404)
            return self.end_headers()
        content = path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", tag(content))
        return self.end_headers()

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if "Credential=dummy/" not in self.headers.get("Authorization", ""):
            return self.refuse(403, "InvalidAccessKeyId")
        path = self.root / unquote(urlsplit(self.path).path).strip("/")
        if self.headers.get("If-None-Match") == "*" and path.exists():
            return self.refuse(412, "PreconditionFailed")
        path.write_bytes(content)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("ETag", tag(content))
        return self.end_headers()

    def list(self, bucket: pathlib.Path, prefix: str, delimiter: str) -> None:
        objects, folders = [], set()
        for path in sorted(path for path in bucket.rglob("*") if path.is_file()):
            key = path.relative_to(bucket).as_posix()
            if not key.startswith(prefix):
                continue
            inside, slash, _ = key[len(prefix) :].partition(delimiter or "\0")
            if slash:
                folders.add(f"{prefix}{inside}/")
                continue
            content = path.read_bytes()
            objects.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
                f"<LastModified>2020-01-01T00:00:00.000Z</LastModified>"
                f"<ETag>{escape(tag(content))}</ETag></Contents>"
            )
        prefixes = (f"<Prefix>{escape(folder)}</Prefix>" for folder in sorted(folders))
        objects += [f"<CommonPrefixes>{one}</CommonPrefixes>" for one in prefixes]
        self.answer(200, f"<ListBucketResult>{''.join(objects)}</ListBucketResult>")

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code></Error>")

    def answer(self, status: int, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class FaultyHandler(Handler):
    """Refuses one of a hundred requests for ranges."""

    requests = itertools.count(1)

    def do_GET(self) -> None:
        if next(self.requests) % 100 == 0:
            return self.refuse(503, "SlowDown")
        return super().do_GET()


def tag(content: bytes) -> str:
    return f'"{hash(content):x}"'


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A loader that is closed closes its connections, whatever is on its way."""


@contextlib.contextmanager
def served(root: pathlib.Path, answers: type[Handler] = Handler) -> Iterator[str]:
    handler = type("Handler", (answers,), {"root": root})
    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
