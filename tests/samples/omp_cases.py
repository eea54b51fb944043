"""The omp samples: what each session says, what its log keeps, what crossed the wire."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.samples.omp_form import (
    ANTHROPIC,
    CHAT,
    STEERING,
    OmpFile,
    Part,
    anthropic_answer,
    anthropic_body,
    anthropic_recording,
    anthropic_result,
    chat_answer,
    chat_body,
    chat_recording,
    chat_reply,
    chat_result,
    reminder,
    text,
)
from tests.samples.pi_form import Say, Think, Tokens, Use, reply

SIGNATURE = "aG9uZXk" * 12
SUPERSEDED = "[Superseded by a newer read of this file]"


def scale(hive: str, kilos: float, nights: int) -> str:
    """What the scale says, a night a line."""
    return "\n".join(f"{hive}, night {n}: {kilos - n * 0.3:.1f} kg" for n in range(1, nights + 1))


def frame() -> bytes:
    """A PNG of eight by eight grey dots, as an archive's page would be."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((x * y * 3) % 256 for x in range(8)) for y in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def shaken_then_archived(case: Path) -> None:
    """A steered turn, a shake that puts the readings into an artifact, a compaction that archives history on a picture."""
    log, wire = OmpFile("019c186e-2e80-7b01-8a01-50b2e9d4c301", CHAT), chat_recording()
    log.title = "Hive weights"
    log.start()

    ask, readings = "How does the linden hive do?", scale("linden", 31.4, 40)
    look = Use("call_lin01", "weigh", '{"i":"look","hive":"linden"}')
    first: list[Part] = [Think("The scale knows.", "reasoning_content"), look]
    log.user(1.0, ask)
    messages: list[dict[str, Any]] = [{"role": "user", "content": [reminder(), text(ask)]}]
    tokens = Tokens(0, 480, 30)
    wire.add(1.02, chat_body(messages), chat_reply("chatcmpl-hive01", first, tokens))
    log.answer(1.0, 2.5, first, tokens, "chatcmpl-hive01")
    shaken = log.result(2.6, look, readings)

    steer = "In pounds, please — we have a guest."
    log.user(2.7, steer, steering=True)
    second: list[Part] = [Say("It lost some 26 pounds in forty nights: linden is eating its stores.")]
    messages += [chat_answer(*first), chat_result(look, readings)]
    messages.append({"role": "user", "content": [text(STEERING + steer)]})
    tokens = Tokens(448, 520, 24)
    wire.add(2.75, chat_body(messages), chat_reply("chatcmpl-hive02", second, tokens))
    log.answer(2.72, 4.0, second, tokens, "chatcmpl-hive02")

    elided = "[shaken ~400 tokens — recover: artifact://2 (region 1)]"
    log.rewrite(shaken, 20.0, elided)
    messages[2] = chat_result(look, elided)
    ask = "And what should I do? «Füttern?»"
    third: list[Part] = [Say("Feed linden tonight.")]
    log.user(30.0, ask)
    messages += [chat_answer(*second), {"role": "user", "content": [text(ask)]}]
    tokens = Tokens(448, 190, 9)
    wire.add(30.02, chat_body(messages), chat_reply("chatcmpl-hive03", third, tokens))
    kept = log.answer(30.0, 31.5, third, tokens, "chatcmpl-hive03")

    picture = frame()
    lead = "Resume prior conversation. Earlier turns archived under HISTORY below, oldest→newest."
    page = {"data": f"blob:sha256:{hashlib.sha256(picture).hexdigest()}", "mimeType": "image/png", "cols": 8, "rows": 8}
    archive = {
        "frames": [page],
        "totalChars": 220,
        "truncatedChars": 0,
        "text": "¶user:How does the linden hive do?█¶ai:It lost some 26 pounds.",
        "textHead": "¶user:How does the linden hive do?",
        "textTail": "¶ai:It lost some█26 pounds.",
    }
    log.entry(
        "compaction",
        40.0,
        summary=lead,
        shortSummary="Archived 220 chars of history onto 1 snapcompact frames",
        firstKeptEntryId=kept,
        tokensBefore=638,
        tokensAfter=420,
        method="snapcompact",
        fromExtension=False,
        preserveData={"snapcompact": archive},
    )
    ask = "Note that."
    noted = Use("call_lin02", "note", '{"i":"note","line":"linden: feed tonight"}')
    fourth: list[Part] = [noted]
    log.user(50.0, ask)
    url = {"url": f"data:image/png;base64,{base64.b64encode(picture).decode()}"}
    opening = [
        reminder(),
        text(lead),
        text("¶user:How does the linden hive do?\n-------------- imaged middle below\n"),
        {"type": "image_url", "image_url": url},
        text("-------------- imaged middle above\n¶ai:It lost some\n26 pounds."),
    ]
    messages = [{"role": "user", "content": opening}, chat_answer(*third), {"role": "user", "content": [text(ask)]}]
    tokens = Tokens(420, 60, 18)
    wire.add(50.02, chat_body(messages), chat_reply("chatcmpl-hive04", fourth, tokens))
    log.answer(50.0, 51.5, fourth, tokens, "chatcmpl-hive04")
    log.result(51.6, noted, "1 line added")

    document = f"### region 1 (weigh, ~400 tok)\n\n{readings}\n"
    log.write(case / "log", {"2.shake.log": document}, (picture,))
    wire.write(case / "wire")


def pruned_in_place(case: Path) -> None:
    """The same scale is read twice; omp replaces the first reading in its file once the second is there."""
    log = OmpFile("019c186e-2e80-7b02-9b12-61c3fae5d402", ANTHROPIC)
    wire = anthropic_recording(log.id)
    log.start()

    ask, before, after = "Weigh the clover hive.", scale("clover", 28.0, 6), scale("clover", 29.2, 6)
    look = Use("toolu_clo01", "weigh", '{"i":"look","hive":"clover"}')
    first: list[Part] = [Think("One look.", SIGNATURE), look]
    log.user(1.0, ask)
    messages: list[dict[str, Any]] = [{"role": "user", "content": [reminder(), text(ask)]}]
    tokens = Tokens(0, 700, 25)
    sent = anthropic_body(messages, log.id)
    wire.add(1.02, sent, reply("msg_clo01", _prefixed(first), tokens, "tool_use"))
    log.answer(1.0, 2.5, first, tokens, "msg_clo01")
    pruned = log.result(2.6, look, before)

    again = Use("toolu_clo02", "weigh", '{"i":"look","hive":"clover"}')
    second: list[Part] = [Say("Once more, the wind moved the scale."), again]
    messages += [anthropic_answer(*first), anthropic_result(look, before)]
    tokens = Tokens(700, 120, 30)
    sent = anthropic_body(messages, log.id)
    wire.add(2.65, sent, reply("msg_clo02", _prefixed(second), tokens, "tool_use"))
    log.answer(2.62, 4.0, second, tokens, "msg_clo02")
    log.result(4.1, again, after)

    log.rewrite(pruned, 4.12, SUPERSEDED)
    third: list[Part] = [Say("Clover weighs 28.9 kg.")]
    messages[2] = anthropic_result(look, SUPERSEDED)
    messages += [anthropic_answer(*second), anthropic_result(again, after)]
    tokens = Tokens(640, 160, 12)
    sent = anthropic_body(messages, log.id)
    wire.add(4.15, sent, reply("msg_clo03", _prefixed(third), tokens, "end_turn"))
    log.answer(4.13, 5.5, third, tokens, "msg_clo03")

    log.write(case / "log")
    wire.write(case / "wire")


def _prefixed(parts: list[Part]) -> list[Part]:
    """An answer as the provider gives it: tools under the names it was told."""
    return [Use(p.id, f"_{p.name}", p.spelled) if isinstance(p, Use) else p for p in parts]


Make = Callable[[Path], None]
CASES: tuple[Make, ...] = (shaken_then_archived, pruned_in_place)
