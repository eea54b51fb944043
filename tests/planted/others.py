"""Gemini, OpenRouter, Kimi, Qwen, xAI, Ollama: a few each, as far as the reference decides (§4, §5, §12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.planted.changes import Family, changed, volatile
from tests.planted.changes_params import Setting, settings
from tests.planted.chat_api import ChatApi
from tests.planted.dialects import JSON
from tests.planted.families import anthropic, gemini, gpt54_chat, kimi, ollama, openrouter, qwen_implicit, xai
from tests.planted.pieces import Counted
from tests.planted.rules import Marks
from tests.planted.shapes import ANY, LIKELY, SURE, UNSURE, Transition
from tests.planted.tape import Tape
from tests.planted.texts import prose

_FEW = (
    "system_grew",
    "tool_removed",
    "tool_description",
    "history_rewritten_first",
    "message_removed",
    "message_inserted",
)
"""What is left out where other providers show it often enough."""
_LAST = (
    "tool_reordered",
    "compaction_users_kept",
    "tool_schema_changed",
    "tool_key_order",
    "history_truncated",
    "tool_result_pruned",
)
KIMI: tuple[Setting, ...] = (
    Setting(
        "free_settings",
        None,
        {"temperature": 0.6, "reasoning_effort": "low"},
        {"temperature": 0.1, "top_p": 0.5, "max_tokens": 500, "reasoning_effort": "low"},
        "§4: temperature, top_p, max_tokens are free [M K1]",
    ),
)


def transitions() -> Iterator[Transition]:
    yield from changed("gemini", gemini, "model_changed", *_FEW, unsure=frozenset({"tool_reordered", "tool_key_order"}))
    yield from _gemini_zeros()
    yield from changed("openrouter", openrouter, *_FEW, *_LAST)
    yield from _openrouter_routes()
    yield from changed("kimi", kimi, *_FEW, *_LAST)
    yield from settings("kimi", kimi, KIMI)
    yield _gap("kimi", kimi, 700.0, SURE | LIKELY)
    yield from changed("qwen", qwen_implicit, *_FEW, *_LAST)
    yield from _explicit()
    yield from changed("xai", xai, *_FEW, *_LAST)
    yield from _xai()
    yield from changed("ollama", ollama, *_FEW, *_LAST)
    yield from volatile("ollama", ollama, "date")
    yield _unloaded()
    yield from _two_hosts()
    yield from _gone_back()
    for prefix, family in (("openrouter", openrouter), ("kimi", kimi), ("qwen", qwen_implicit), ("xai", xai)):
        yield _evicted(prefix, family)


def _evicted(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body)
    tape.note(tape.missed(call, "unexplained_miss", "routing_changed", confidence=SURE | LIKELY))
    return tape.done(f"{prefix}/unexplained_miss", "§12 C31: exp > 0 and no cause")


def _gap(prefix: str, family: Family, gap: float, confidence: frozenset[str]) -> Transition:
    tape = family()
    body = tape.begin()
    call = tape.ask(body, after=gap)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "ttl_expired", confidence=confidence))
    return tape.done(f"{prefix}/ttl_expired", "§1: 5m is the life of K3's entries; §12 C25")


def _gemini_zeros() -> Iterator[Transition]:
    """Nothing read once is no miss yet; twice in a row within three minutes is."""
    tape = gemini()
    body = tape.begin()
    tape.rules.forget()
    first = tape.ask(body)
    tape.note(replace(tape.warm(first, 3), expected_read=None, also=frozenset({"unknown"})))
    tape.rules.forget()
    again = tape.ask(tape.grown(first, 3), after=30.0)
    names = ("ttl_expired", "routing_changed")
    tape.note(tape.missed(again, "unexplained_miss", *names, confidence=SURE | LIKELY))
    yield tape.done("gemini/zero_twice", "§4: flag a miss only if 0 twice in a row within 3 min")


def _openrouter_routes() -> Iterator[Transition]:
    """Another provider behind the router; another session."""
    tape = openrouter()
    body = tape.opening()
    for turn in range(3):
        call = tape.ask(body, extra={"provider": "Northern"})
        tape.note(tape.cold(call) if turn == 0 else tape.warm(call, turn))
        body = tape.grown(call, turn)
    tape.rules.forget()
    call = tape.ask(body, extra={"provider": "Southern"})
    names = ("provider_switch", "model_changed")
    tape.note(tape.missed(call, "routing_changed", *names, also=frozenset({"break"})))
    yield tape.done("openrouter/routing_changed_provider", "§4 provider_switch; §12 C23 `provider` in response")
    tape = openrouter()
    body = tape.begin(3, tape.opening() | {"session_id": "talk-1"})
    call = tape.ask(body | {"session_id": "talk-2"})
    others = ("isolation_changed", "unexplained_miss")
    tape.note(
        tape.missed(call, "routing_changed", *others, confidence=SURE | LIKELY, also=frozenset({"cold", "break"}))
    )
    yield tape.done("openrouter/routing_changed_session", "§4: sticky by session_id; §12 C23")


def _gone_back() -> Iterator[Transition]:
    """A conversation goes back to its second answer and asks something else: nothing in the bytes says on purpose."""
    for prefix, family in (("anthropic", anthropic), ("gpt-5.4/chat", gpt54_chat)):
        tape = family()
        tape.begin(4)
        body = tape.grown(tape.calls[1], 1)
        dialect = tape.dialect
        dialect.messages(body)[-1] = dialect.user(prose("another way", 900))
        call = tape.ask(dialect.marked(body), turn=4, seed="another way")
        names = ("history_rewritten", "history_truncated", "message_removed", "compaction")
        told = tape.broken(call, None, None, *names, confidence=UNSURE, also=frozenset({"warm"}))
        tape.note(replace(told, also=told.also | {"unknown"}, parent=None, lost=None, expected_read=None))
        yield tape.done(
            f"{prefix}/gone_back", "DESIGN 2: a branch left on purpose is no break; no log says whether it is one"
        )


def _two_hosts() -> Iterator[Transition]:
    """One model at two hosts in turn: each keeps its own (§12 C29 region, organisation), and the one come back to still has it."""
    for name, ours in (("there_and_back", None), ("there_and_back_rewritten", "history_rewritten")):
        tape = qwen_implicit()
        here, there = tape.host, "dashscope.aliyuncs.com"
        body = tape.begin(2)
        at_home, tape.rules, tape.host = tape.rules, replace(tape.rules, kept=[]), there  # type: ignore[type-var]
        away = tape.ask(body, turn=2)
        tape.note(tape.missed(away, "isolation_changed", also=frozenset({"cold"})))
        body = tape.grown(away, 2)
        tape.rules, tape.host = at_home, here
        if ours:
            tape.dialect.set_text(tape.dialect.messages(body)[tape.dialect.at(0)], prose("another start", 1500))
        back = tape.ask(body, turn=3)
        assert ours or back.counted.read
        tape.note(tape.broken(back, ours, "/messages/1", parent=2) if ours else tape.warm(back, 2))
        last = tape.ask(tape.grown(back, 3))
        tape.note(tape.warm(last, 4))
        yield tape.done(f"qwen/{name}", "§12 C29 other region or organisation; §12: the best predecessor")
    tape = anthropic()
    tape.headers["x-api-key"] = "<cut:40:blue>"
    body = tape.begin(2)
    kept = tape.rules
    tape.rules, tape.headers = Marks(512), tape.headers | {"x-api-key": "<cut:40:green>"}
    away = tape.ask(body, turn=2)
    tape.note(tape.missed(away, "isolation_changed", "unexplained_miss", confidence=LIKELY, also=frozenset({"cold"})))
    tape.rules, tape.headers = kept, tape.headers | {"x-api-key": "<cut:40:blue>"}
    back = tape.ask(tape.grown(away, 2), turn=3)
    tape.note(tape.warm(back, 2))
    yield tape.done("anthropic/two_keys", "§2.3: isolation by organization and workspace, to which a key belongs")


def qwen_explicit() -> Tape:
    dialect = ChatApi(_qwen_usage, path="/compatible-mode/v1/chat/completions", marks=True)
    rules = Marks(1024, ready_at_end=True)
    return Tape("qwen", "dashscope-intl.aliyuncs.com", dialect, rules, "qwen3-coder-plus")


def _qwen_usage(counted: Counted) -> JSON:
    usage: JSON = {"prompt_tokens": counted.total, "completion_tokens": counted.out}
    usage["total_tokens"] = counted.total + counted.out
    written = {"cache_creation_input_tokens": counted.write}
    written_by_life = {"cache_creation": {"ephemeral_5m_input_tokens": counted.write}}
    usage["prompt_tokens_details"] = {"cached_tokens": counted.read} | written | written_by_life
    return usage


def _explicit() -> Iterator[Transition]:
    """``cache_control``: an entry exists once the reply has ended, for five minutes."""
    tape = qwen_explicit()
    body = tape.begin()
    call = tape.ask(body)
    tape.note(tape.warm(call, 3))
    yield tape.done("qwen/explicit_append", "§1: up to four markers, longest prefix")
    tape = qwen_explicit()
    body = tape.begin()
    call = tape.ask(body, after=800.0)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "ttl_expired"))
    yield tape.done("qwen/explicit_ttl_expired", "§1: 300 s; §12 C25")
    tape = qwen_explicit()
    first = tape.ask(tape.opening(), wait=1.0, takes=40.0)
    tape.note(tape.cold(first))
    body = tape.opening()
    body["messages"].append(tape.dialect.user(prose("twin", 300)))
    call = tape.ask(tape.dialect.marked(body), after=15.0)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "concurrency_not_ready"))
    yield tape.done("qwen/explicit_not_ready", "§1: created after the response; §12 C26: not finished")
    tape = qwen_explicit()
    body = tape.begin()
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            part.pop("cache_control", None)
    call = tape.ask(body)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "breakpoint_missing"))
    yield tape.done("qwen/explicit_breakpoint_missing", "§1: exclusive with implicit; §12 C21: no marker")


def _xai() -> Iterator[Transition]:
    tape = xai()
    body = tape.begin()
    call = tape.ask(body, headers={"x-grok-conv-id": "conv-0002"})
    assert call.counted.read == 0
    others = ("isolation_changed", "unexplained_miss")
    tape.note(
        tape.missed(call, "routing_changed", *others, confidence=SURE | LIKELY, also=frozenset({"cold", "break"}))
    )
    yield tape.done("xai/routing_changed", "§4: x-grok-conv-id pins the server; §12 C23 conv-id")
    tape = xai()
    tape.thinking = True
    body = tape.begin()
    del body["messages"][2]["reasoning_content"]
    call = tape.ask(body)
    tape.note(tape.broken(call, "reasoning_stripped_client", "/messages/2"))
    yield tape.done("xai/reasoning_stripped_client", "§4: omitting reasoning_content is the top cause of misses; C17")


def _unloaded() -> Transition:
    tape = ollama()
    body = tape.begin()
    call = tape.ask(body, after=1200.0)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "engine_limit", "ttl_expired", "unexplained_miss", confidence=ANY))
    return tape.done("ollama/engine_limit_unloaded", "§1, §5: unload after 5 min; §12 C30 gap > keep_alive")
