"""Long texts of our own, the same at every run; and the small things that change from call to call."""

from __future__ import annotations

import base64
import random
import struct
import zlib
from functools import cache

_WORDS = [
    "anchor",
    "basin",
    "beacon",
    "bridge",
    "canal",
    "cargo",
    "chart",
    "cliff",
    "coast",
    "cove",
    "crane",
    "current",
    "deck",
    "delta",
    "depth",
    "dock",
    "drift",
    "eddy",
    "ferry",
    "fleet",
    "fog",
    "gale",
    "gauge",
    "gull",
    "harbour",
    "hatch",
    "hull",
    "inlet",
    "island",
    "jetty",
    "keel",
    "knot",
    "lagoon",
    "lantern",
    "ledger",
    "lock",
    "marsh",
    "mast",
    "mooring",
    "oar",
    "pier",
    "pilot",
    "port",
    "quay",
    "raft",
    "reef",
    "rope",
    "rudder",
    "sail",
    "sand",
    "shoal",
    "signal",
    "sound",
    "spar",
    "stern",
    "strait",
    "swell",
    "tide",
    "timber",
    "tow",
    "trawl",
    "vessel",
    "voyage",
    "wake",
    "watch",
    "wave",
    "wharf",
    "winch",
    "wind",
    "and",
    "of",
    "the",
    "to",
    "before",
    "behind",
    "under",
    "over",
    "holds",
    "keeps",
    "turns",
    "marks",
    "counts",
    "lifts",
    "clears",
    "moves",
    "checks",
    "opens",
    "closes",
    "follows",
    "carries",
    "crosses",
    "reaches",
    "leaves",
    "passes",
    "waits",
]
_ACCENTED = "café señal Übersicht île façade naïve ångström crème jalapeño smörgås 日本 東京 Ελλάδα мост".split()  # noqa: SIM905


@cache
def prose(seed: str, size: int, accents: bool = False) -> str:
    """Sentences of about ``size`` characters."""
    chance = random.Random(seed)
    words = [*_WORDS, *_ACCENTED] if accents else _WORDS
    parts: list[str] = []
    length = 0
    while length < size:
        sentence = " ".join(chance.choice(words) for _ in range(chance.randint(7, 14))).capitalize() + ". "
        parts.append(sentence)
        length += len(sentence)
    return "".join(parts).strip()


@cache
def picture(shade: int, side: int = 280) -> str:
    """A grey square as base64 of a PNG; 280 px are 10 x 10 patches of 28 px."""
    row = b"\0" + bytes([shade]) * side

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * side)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def envelope(seed: str, size: int = 600) -> str:
    """Opaque reasoning bytes."""
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


VOLATILE: dict[str, tuple[str, str]] = {
    "clock": ("Current time: 2026-09-14T08:31:07Z", "Current time: 2026-09-14T08:33:52Z"),
    "date": ("Today's date: 2026-09-14", "Today's date: 2026-09-15"),
    "uuid": (
        "Session: 5b0c9a52-6f0e-4d7c-9a1b-2f4e6d8c0a13",
        "Session: c41d7e90-13ab-4f62-8e57-90b3a6d2f7c8",
    ),
    "nonce": ("Request nonce: 9f3c2a7be15d", "Request nonce: 04be81d6fa92"),
    "cwd": ("Working directory: /srv/atlas/api", "Working directory: /srv/atlas/web"),
    "git_status": (
        "git status: branch main, 3 files modified, 0 untracked",
        "git status: branch main, 4 files modified, 1 untracked",
    ),
    "token_counter": ("Tokens used so far: 18432 of 200000", "Tokens used so far: 23917 of 200000"),
}
"""Before and after, a line each (§12 C04)."""
BILLING = (
    "x-anthropic-billing-header: cc_version=2.1.40.a1c; cc_entrypoint=cli; cch=8f2a1;",
    "x-anthropic-billing-header: cc_version=2.1.40.a1c; cc_entrypoint=cli; cch=d07e4;",
)


def system_text(line: str = "", seed: str = "system") -> str:
    """Instructions of about 3,200 characters, with ``line`` as a line of its own two thirds into them."""
    middle = f"\n{line}\n" if line else "\n"
    return f"{prose(seed, 2100)}{middle}{prose(seed + ' rest', 1050)}"


def properties(name: str) -> dict[str, dict[str, str]]:
    """The properties of a tool's schema."""
    return {
        "path": {"type": "string", "description": prose(f"{name} path", 120)},
        "query": {"type": "string", "description": prose(f"{name} query", 120)},
        "limit": {"type": "integer", "description": prose(f"{name} limit", 80)},
    }


def schema(name: str) -> dict[str, object]:
    """A tool's schema."""
    return {"type": "object", "properties": properties(name), "required": ["path"]}


TOOLS = ("chart_read", "chart_write", "harbour_search", "tide_table", "vessel_list")
