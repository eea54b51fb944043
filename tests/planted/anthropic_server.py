"""Anthropic's servers: what they change of a body that only grew, what they say of it, and the other doors to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from tests.planted.changes import tool_added
from tests.planted.dialects import JSON, dumps, sse
from tests.planted.families import anthropic
from tests.planted.shapes import ANY, LIKELY, SURE, UNSURE, Expected, Transition
from tests.planted.tape import Call, Tape
from tests.planted.texts import prose


def transitions() -> Iterator[Transition]:
    yield from _thinking()
    yield from _edits()
    yield _compaction_block()
    yield _hidden_note()
    yield from _diagnostics()
    yield from _vertex()
    yield from _profiles()
    yield from _bedrock()


# --- what the server strips, edits, summarizes ---


def _thinking() -> Iterator[Transition]:
    for model, strips in (
        ("claude-haiku-4-5", True),
        ("claude-sonnet-4-5", True),
        ("claude-opus-4-1", True),
        ("claude-sonnet-4-6", False),
        ("claude-opus-4-5", False),
    ):
        tape = anthropic(model)
        tape.thinking = True
        tape.system = prose("long rules", 12_000) + "\n" + prose("long rules 2", 6000)
        body = tape.begin(2)  # turns 0 and 1; what follows are new words of the user
        call = tape.ask(body, turn=2)
        assert (call.counted.read < tape.calls[1].counted.kept) is strips
        stripped = tape.broken(call, "reasoning_stripped_server", "/messages/1")
        tape.note(stripped if strips else tape.warm(call, 2))
        within = tape.ask(tape.grown(call, 2), turn=3)  # a tool's result: the turn goes on
        tape.note(tape.warm(within, 3))
        name = "reasoning_stripped_server" if strips else "reasoning_kept"
        yield tape.done(f"anthropic/{name}_{model}", "§8 last turn only or keep-all by model; §2.2, §12 C18")


def _edits() -> Iterator[Transition]:
    """The server clears of the fourth prompt what it says it cleared."""
    uses = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": 1180}
    turns = {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1, "cleared_input_tokens": 120}
    for name, edit in (("clear_tool_uses", uses), ("clear_thinking", turns)):
        tape = anthropic()
        tape.thinking = name == "clear_thinking"
        asked: JSON = {"context_management": {"edits": [{"type": edit["type"]}]}}
        body = tape.begin(body=tape.opening() | asked)
        shown = {**body, "messages": [dict(m) for m in body["messages"]]}
        if tape.thinking:
            shown["messages"][1]["content"] = shown["messages"][1]["content"][1:]
        else:
            cleared = dict(shown["messages"][2]["content"][0]) | {"content": "[cleared]"}
            shown["messages"][2]["content"] = [cleared]
        call = tape.ask(body, rendered=shown, extra={"context_management": {"applied_edits": [edit]}})
        assert 0 < call.counted.read < tape.calls[2].counted.kept
        tape.note(tape.broken(call, "server_context_edit", None))
        yield tape.done(
            f"anthropic/server_context_edit_{name}", "§9: applied_edits invalidate at the first cleared result"
        )


def _compaction_block() -> Transition:
    """The third reply begins with a compaction block: what stood before it is ignored though it is still sent."""
    tape = anthropic()
    asked: JSON = {"context_management": {"edits": [{"type": "compact_20260112"}]}}
    body = tape.begin(2, tape.opening() | asked)
    block = {"type": "compaction", "content": prose("server summary", 700)}
    third = tape.ask(body, turn=3)
    tape.note(tape.warm(third, 2))
    last = tape.exchanges[-1]
    opened = b'{"type":"content_block_start","index":0,"content_block":{"type":"text"'
    assert opened in last.response
    summary = _event("content_block_start", 0, {"content_block": {"type": "compaction", "content": None}})
    told = {"type": "compaction_delta", "content": block["content"]}
    summary += _event("content_block_delta", 0, {"delta": told}) + _event("content_block_stop", 0, {})
    head, tail = last.response.split(b"event: content_block_start", 1)
    shifted = b"event: content_block_start" + tail.replace(b'"index":0', b'"index":1')
    tape.exchanges[-1] = replace(last, response=head + summary + shifted)
    grown = tape.grown(third, 3)
    grown["messages"][-2]["content"].insert(0, block)
    shown = {**grown, "messages": [{"role": "user", "content": [block]}, *grown["messages"][-2:]]}
    call = tape.ask(grown, rendered=shown, turn=4)
    assert call.counted.read < third.counted.kept
    tape.note(tape.broken(call, "compaction", None, "server_context_edit"))
    return tape.done(
        "anthropic/compaction_block", "§9: all blocks before the last compaction block are ignored; C14, C27"
    )


def _event(name: str, index: int, more: JSON) -> bytes:
    return sse([(name, {"type": name, "index": index} | more)])


def _hidden_note() -> Transition:
    """A system message that is cleared at the next user message: its text is gone from the prompt, not from the body."""
    tape = anthropic()
    body = tape.begin(1)
    note = {"role": "system", "content": [{"type": "text", "text": prose("passing note", 500)}]}
    body["messages"].append(note | {"clear_at": "next_user_message"})
    second = tape.ask(tape.dialect.marked(body))
    tape.note(tape.warm(second, 1))
    grown = tape.grown(second, 1)
    shown = {**grown, "messages": [m for m in grown["messages"] if "clear_at" not in m]}
    call = tape.ask(grown, rendered=shown)
    assert call.counted.read < second.counted.kept
    left = replace(tape.broken(call, None, None, confidence=ANY), cause=None)
    tape.note(left)
    return tape.done("anthropic/cleared_note", "§2.2 trap: clear_at:next_user_message is no longer shown to the model")


# --- what it says itself ---


def _diagnostics() -> Iterator[Transition]:
    """``diagnostics`` of the fourth reply: a type or none; whether tools changed; whether the cache was lost."""
    for name, reason, changes, evicts, expected in (
        ("agrees", "tools_changed", True, False, ("break", "tool_added", frozenset({"confirmed"}))),
        ("disagrees", "system_changed", True, False, ("break", "tool_added", SURE | LIKELY)),
        ("unavailable", "unavailable", True, False, ("break", "tool_added", SURE)),
        ("none_and_evicted", None, False, True, ("miss", "unexplained_miss", SURE)),
        ("not_found", "previous_message_not_found", False, False, ("warm", None, ANY)),
        ("sees_more", "messages_changed", False, True, ("miss", None, UNSURE | LIKELY)),
        ("changed_but_saved", "messages_changed", False, False, ("warm", None, ANY)),
    ):
        tape = anthropic()
        tape.headers["anthropic-beta"] = "cache-diagnosis-2026-04-07"
        body = tape.begin()
        if changes:
            tool_added(tape.dialect, body)
        if evicts:
            tape.rules.forget()
        body["diagnostics"] = {"previous_message_id": _id_of(tape, 3)}
        missed = {"type": reason, "cache_missed_input_tokens": 3900} if reason else None
        said = {"cache_miss_reason": missed} if missed else None
        call = tape.ask(body, extra={"diagnostics": said})
        tape.note(_told(tape, call, *expected))
        yield tape.done(f"anthropic/diagnostics_{name}", "§2.5: types and their reading; §0.2 evidence, not truth")


def _told(tape: Tape, call: Call, verdict: str, cause: str | None, confidence: frozenset[str]) -> Expected:
    if verdict == "warm":
        return replace(tape.warm(call, 3), confidence=confidence)
    if verdict == "miss":
        also = frozenset() if cause else frozenset({"break"})
        return tape.missed(call, cause, confidence=confidence, also=also)
    return tape.broken(call, cause, "/tools/2", confidence=confidence)


def _id_of(tape: Tape, n: int) -> str:
    return "msg_" + f"{tape.provider}{n:02d}main".encode().hex()[:24]


# --- Vertex and Bedrock, where they differ ---


def _elsewhere(body: JSON, version: str) -> bytes:
    """Where the model stands in the path, and on Bedrock whether it streams, too."""
    kept = {k: v for k, v in body.items() if k != "model" and (v or k != "stream")}
    return dumps(kept | {"anthropic_version": version})


def _vertex() -> Iterator[Transition]:
    model = "claude-opus-5"
    path = f"/v1/projects/p-17/locations/us-east5/publishers/anthropic/models/{model}:streamRawPredict"
    for name in ("append", "key_order", "tool_added"):
        tape = anthropic(model)
        tape.provider, tape.host = "anthropic_vertex", "us-east5-aiplatform.googleapis.com"
        tape.dialect.path = path
        tape.spell = lambda n, body: _elsewhere(body, "vertex-2023-10-16")  # noqa: ARG005 - the face of spellings
        body = tape.begin()
        if name == "key_order":  # another head of the raw body is led to another store
            tape.rules.forget()
            call = tape.ask(dict(reversed(body.items())))
            tape.note(tape.missed(call, "routing_changed"))
        elif name == "tool_added":
            tool_added(tape.dialect, body)
            call = tape.ask(body)
            tape.note(tape.broken(call, "tool_added", "/tools/2"))
        else:
            call = tape.ask(body)
            tape.note(tape.warm(call, 3))
        yield tape.done(f"vertex/{name}", "§0.3, §6: on Vertex the order of the body's keys changes routing; §12 C23")


_ARN = "arn:aws:bedrock:eu-west-1:123456789012:"
PROFILES = (
    ("region", "eu.anthropic.claude-opus-4-7-v1:0", True),
    ("quoted_arn", quote(f"{_ARN}inference-profile/eu.anthropic.claude-opus-4-7-v1:0", safe=""), True),
    ("plain_arn", f"{_ARN}inference-profile/eu.anthropic.claude-opus-4-7-v1:0", True),
    ("own_profile", quote(f"{_ARN}application-inference-profile/x7k2p9", safe=""), False),
)
"""How a path names a model on Bedrock, and whether that tells its family."""


def _profiles() -> Iterator[Transition]:
    """The minimum of Opus 4.7 is 4096 on Bedrock; of a profile its user made nobody can tell what stands behind it."""
    for name, model, told in PROFILES:
        tape = anthropic("claude-opus-4-7", stream=False)
        tape.spell = lambda n, body: _elsewhere(body, "bedrock-2023-05-31")  # noqa: ARG005 - the face of spellings
        tape.provider, tape.host = "anthropic_bedrock", "bedrock-runtime.eu-west-1.amazonaws.com"
        tape.dialect.path = f"/model/{model}/invoke"
        tape.rules.minimum = 4096  # type: ignore[attr-defined]
        first = tape.ask(tape.opening())
        call = tape.ask(tape.grown(first, 0))
        assert call.counted.kept == 0
        cold = tape.cold(call, "below_minimum")
        tape.note(
            cold if told else replace(cold, also=frozenset({"miss", "unknown", "warm"}), candidates=("below_minimum",))
        )
        yield tape.done(f"bedrock/profile_{name}", "§1, §2.3 Bedrock: Opus 4.7 4096, whatever its path is spelled like")


def _bedrock() -> Iterator[Transition]:
    for name, model in (
        ("append", "claude-opus-5"),
        ("system_changed", "claude-opus-5"),
        ("ttl_expired", "claude-opus-5"),
        ("below_minimum", "claude-opus-4-7"),
    ):
        tape = anthropic(model, stream=False)
        tape.spell = lambda n, body: _elsewhere(body, "bedrock-2023-05-31")  # noqa: ARG005 - the face of spellings
        tape.provider, tape.host = "anthropic_bedrock", "bedrock-runtime.us-east-1.amazonaws.com"
        tape.dialect.path = f"/model/anthropic.{model}/invoke"
        if name == "below_minimum":
            tape.rules.minimum = 4096  # type: ignore[attr-defined]
            first = tape.ask(tape.opening())
            call = tape.ask(tape.grown(first, 0))
            assert call.counted.kept == 0
            tape.note(tape.cold(call, "below_minimum"))
        else:
            body = tape.begin()
            if name == "system_changed":
                tape.dialect.set_system(body, tape.dialect.system(body) + " And never guess.")
            call = tape.ask(body, after=500.0 if name == "ttl_expired" else 20.0)
            tape.note(
                tape.warm(call, 3)
                if name == "append"
                else tape.missed(call, "ttl_expired")
                if name == "ttl_expired"
                else tape.broken(call, "system_changed", "/system/1")
            )
        yield tape.done(f"bedrock/{name}", "§1 Bedrock row: Opus 4.7 minimum 4096 there, 300 s, tools-system-messages")
