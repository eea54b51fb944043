"""What an image costs in tokens, from its size in pixels, where the header says it (prompt_caching §11)."""

from __future__ import annotations

import base64
import re
import struct
from math import ceil

from ctxscope.model import ApiName

_HEADER = 64 * 1024
"""Base64 characters looked at: enough for a JPEG whose frame follows large metadata, a multiple of four."""
_CLAUDE = re.compile(r"claude-[a-z]+-(\d+)(?:[-.](\d{1,2}))?(?!\d)")
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


def image_tokens(size: tuple[int, int], api: ApiName | None, model: str | None) -> int | None:
    """Tokens of an image by its provider's formula; ``None`` where the formula depends on what we do not know."""
    if api == "anthropic-messages":
        return _anthropic(size, model or "")
    if api in ("openai-chat", "openai-responses"):
        return _patches(size, side=32, edge=2048, budget=2500)
    return None


def _anthropic(size: tuple[int, int], model: str) -> int:
    """Two tiers: models before Claude 4.7, and that one and later."""
    version = _CLAUDE.match(model)
    later = version is not None and (int(version[1]), int(version[2] or 0)) >= (4, 7)
    return _patches(size, side=28, edge=2576, budget=4784) if later else _patches(size, side=28, edge=1568, budget=1568)


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
