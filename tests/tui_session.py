"""A session made by hand for the app's tests: bodies with their segments, calls with their verdicts, a source that gives them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ctxscope.model import (
    Block,
    Body,
    CacheVerdict,
    Call,
    CallView,
    Config,
    Coverage,
    Difference,
    EntryRef,
    ExchangeRef,
    Finding,
    Logged,
    Marker,
    NextRequest,
    Piece,
    Place,
    RebuiltVerdict,
    ReplyVerdict,
    Segment,
    SessionInfo,
    SidecarView,
    Snapshot,
    Stop,
    TokenLedger,
    Usage,
    Window,
)

TOOLS = ("read_file", "write_file", "run_tests")
HOSTILE = (
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]52;c;aGVsbG8=\x1b\\",
    "\x1b[2J\x1b[H",
    "\x9b31mred",
    "\x00\x01\x7f",
    "\u202eabc",
    "see [/foo] here",
    "[@click=app.quit]x[/]",
    "[bold]b[/bold]",
    "[link=file:///etc/passwd]l[/link]",
    "[a-z]",
    "C:\\[x",
    "\ud800 lone",
    "👨\u200d👩\u200d👧",
    "❤\ufe0f",
    "🇩🇪",
    "a\tb",
    "a\r\nb",
    "a\u2028b\u2029c\x85d",
    "zero\u200bwidth",
    "\u0301 stray mark",
    "e\u0301 good mark",
    "漢字かな",
    "no\u00a0break",
    "\x0b\x0c\x08",
    "private \ue000 unassigned \U000e0fff",
)
"""Texts a log may hold that must not reach a terminal as they are."""


def body(
    system: str, messages: Sequence[tuple[str, str]], *, spaced: bool = False, breakpoint_at: int | None = None
) -> Body:
    """An Anthropic-like body with its segments, each a slice."""
    data, segments = b"", []

    def add(text: str) -> None:
        nonlocal data
        data += text.encode("utf-8", "surrogatepass")

    def segment(text: str, path: str, kind: str, rank: int, **more: object) -> None:
        start = len(data)
        add(text)
        digest = hashlib.blake2b(data[start:], digest_size=16).digest()
        segments.append(Segment(path, start, len(data), kind, order=(rank, len(segments)), digest=digest, **more))

    comma = ", " if spaced else ","
    add('{"model":')
    segment('"model-1"', "/model", "param", 9)
    add(f'{comma}"max_tokens":')
    segment("4096", "/max_tokens", "param", 9)
    add(f'{comma}"tools":[')
    for i, name in enumerate(TOOLS):
        add("," if i else "")
        segment(quoted({"name": name, "input_schema": {"type": "object"}}), f"/tools/{i}", "tool", 0)
    add(f']{comma}"system":')
    segment(quoted(system), "/system", "system", 1)
    add(f'{comma}"messages":[')
    for i, (role, text) in enumerate(messages):
        add(f'{"," if i else ""}{{"role":"{role}","content":[')
        mark = {"cache_control": {"type": "ephemeral"}} if i == breakpoint_at else {}
        block = quoted({"type": "text", "text": text, **mark})
        segment(block, f"/messages/{i}/content/0", "message", 2, role=role, block="text", breakpoint=bool(mark))
        add("]}")
    add("]}")
    return Body(data, "anthropic-messages", tuple(segments), "model-1", hashlib.sha256(data).hexdigest())


def quoted(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def call(n: int, what: str = "", **changes: object) -> Call:
    """A main call of turn (n + 1) // 2 that is equal and warm, unless told otherwise."""
    plain = Call(
        n=n,
        session="s1",
        turn=(n + 1) // 2,
        lineage="main",
        parent=n - 1 or None,
        kind="main",
        exchange=ExchangeRef(0, n),
        entry=EntryRef(0, f"line {2 * n}"),
        joined_by="id",
        api="anthropic-messages",
        provider="anthropic",
        model="model-1",
        time=1_800_000_000.0 + 60 * n,
        request_bytes=1_000,
        request_sha256=None,
        rebuilt=RebuiltVerdict("equal", "body", None, Coverage(logged=900, derived=100)),
        reply=ReplyVerdict("equal", None, "equal"),
        cache=CacheVerdict("warm", confidence="confirmed", why="the previous prompt is a prefix of this one"),
        tokens=TokenLedger(reported=1_000 * n, visible=990 * n, rebuilt=990 * n, naive=1_200 * n, estimated=False),
        usage=Usage(input=100 * n, cache_read=900 * n, cache_write=0, output=50),
        stop=Stop("end_turn", "complete"),
        requested_max=4096,
        at_cap=False,
        what=what or f"answer number {n}",
        window=Window(200_000, "config", 150_000, "rule"),
    )
    return replace(plain, **changes)


class Story:
    """Twelve calls: 4 and 9 diverge, 6 breaks the cache, 8 follows a compaction, 10 was cut, 5's stored reply differs."""

    def __init__(self, length: int = 12) -> None:
        self.calls = [self._call(n) for n in range(1, length + 1)]
        self.markers = (
            Marker("compaction", "p8", True, "replaced 9 messages by a summary", None, 162_000, 32_000, (), 8),
        )

    def _call(self, n: int) -> Call:
        if n in (4, 9):
            at = self.view(n, call(n)).served.data.index(b"4096")
            difference = Difference(
                at, at, at, "/max_tokens", "number_spelling", "4096.0 was spelled 4096", "4096", "4096.0"
            )
            return call(n, rebuilt=RebuiltVerdict("differs", "body", difference, Coverage(logged=800, unknown=200)))
        if n == 6:
            return call(
                n,
                cache=CacheVerdict(
                    "break",
                    "system_changed",
                    ("system_changed",),
                    "confirmed",
                    "/system",
                    prefix_offset=120,
                    expected_read=(5_000, 5_100),
                    reported_read=0,
                    lost_tokens=4_321,
                    why="a clock in the system prompt",
                ),
            )
        if n == 5:
            return call(
                n,
                reply=ReplyVerdict(
                    "differs", Difference(9, 9, None, "/0", "content", "the log lost a word", "a", "b"), "differs"
                ),
            )
        if n == 10:
            return call(n, stop=Stop("max_tokens", "truncated"), at_cap=True)
        if n == 7:
            return call(n, kind="side", lineage="side:1", what="title for the session")
        return call(n, markers=("compaction",) if n == 8 else ())

    def messages(self, n: int) -> list[tuple[str, str]]:
        return [
            ("user" if i % 2 == 0 else "assistant", f"message {i}\nsecond line of {i} " + "word " * (i % 5))
            for i in range(2 * n - 1)
        ]

    def view(self, n: int, of: Call | None = None) -> CallView:
        system = f"You help. It is {'noon' if n < 6 else 'evening'}.\nRules follow."
        served = body(system, self.messages(n), breakpoint_at=2 * n - 2)
        rebuilt = served
        if n in (4, 9):
            rebuilt = with_bytes(served, b"4096", b"4096.0")
        middle = len(rebuilt.data) // 2
        pieces = (
            Piece(rebuilt.data[:middle], "derived"),
            Piece(rebuilt.data[middle:], "logged", Place(0, f"line {2 * n}")),
        )
        delivered = (
            Block("text", f"answer number {n}, with every word"),
            Block("tool_call", '{"path":"a.py"}', "call_1", "read_file"),
        )
        stored = delivered if n != 5 else (Block("text", "answer number 5, with a word"), delivered[1])
        previous = (
            body(f"You help. It is {'noon' if n < 7 else 'evening'}.\nRules follow.", self.messages(n - 1))
            if n > 1
            else None
        )
        return CallView(
            call=of or self.calls[n - 1],
            served=served,
            rebuilt=rebuilt,
            pieces=pieces,
            previous=previous,
            previous_n=n - 1 if n > 1 else None,
            effective=served,
            delivered=b'event: message_start\ndata: {"type":"message_start"}\n\nevent: message_stop\ndata: {}\n\n',
            delivered_blocks=delivered,
            stored_blocks=stored,
            echoed_blocks=stored,
            echoed_n=n + 1,
            unchanged_since={s.path: 1 for s in served.segments if s.kind == "tool"},
            segment_tokens={s.path: (s.end - s.start) // 4 for s in served.segments},
            provenance={s.path: "logged" for s in served.segments if s.kind == "message"},
        )

    def snapshot(self, revision: int = 1) -> Snapshot:
        info = SessionInfo(
            "s1", "pi", "1.6", "/src/demo", ("log.jsonl",), ("wire",), "body", (), Config(window=200_000)
        )
        finding = Finding(
            "CTX101", "warning", (4,), "/max_tokens", "a number is spelled in two ways", "4096 and 4096.0"
        )
        return Snapshot(
            revision, (info,), ("wire",), tuple(self.calls), self.markers, (finding,), ("one line of the log is torn",)
        )


def with_bytes(old: Body, was: bytes, now: bytes) -> Body:
    """A body with one spelling replaced, its segments moved along."""
    at = old.data.index(was)
    shift = len(now) - len(was)
    data, moved = old.data.replace(was, now, 1), []
    for segment in old.segments:
        start, end = (x + (shift if x > at else 0) for x in (segment.start, segment.end))
        digest = hashlib.blake2b(data[start:end], digest_size=16).digest()
        moved.append(replace(segment, start=start, end=end, digest=digest))
    return replace(old, data=data, segments=tuple(moved), sha256=hashlib.sha256(data).hexdigest())


class FakeSource:
    """A source made of a snapshot and views; a test publishes newer snapshots itself."""

    title = "demo · pi · log.jsonl"

    def __init__(self, story: Story | None = None, *, title: str | None = None) -> None:
        self.story = story or Story()
        self.title = title or self.title
        self.snapshot = self.story.snapshot()
        self.viewed: list[int] = []
        self.publish: Callable[[Snapshot], None] = lambda _: None
        self.stopped = self.closed = False

    def view(self, n: int) -> CallView:
        self.viewed.append(n)
        return self.story.view(n)

    def next_requests(self) -> Sequence[NextRequest]:
        last = self.story.view(12)
        assert last.served is not None
        return (NextRequest("s1", "pi", "pi", last.served, (), "body", last.served, 12, previous_served=True),)

    def sidecars(self, n: int) -> Sequence[SidecarView]:  # noqa: ARG002 - the face
        return ()

    def messages(self, session: str | None, places: Sequence[Place]) -> Sequence[Logged]:  # noqa: ARG002 - the face
        return tuple(Logged(place, "user", f"words at {place}") for place in places)

    def follow(self, on_snapshot: Callable[[Snapshot], None]) -> Callable[[], None]:
        self.publish = on_snapshot

        def stop() -> None:
            self.stopped = True

        return stop

    def close(self) -> None:
        self.closed = True

    def report(self, n: int | None, fmt: str) -> str:
        return f"# Divergence report ({fmt}): {'all calls' if n is None else f'call {n}'}\n\nnothing [/else]\n"

    def command(self, n: int | None) -> str:
        return "ctxscope report log.jsonl" + (f" --call {n}" if n else "")


def themes_folder() -> Path:
    return Path(__file__).parents[1] / "themes"
