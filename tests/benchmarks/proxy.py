"""What the recording proxy adds to the time to the first byte of a stream, beside a direct connection in the same run.

Client, upstream, proxy and the recorder's writer are processes of their own, on whatever cores there are. In turns: one
request direct, one through the proxy.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from ctxscope.capture.events import Event, Meta
from ctxscope.capture.proxy import Proxy
from ctxscope.capture.recorder import Recorder

SIZES = ((100_000, 400, "1.5 ms"), (1_000_000, 100, ""), (5_000_000, 40, ""))
"""Bytes of a body, requests each way, budget (DESIGN §8)."""
WARM = 10
EVENTS = 20
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_EVENT = b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"word "}}\n\n'


def measure() -> Iterator[tuple[str, str, str]]:
    """Rows for ``tests.benchmarks.run``."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(process("upstream"))
        for what, words in {"recording": [str(folder / "x.ctxrec")], "not recording": []}.items():
            with process("proxy", upstream, *words) as url:
                for size, times, budget in SIZES:
                    direct, through = compared(Client(upstream), Client(url), size, times)
                    added = (median(through) - median(direct)) * 1000
                    shown = f"{added:.2f} ms ({median(direct) * 1000:.2f} -> {median(through) * 1000:.2f})"
                    yield f"proxy, {what}: added to first byte p50, {size // 1000:,} KB", shown, budget


def compared(direct: Client, through: Client, size: int, times: int) -> tuple[list[float], list[float]]:
    """Seconds to the first byte, each way in turn; bodies grow as an agent's do."""
    found: tuple[list[float], list[float]] = ([], [])
    try:
        for n in range(WARM + times):
            body = json.dumps({"messages": ["x" * size, *range(n)]}).encode()
            for client, list_ in zip((direct, through), found, strict=True):
                took = client.ask(body)
                if n >= WARM:
                    list_.append(took)
    finally:
        direct.close()
        through.close()
    return found


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


class Client:
    """One kept connection, as an agent's."""

    def __init__(self, url: str) -> None:
        split = urlsplit(url)
        self._path = split.path
        self._sock = socket.create_connection((split.hostname, split.port))
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, body: bytes) -> float:
        """Seconds from sending to the first byte of the stream."""
        head = f"POST {self._path}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        began = time.perf_counter()
        self._sock.sendall(head + body)
        held = b""
        while b"data:" not in held:
            held += self._sock.recv(65_536)
        took = time.perf_counter() - began
        while not held.endswith(b"0\r\n\r\n"):
            held += self._sock.recv(65_536)
        return took

    def close(self) -> None:
        self._sock.close()


# --- the other processes ---


@contextmanager
def process(*words: str) -> Iterator[str]:
    """A part of this file in a process of its own; the URL it prints."""
    command = [sys.executable, "-m", "tests.benchmarks.proxy", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin
        assert child.stdout
        try:
            yield child.stdout.readline().strip()
        finally:
            child.stdin.close()


def be_upstream() -> None:
    """Answer every request with a stream of events, until stdin is closed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
                writer.write(_HEAD)
                for _ in range(EVENTS):
                    writer.write(b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT))
                    await writer.drain()
                    await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 24)
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

    asyncio.run(run())


def be_proxy(upstream: str, *path: str) -> None:
    """Forward to an upstream, recording to a path if there is one, until stdin is closed."""

    def nowhere(event: Event) -> None:
        pass

    recorder = Recorder(Path(path[0]), Meta(time.time()), print) if path else None
    proxy = Proxy(recorder or nowhere)
    proxy.start()
    print(proxy.through(upstream), flush=True)
    sys.stdin.read()
    proxy.stop(0)
    if recorder:
        recorder.close()


if __name__ == "__main__":
    {"upstream": be_upstream, "proxy": be_proxy}[sys.argv[1]](*sys.argv[2:])
