"""Counting: what counts as visible, once for each segment, with no network."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis import vocabulary
from ctxscope.analysis.images import image_size, image_tokens
from ctxscope.analysis.tokens import Counter, ledger
from ctxscope.analysis.visible_text import compact
from ctxscope.model import Body, TokenParts, Usage
from tests.analysis_bodies import body
from tests.counting import counter, no_network

tiktoken = pytest.importorskip("tiktoken")
FIXTURES = (counter, no_network)
"""Used by their names, or always."""


# --- counting --------------------------------------------------------------------------------------------------------


def test_a_long_run_of_spaces_is_counted_and_does_not_panic(counter):
    assert 0 < counter.count(" " * 1_100_000) < 1_100_000 / 30


@pytest.mark.parametrize("known", ["gpt-4o", "gpt-4"])
@pytest.mark.parametrize("run", ["a", "\t", "\u00e9", "=", "aB", "\u200b", "\r\n", "QUJD/+9x"])
def test_a_long_run_without_a_place_to_cut_is_counted_piece_by_piece(counter, known, run):
    text = run * (200_000 // len(run))
    short = counter.count(text[:50_000], known)
    assert 3.9 * short < counter.count(text, known) < 4.1 * short + 9


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4", "claude-opus-4-5"])
def test_marks_of_a_chat_in_a_text_are_text(counter, model):
    text = "a <|endoftext|> <|im_start|>user<|fim_prefix|> b"
    assert counter.count(text, model) > 12


def test_cutting_drifts_by_next_to_nothing(counter):
    text = "The quick brown fox, 17 times; naïve. " * 8000
    whole = len(vocabulary.encoding().encode_ordinary(text))
    assert abs(counter.count(text) - whole) <= 5


def test_a_lone_surrogate_is_counted(counter):
    assert counter.count("a\ud800b") > 0


def test_a_panic_of_the_encoder_becomes_an_estimate(monkeypatch):
    class Panic(BaseException):
        pass

    class Refusing:
        def encode_ordinary(self, _):
            raise Panic

    monkeypatch.setattr(vocabulary, "encoding", lambda _: Refusing())
    assert Counter().count("x" * 39) == 10


def test_each_distinct_segment_is_counted_once(monkeypatch):
    counter = Counter()
    seen: list[str] = []
    monkeypatch.setattr(counter, "count", lambda text, _: seen.append(text) or 1)
    messages = [{"role": "user", "content": f"question {n}"} for n in range(20)]
    for n in range(1, 21):
        counter.parts(body({"messages": messages[:n]}))
    assert sorted(seen) == sorted(m["content"] for m in messages)


# --- what is visible -------------------------------------------------------------------------------------------------

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + struct.pack(">II", 280, 56) + b"\0" * 9000).decode()


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def test_parts_are_told_apart_and_envelopes_are_no_text(counter):
    noise = "QUJD" * 300
    request = {
        "model": "claude-opus-4-5",
        "tools": [{"name": "read", "description": "Reads it.", "input_schema": {"type": "object"}}],
        "system": [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": 'say "\u00e9"\n'},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Let me think.", "signature": noise},
                    {"type": "redacted_thinking", "data": noise},
                    {"type": "tool_use", "id": "c1", "name": "read", "input": {"p": "x"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "two lines"}]},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            },
        ],
        "max_tokens": 4096,
    }

    def count(*texts: str) -> int:
        return round(1.15 * sum(map(counter.count, texts)))

    parts = counter.parts(body(request))
    assert parts.system == count("Be terse.")
    assert parts.tools == count("read", "Reads it.", compact({"type": "object"}))
    assert parts.text == count('say "\u00e9"\n')
    assert parts.thinking == count("Let me think.")
    assert parts.tool_calls == count("read", '{"p":"x"}')
    assert parts.tool_results == count("two lines")
    assert parts.envelope == 2 * counter.count(noise)
    assert parts.images == 10 * 2
    found = ledger(counter, body(request), usage=Usage(input=5, cache_read=7))
    assert found.visible == sum(
        (parts.system, parts.tools, parts.text, parts.tool_calls, parts.tool_results, parts.thinking)
    )
    assert sum(counter.segment_tokens(body(request)).values()) == found.visible
    assert (found.reported, found.parts.sidecar, found.rebuilt, found.naive) == (12, 0, None, None)


@pytest.mark.parametrize(
    ("model", "times", "estimated"),
    [
        ("gpt-4o", 1, False),
        ("openai/gpt-5.5-pro", 1, False),
        ("o3-mini", 1, False),
        ("gpt-oss-120b", 1, False),
        ("gpt-5.6-sol", 1, True),
        ("gpt-6", 1, True),
        ("gpt-4-turbo", 1, False),
        ("azure/gpt-35-turbo", 1, False),
        ("ft:gpt-3.5-turbo:of-ours", 1, False),
        ("gpt-4.5-preview", 1, False),
        ("gemini-3-pro", 1, True),
        ("deepseek-chat", 1, True),
        (None, 1, True),
        ("claude-3-5-sonnet-20241022", 1.15, True),
        ("claude-2.1", 1.15, True),
        ("anthropic/claude-opus-4.6", 1.15, True),
        ("claude-haiku-4-5", 1.15, True),
        ("us.anthropic.claude-opus-4-7-v1:0", 1.45, True),
        ("claude-sonnet-5-20260101", 1.45, True),
        ("claude-mythos-preview", 1.45, True),
    ],
)
def test_only_a_models_own_encoding_is_counted_and_claudes_is_estimated_by_a_factor(counter, model, times, estimated):
    text = "A sentence of a few words, to be counted. " * 40
    found = ledger(counter, body({"model": model, "messages": [{"role": "user", "content": text}]}))
    assert found.estimated is estimated
    assert found.visible == round(times * counter.count(text, model))


def test_a_message_sent_from_a_sidecar_is_told_as_one_and_counted_once(counter):
    sent, other = "The question, with what was recalled for it.", "Another question."
    made = body({"model": "gpt-4o", "messages": [{"role": "user", "content": t} for t in (sent, other, sent)]})
    plain = ledger(counter, made)
    found = ledger(counter, made, sidecars=[sent, "A text that was not sent."])
    assert found.visible == plain.visible
    assert (found.parts.sidecar, found.parts.text) == (counter.count(sent), counter.count(sent) + counter.count(other))
    assert ledger(counter, made, made, sidecars=[sent]).rebuilt == plain.visible


def segment_parts(counter, message):
    made = body({"messages": [{"role": "user", "content": [message]}]})
    return counter.parts(made)


def test_thinking_repeated_in_another_member_counts_once(counter):
    message = {
        "role": "assistant",
        "content": "Done.",
        "reasoning_content": "I will look.",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "I will ", "signature": "c2ln"},
            {"type": "reasoning.text", "text": "look."},
            {"type": "reasoning.encrypted", "data": "ZGF0YQ=="},
        ],
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "ls", "arguments": '{"p": "."}'}}],
    }
    parts = segment_parts(counter, message)
    assert parts.thinking == counter.count("I will look.")
    assert parts.envelope == counter.count("c2ln") + counter.count("ZGF0YQ==")
    assert parts.tool_calls == counter.count("ls") + counter.count('{"p": "."}')
    assert parts.text == counter.count("Done.")


@pytest.mark.parametrize(
    ("item", "part", "words"),
    [
        ({"type": "function_call", "name": "ls", "call_id": "c", "arguments": "{}"}, "tool_calls", ["ls", "{}"]),
        ({"type": "function_call_output", "call_id": "c", "output": "a b"}, "tool_results", ["a b"]),
        ({"role": "tool", "tool_call_id": "c", "content": "a b"}, "tool_results", ["a b"]),
        ({"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]}, "thinking", ["hm"]),
        ({"functionCall": {"name": "ls", "args": {"p": 1}}}, "tool_calls", ["ls", '{"p":1}']),
        ({"functionResponse": {"name": "ls", "response": {"o": 1}}}, "tool_results", ["ls", '{"o":1}']),
        ({"text": "hm", "thought": True}, "thinking", ["hm"]),
        ({"type": "input_text", "text": "hello"}, "text", ["hello"]),
    ],
)
def test_items_of_every_api_find_their_part(counter, item, part, words):
    parts = segment_parts(counter, item)
    assert getattr(parts, part) == sum(counter.count(w) for w in words)
    assert ledger(counter, body({"messages": [{"role": "user", "content": [item]}]})).visible == getattr(parts, part)


@pytest.mark.parametrize(
    "image",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}},
        {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"},
    ],
)
def test_base64_is_never_counted_as_text_and_what_cannot_be_counted_is_unknown(counter, image):
    message = {"role": "user", "content": [image]}
    found = ledger(counter, body({"model": "claude-opus-4-5", "messages": [message]}))
    readable = PIXEL in compact(image)
    assert (found.visible, found.parts.images, found.parts.documents) == (0, 20 if readable else None, 0)
    beside = {"role": "user", "content": [IMAGE, image]}
    assert counter.parts(body({"model": "claude-opus-4-5", "messages": [beside]})).images == (40 if readable else None)
    assert counter.parts(body({"model": "kimi-k3", "messages": [message]})).images is None


@pytest.mark.parametrize("of", ["result", "tool", "screen"])
def test_images_and_files_inside_items_and_results_are_seen_and_never_their_base64(counter, of):
    pdf = {"inlineData": {"mimeType": "application/pdf", "data": "JVBERi0x" * 50}}
    picture = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    item = {
        "result": {"type": "image_generation_call", "id": "i", "status": "completed", "result": PIXEL * 50},
        "tool": {"functionResponse": {"name": "", "response": "", "parts": [picture, pdf]}},
        "screen": {
            "type": "computer_call_output",
            "output": {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"},
        },
    }[of]
    request = body({"model": "kimi-k3", "messages": [{"role": "user", "content": [item]}]})
    found = ledger(counter, request)
    assert (found.visible, found.parts.images) == (0, None)
    assert found.parts.documents == (None if of == "tool" else 0)


def files(data: str) -> list[dict[str, object]]:
    """A file of this base64, or named, in the forms of every API."""
    return [
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}},
        {"type": "document", "source": {"type": "url", "url": f"https://example.org/{data}"}},
        {"type": "document", "source": {"type": "file", "file_id": data}},
        {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"},
        {"type": "input_file", "file_id": data},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}},
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        {"inlineData": {"mimeType": "application/pdf", "data": data}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": data}},
    ]


@given(st.sampled_from(range(len(files("")))), st.binary(max_size=300), st.integers(1, 90), st.booleans())
def test_a_files_bytes_are_never_counted_and_leave_images_known(which, content, times, in_a_result):
    counter, block = Counter(), files(base64.b64encode(content * times).decode())[which]
    held = {"type": "tool_result", "tool_use_id": "t", "content": [block]} if in_a_result else block
    request = body({"model": "claude-opus-4-5", "messages": [{"role": "user", "content": [IMAGE, held]}]})
    found = counter.summed(request)
    assert counter.count_segment(request, request.segments[-1]) == 0
    assert (found.parts, found.pages) == (TokenParts(images=20, documents=None), None)


def test_a_document_given_as_text_is_text(counter):
    document = {"type": "document", "title": "Notes", "source": {"type": "text", "data": "some words"}}
    parts = segment_parts(counter, document)
    assert parts == TokenParts(text=counter.count("some words") + counter.count("Notes"))
    given_in_blocks = [{"type": "text", "text": "some words"}, IMAGE]
    document["source"] = {"type": "content", "content": given_in_blocks}
    request = body({"model": "claude-opus-4-5", "messages": [{"role": "user", "content": [document]}]})
    found = counter.parts(request)
    assert (found.images, found.documents) == (20, 0)
    assert found.text == round(1.15 * parts.text)


def test_envelopes_are_measured_in_bytes_by_segment_and_in_all(counter):
    thinking = {"type": "thinking", "thinking": "hm", "signature": "QUJD"}
    detailed = {"type": "reasoning.encrypted", "data": "\u00e9\u20ac="}  # 2, 3 and 1 bytes, however JSON spells them
    blocks = [
        {"type": "text", "text": "so"},
        thinking,
        detailed,
        {"functionCall": {"name": "f"}, "thoughtSignature": "Q="},
    ]
    request = body({"messages": [{"role": "assistant", "content": blocks}]})
    sizes = {"/messages/0/content/1": 4, "/messages/0/content/2": 6, "/messages/0/content/3": 2}
    assert counter.segment_envelopes(request) == sizes
    assert (ledger(counter, request).envelope_bytes, ledger(counter, None, request).envelope_bytes) == (12, 12)
    assert ledger(counter, body({"messages": []})).envelope_bytes is None
    assert ledger(counter, body({"messages": [{"role": "user", "content": "hi"}]})).envelope_bytes == 0


def test_an_unknown_body_has_unknown_tokens(counter):
    bare = Body(b'{"messages":[]}', None, ())  # of no API that is known: it is not taken apart
    for rebuilt in (None, bare):
        found = ledger(counter, None, rebuilt)
        assert (found.visible, found.rebuilt, found.reported, found.parts) == (None, None, None, None)


# --- images ----------------------------------------------------------------------------------------------------------


def jpeg(width: int, height: int) -> bytes:
    application = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\0" * 9
    return b"\xff\xd8" + application + b"\xff\xc2" + struct.pack(">HBHH", 11, 8, height, width) + b"\0" * 20


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (base64.b64decode(PIXEL), (280, 56)),
        (b"GIF89a" + struct.pack("<HH", 3, 4) + b"\0" * 9, (3, 4)),
        (jpeg(640, 480), (640, 480)),
        (b"RIFF????WEBP", None),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"", None),
    ],
)
def test_the_size_is_read_from_the_header_or_not_at_all(data, size):
    assert image_size(base64.b64encode(data).decode()) == size


@pytest.mark.parametrize(
    ("size", "model", "tokens"),
    [
        ((1920, 1080), "claude-opus-4-5", 1560),
        ((3840, 2160), "claude-opus-4-8", 4784),
        ((28, 28), "claude-x", 1),
        ((1, 99999), "claude-x", 56),
    ],
)
def test_anthropic_images_cost_what_its_page_says(size, model, tokens):
    assert image_tokens(size, "anthropic-messages", model) == tokens


@pytest.mark.parametrize(
    ("size", "model", "detail", "tokens"),
    [
        ((1024, 1024), "gpt-4o", "", 85 + 4 * 170),
        ((1024, 1024), "gpt-4o-2024-11-20", "low", 85),
        ((2048, 4096), "gpt-4.1", "high", 85 + 6 * 170),
        ((1024, 1024), "gpt-4o-mini", "", 2833 + 4 * 5667),
        ((1024, 1024), "gpt-5", "", 70 + 4 * 140),
        ((1024, 1024), "o3", "", 75 + 4 * 150),
        ((1024, 1024), "gpt-5-mini", "", 1659),
        ((1800, 2400), "o4-mini", "", 2498),
        ((1024, 1024), "gpt-5.4", "", 1024),
        ((4096, 4096), "gpt-5.4", "", 2500),
        ((4096, 4096), "gpt-5.5", "", 10_000),
        ((8192, 4096), "openai/gpt-5.6-sol", "", 256 * 128),
        ((1024, 1024), "gpt-5.6", "high", None),
        ((1800, 2400), "gpt-5.2", "", 1452),
        ((1024, 1024), "gpt-4.1-nano", "", 2520),
        ((1024, 1024), "gpt-3.5", "", None),
        ((1024, 1024), "a-model-of-one's-own", "", None),
    ],
)
def test_openai_images_cost_what_the_models_rule_says(size, model, detail, tokens):
    assert image_tokens(size, "openai-chat", model, detail) == tokens


def test_an_image_whose_formula_is_unknown_costs_unknown():
    assert image_tokens((10, 10), "gemini", "gemini-3-pro") is None
    assert image_tokens((10, 10), "anthropic-messages", "kimi-k3") is None
