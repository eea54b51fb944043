"""What an image costs in tokens, from its size in pixels, where the header says it (prompt_caching §11)."""

from __future__ import annotations

import base64
import re
import struct
from math import ceil, floor, sqrt

from ctxscope.analysis.tokenizers import is_claude, is_later_claude
from ctxscope.model import ApiName

_HEADER = 64 * 1024
"""Base64 characters looked at: enough for a JPEG whose frame follows large metadata, a multiple of four."""
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers of a frame header; the three left out are tables."""


def image_size(data: str) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF or JPEG given as base64 or data URL; ``None`` when its header does not say."""
    encoded = data.partition(";base64,")[2] if data.startswith("data:") else data
    try:
        head = base64.b64decode(encoded[:_HEADER] + "=" * (-len(encoded[:_HEADER]) % 4))
    except ValueError:
        return None
    try:
        if head.startswith(_PNG):
            width, height = struct.unpack_from(">II", head, 16)
        elif head.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack_from("<HH", head, 6)
        elif head.startswith(_JPEG):
            return _jpeg_size(head)
        else:
            return None
    except struct.error:
        return None
    return (width, height) if width and height else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:  # noqa: PLR2004 - the marker byte of the JPEG standard
        length = int.from_bytes(head[at + 2 : at + 4], "big")
        if head[at + 1] in _FRAMES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return (width, height) if width and height else None
        at += 2 + length
    return None


def image_tokens(size: tuple[int, int], api: ApiName | None, model: str | None, detail: str = "") -> int | None:
    """Tokens of an image by its provider's formula; ``None`` where none is known for the model.

    ``detail``: as the client asked for it (OpenAI).
    """
    if api == "anthropic-messages" and is_claude(model):
        large = is_later_claude(model)
        return _patches(size, side=28, edge=2576 if large else 1568, budget=4784 if large else 1568)
    if api in ("openai-chat", "openai-responses"):
        return _openai(size, (model or "").rpartition("/")[2], detail or "auto")
    return None


_TILES = (
    ("gpt-4o-mini", 2833, 5667),
    ("gpt-4o", 85, 170),
    ("gpt-4.1", 85, 170),
    ("gpt-5", 70, 140),
    ("o1", 75, 150),
    ("o3", 75, 150),
    ("computer-use", 65, 129),
)
"""Model, base and tokens a tile."""
_PATCHES = re.compile(
    r"(gpt-4\.1-(?:mini|nano)|gpt-5(?:\.4)?-(?:mini|nano)|gpt-5\.2|gpt-5[.\d]*-codex|codex-mini|o4-mini)(?![a-z\d.])"
)
_LARGE = re.compile(r"gpt-5\.(4|5|6)(?![\d])(?!-(?:mini|nano))")
_DATED = re.compile(r"(?:-\d{4}(?:-\d{2}){0,2}|-latest)?$")


def _openai(size: tuple[int, int], model: str, detail: str) -> int | None:
    """Patches of 32 pixels for some models, tiles of 512 for others."""
    if found := _LARGE.match(model):
        return _large(size, int(found[1]), detail)
    if found := _PATCHES.match(model):
        whole = _fitted(size, edge=512 if detail == "low" else None, budget=1536)
        name = found[1]
        times = 1.72 if name == "o4-mini" else 1.62 if "mini" in name else 2.46 if "nano" in name else 1.0
        return ceil(whole * times)
    for name, base, each in _TILES:
        if model.startswith(name) and _DATED.fullmatch(model[len(name) :]):
            return base if detail == "low" else base + each * _tiles(size)
    return None


def _large(size: tuple[int, int], minor: int, detail: str) -> int | None:
    """GPT-5.4, 5.5 and 5.6: up to 2,500 patches, or the original, which ``auto`` means from 5.5 on."""
    original = detail == "original" or (detail == "auto" and minor > 4)  # noqa: PLR2004 - the version
    if detail == "low":
        return _fitted(size, edge=512)
    if original:
        return _fitted(size, edge=6000, budget=10_000) if minor < 6 else _fitted(size)  # noqa: PLR2004 - the version
    return _fitted(size, edge=2048, budget=2500) if minor < 6 else None  # noqa: PLR2004 - the version


def _fitted(size: tuple[int, int], edge: int | None = None, budget: int | None = None) -> int:
    """Patches of 32 pixels after fitting into ``edge`` and ``budget``.

    Over the budget an image is scaled to its area, then until the side that comes nearest is whole patches: OpenAI's
    example, 1800 by 2400 pixels and 1,536 patches, makes 33 by 44.
    """
    width, height = (s * min(1.0, edge / max(size)) if edge else float(s) for s in size)
    whole = _count(width, height, 32)
    if budget is None or whole <= budget:
        return whole
    scale = sqrt(32 * 32 * budget / (width * height))
    scale *= min(floor(s * scale / 32) / (s * scale / 32) for s in (width, height))
    return _count(width * scale, height * scale, 32)


def _tiles(size: tuple[int, int]) -> int:
    """Tiles of 512 pixels after fitting into 2048 by 2048 and scaling the short side down to 768."""
    scale = min(1.0, 2048 / max(size))
    scale = min(scale, 768 / min(size))
    return _count(size[0] * scale, size[1] * scale, 512)


def _patches(size: tuple[int, int], *, side: int, edge: int, budget: int) -> int:
    """Patches of ``side`` pixels after scaling down to ``edge`` pixels and, by whole patches, to ``budget`` of them."""
    width, height = (s * min(1.0, edge / max(size)) for s in size)
    whole = _count(width, height, side)
    if whole <= budget:
        return whole
    steps = [n * side / full for full in (width, height) for n in range(1, ceil(full / side))]
    fitting = [s for s in steps if _count(width * s, height * s, side) <= budget]
    scale = max(fitting, default=0.0)
    return _count(width * scale, height * scale, side)


def _count(width: float, height: float, side: int) -> int:
    """Patches that cover an area; a hair above a whole patch is that patch (rounding of the scale)."""
    return ceil(width / side - 1e-9) * ceil(height / side - 1e-9)
