"""A web server on this machine, for downloads that go well and badly."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml


class Server(ThreadingHTTPServer):
    """Serves ``content`` by path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content: dict[str, bytes] = {}
        self.cut: int | None = None  # bytes of a response, then the connection ends
        self.drops: int | None = None  # responses that are cut; None: all
        self.ranges = True
        self.status = 0  # answer with this error
        self.requests: list[str] = []  # the Range of each, or empty
        self.url = f"http://127.0.0.1:{self.server_address[1]}/raw"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range", "")
        server.requests.append(wanted)
        body, start = server.content.get(self.path), 0
        if server.status or body is None:
            self.send_error(server.status or 404)
            return
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        is_cut = server.drops is None or server.drops > 0
        if server.drops is not None:
            server.drops -= 1
        self.wfile.write(body[start:][: server.cut if is_cut else None])

    def log_message(self, *arguments: object) -> None:
        pass


def manifest(corpus: str, content: dict[str, bytes], base: str, **more: object) -> str:
    """A file for --manifest: texts, and archives that are served below ``base``."""
    files: dict[str, object] = {}
    for name, data in content.items():
        files[name] = checksum = hashlib.sha256(data).hexdigest()
        if name.endswith(("gz", "xz")):
            files[name] = {"url": f"{base}/{name}", "size": len(data), "checksum": checksum}
    return yaml.safe_dump({corpus: {"url": base, "files": files, **more}})


@contextmanager
def serving(content: dict[str, bytes]) -> Iterator[Server]:
    """Serves each file of ``content`` below ``/raw/`` while the context lasts."""
    server = Server()
    server.content = {f"/raw/{name}": data for name, data in content.items()}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
