"""What a long session takes on disk, to write and to read again: bodies from 0.14 to 2.15 MB, 2.3 GB sent in all."""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from ctxscope import capture
from ctxscope.capture.events import Chunk, End, Head, Meta, Request
from ctxscope.capture.writer import Writer
from tests.benchmarks.long_session import WORDS

Row = tuple[str, str, str]
CALLS = 2000
ADDED = 940
"""Bytes of conversation that each call adds, about."""
SYSTEM_BYTES, TOOLS_BYTES = 30_000, 110_000
CLOCK_AT = 0.4
"""Share of the system prompt before the clock in it."""
HEADERS = (
    ("content-type", "application/json"),
    ("anthropic-version", "2023-06-01"),
    ("anthropic-beta", "interleaved-thinking-2025-05-14,context-management-2025-06-27"),
    ("x-api-key", "k" * 108),
    ("user-agent", "agent/1.0 (external, cli)"),
    *((f"x-stainless-{name}", "value") for name in ("lang", "os", "arch", "runtime", "package-version", "timeout")),
)


def measure() -> Iterator[Row]:
    """Rows ``(what, measured, budget)``: both key orders, each without and with a clock in the system prompt."""
    for first in ("messages", "system"):
        for clock in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                yield from _stored(Path(folder) / "long.ctxrec", first=first, clock=clock)


def _stored(path: Path, *, first: str, clock: bool) -> Iterator[Row]:
    writer, taken, sent = Writer(path, Meta(0.0)), [], 0
    for n, body in enumerate(bodies(CALLS, first=first, clock=clock), 1):
        sent += len(body)
        start = time.process_time()
        writer.write(Request(n, 10.0 * n, "POST", "/v1/messages?beta=true", "https://api.anthropic.com", HEADERS, body))
        taken.append((time.process_time() - start) * 1000)
        _reply(writer, n)
    writer.close()
    what = f"{CALLS:,} calls, {sent / 1e9:.1f} GB, {first} first{', a clock' if clock else ''}"
    yield (f"{what}: stored", f"{path.stat().st_size / sent:.2%} of what was sent", "0.5 %")
    taken.sort()
    spent = f"{median(taken):.1f} ms p50, {taken[int(len(taken) * 0.99)]:.1f} ms p99 (CPU)"
    yield (f"{what}: a request written", spent, "off the event loop")
    yield (f"{what}: read again in order", f"{_read(path):.1f} s CPU", "10 s CPU, judged too")


def _reply(writer: Writer, n: int) -> None:
    writer.write(Head(n, 10.0 * n + 1, 200, "OK", (("content-type", "text/event-stream"), ("request-id", f"req_{n}"))))
    for part in range(4):
        data = f'event: content_block_delta\ndata: {{"type":"content_block_delta","text":"{n:>200}"}}\n\n'.encode()
        writer.write(Chunk(n, 10.0 * n + 1 + part / 10, part * len(data), data))
    writer.write(End(n, 10.0 * n + 2))


def _read(path: Path) -> float:
    """CPU seconds to open a recording and read all its requests, each of which is checked against its hash."""
    start = time.process_time()
    recording = capture.open_recording(path, 0)
    exchanges = recording.poll()
    assert len(exchanges) == CALLS
    assert all(len(exchange.request()) == exchange.request_bytes for exchange in exchanges)
    return time.process_time() - start


def bodies(calls: int, *, first: str, clock: bool) -> Iterator[bytes]:
    """Bodies of a conversation that grows, a cache mark on its last message; ``first``: which key comes first."""
    rng = random.Random(11)
    prompt, tools = _prose(rng, SYSTEM_BYTES), _prose(rng, TOOLS_BYTES)
    cut = int(SYSTEM_BYTES * CLOCK_AT)
    earlier = ""
    for n in range(calls):
        now = f" It is 09:{n // 60 % 60:02d}:{n % 60:02d}. " if clock else " "
        system = f'"system":[{{"type":"text","text":{json.dumps(prompt[:cut] + now + prompt[cut:])}}}]'
        given = json.dumps(_prose(rng, ADDED // 2))
        marked = f'{{"type":"text","text":{given},"cache_control":{{"type":"ephemeral"}}}}'
        messages = f'"messages":[{earlier}{{"role":"user","content":[{marked}]}}]'
        parts = [messages, system] if first == "messages" else [system, messages]
        rest = f'"tools":[{{"name":"all","description":{json.dumps(tools)}}}],"max_tokens":32000,"stream":true'
        yield f'{{"model":"claude-opus-4-5",{",".join(parts)},{rest}}}'.encode()
        answer = (
            f'{{"role":"assistant","content":[{{"type":"text","text":{json.dumps(_prose(rng, ADDED // 2 - 120))}}}]}}'
        )
        earlier += f'{{"role":"user","content":[{{"type":"text","text":{given}}}]}},{answer},'


def _prose(rng: random.Random, size: int) -> str:
    words: list[str] = []
    left = size
    while left > 0:
        words.append(rng.choice(WORDS))
        left -= len(words[-1]) + 1
    return " ".join(words)
