"""The corpus of planted cache transitions is what it says it is; what a judge makes of it is asked elsewhere."""

from __future__ import annotations

import ast
import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from tests.planted import APPENDS, TRANSITIONS, Expected, Planted, Transition, engines, write
from tests.planted.appends import appends

ALL = (*TRANSITIONS, *APPENDS)
CAUSES = {
    *("first_call_cold", "model_changed", "system_changed", "volatile_content", "tool_added", "tool_removed"),
    *("tool_reordered", "tool_schema_changed", "tool_key_order", "json_serialisation_drift", "history_rewritten"),
    *("message_inserted", "message_removed", "history_truncated", "compaction", "tool_result_pruned", "image_stripped"),
    *("media_changed", "reasoning_stripped_client", "reasoning_stripped_server", "assistant_echo_mismatch"),
    *("breakpoint_missing", "breakpoint_moved", "lookback_exceeded", "routing_changed", "below_minimum", "ttl_expired"),
    *("concurrency_not_ready", "server_context_edit", "boundary_not_preserved", "isolation_changed", "engine_limit"),
    *("unexplained_miss", "param_changed:tool_choice", "param_changed:thinking", "param_changed:effort"),
    *("param_changed:disable_parallel_tool_use", "param_changed:verbosity", "param_changed:format"),
    *("param_changed:parallel_tool_calls", "param_changed:betas", "param_changed:service_tier"),
    *("param_changed:web_search", "param_changed:images", "param_changed:context_management"),
}
"""§12 of the facts, C01 to C31 but C20."""
SERVER_SIDE = {"reasoning_stripped_server", "server_context_edit", "param_changed:images"}
"""The body only grew; what the model is given did not."""
CONTRADICTORY = {"read_contradicts_bytes", "counts_too_much"}


def body(exchange: Planted) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(exchange.request)
    return found


def reply_objects(exchange: Planted) -> list[dict[str, Any]]:
    """The reply's objects, of a stream one an event."""
    if exchange.response.startswith(b"{"):
        return [json.loads(exchange.response)]
    lines = [line[6:] for line in exchange.response.splitlines() if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line != b"[DONE]"]


def usage_of(exchange: Planted) -> dict[str, Any]:
    """The usage of a reply as its provider spells it, timings beside it."""
    usage: dict[str, Any] = {}
    for each in reply_objects(exchange):
        inner = each.get("message") or each.get("response") or each
        usage |= inner.get("usage") or {}
        usage |= inner.get("usageMetadata") or {}
        usage |= each.get("usage") or {}
        usage |= each.get("timings") or {}
    return usage


def tokens(exchange: Planted) -> tuple[int, int, int]:
    """Prompt, read, written."""
    usage = usage_of(exchange)
    if "cache_creation_input_tokens" in usage:
        read, write = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        return usage["input_tokens"] + read + write, read, write
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    total = usage.get("prompt_tokens", usage.get("input_tokens", usage.get("promptTokenCount")))
    assert isinstance(total, int)
    write = details.get("cache_write_tokens", details.get("cache_creation_input_tokens", 0))
    return total, details.get("cached_tokens", usage.get("cachedContentTokenCount", 0)), write


def at(value: Any, path: str) -> Any:
    """What a JSON pointer leads to, ``None`` where it leads nowhere."""
    for step in path.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def ids(transitions: tuple[Transition, ...]) -> list[str]:
    return [t.name for t in transitions]


def test_there_are_enough_and_none_twice() -> None:
    names = Counter(t.name for t in ALL)
    assert not [name for name, times in names.items() if times > 1]
    assert len(TRANSITIONS) >= 80
    assert sum(e.verdict == "warm" for t in APPENDS for e in t.expect) >= 200


def test_every_cause_that_one_tap_can_show_is_there() -> None:
    named = set(chain.from_iterable(e.candidates for t in TRANSITIONS for e in t.expect))
    assert named >= CAUSES, CAUSES - named


@pytest.mark.parametrize(
    ("provider", "causes"),
    [
        ("anthropic", 38),
        ("openai", 28),
        ("deepseek", 20),
        ("llama_cpp", 16),
        ("vllm", 16),
        *((name, 5) for name in ("gemini", "openrouter", "kimi", "qwen", "xai", "ollama", "unknown")),
        *((name, 3) for name in ("anthropic_vertex", "anthropic_bedrock")),
    ],
)
def test_every_provider_has_its_share(provider: str, causes: int) -> None:
    found = {e.cause for t in TRANSITIONS if t.provider == provider for e in t.expect}
    assert len(found) >= causes, sorted(map(str, found))


def test_appends_have_every_form() -> None:
    names = " ".join(t.name for t in APPENDS)
    for form in (
        "moving_marks",
        "string_or_blocks",
        "escapes",
        "whitespace",
        "interleaved",
        "equal",
        "backwards",
        "1h",
    ):
        assert form in names
    expected = [e for t in APPENDS for e in t.expect]
    assert {e.verdict for e in expected} == {"cold", "warm"}


@pytest.mark.parametrize("transition", ALL, ids=ids(ALL))
def test_transition(transition: Transition) -> None:
    assert transition.stands_on.startswith(("§", "DESIGN"))
    assert [e.n for e in transition.exchanges] == list(range(1, len(transition.exchanges) + 1))
    for exchange in transition.exchanges:
        assert body(exchange)
        assert reply_objects(exchange)
        assert exchange.headers["host"]
    for expected in transition.expect:
        check_expectation(transition, expected)
        check_path(transition, expected)
        check_usage(transition, expected)


def check_expectation(transition: Transition, expected: Expected) -> None:
    assert expected.verdict in {"cold", "warm", "break", "miss", "unknown"}
    assert expected.confidence
    assert 1 <= expected.n <= len(transition.exchanges)
    assert expected.parent is None or 1 <= expected.parent < expected.n
    if expected.verdict == "warm":
        assert expected.cause is None
        assert not expected.candidates
        assert expected.lost is None
    if expected.cause:
        assert expected.candidates[0] == expected.cause
    if expected.verdict in {"break", "miss"} and expected.cause:
        assert expected.parent


def check_path(transition: Transition, expected: Expected) -> None:
    """Where a break is said to lie the request differs from its parent's, and lies before where the parent ended."""
    if expected.path is None or expected.verdict != "break":
        return
    assert expected.parent is not None
    mine, before = body(transition.exchanges[expected.n - 1]), body(transition.exchanges[expected.parent - 1])
    assert at(before, expected.path) is not None
    same = json.dumps(at(mine, expected.path)) == json.dumps(at(before, expected.path))
    assert same is (expected.cause in SERVER_SIDE)


def check_usage(transition: Transition, expected: Expected) -> None:
    exchange = transition.exchanges[expected.n - 1]
    total, read, write = tokens(exchange)
    contradictory = transition.name.rpartition("/")[2] in CONTRADICTORY
    assert total > 0
    if contradictory:
        return
    assert read + write <= total
    if expected.verdict == "miss" and expected.parent is not None and read:
        before, was_read, was_written = tokens(transition.exchanges[expected.parent - 1])
        assert read < (was_read + was_written if was_written else before)
    if isinstance(expected.expected_read, int):
        assert read == expected.expected_read
    elif expected.expected_read is not None:
        low, high = expected.expected_read
        assert low <= read <= high
    if expected.lost is not None and expected.parent is not None:
        _, was_read, was_written = tokens(transition.exchanges[expected.parent - 1])
        assert expected.lost == max(0, was_read + was_written - read)


def plain(value: Any) -> Any:
    """Without cache marks, a text alone as a string: what is no change of a prompt (§6)."""
    if isinstance(value, list):
        values = [plain(v) for v in value]
        first = values[0] if len(values) == 1 else None
        is_text = isinstance(first, dict) and first.keys() == {"type", "text"}
        return first["text"] if is_text and first is not None else values
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in {"cache_control", "prompt_cache_breakpoint"}}
    return value


def extends(mine: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether a body's head is another's, and its messages begin with the other's, by value."""
    heads = [
        {k: plain(b.get(k)) for k in ("tools", "system", "instructions", "systemInstruction")} for b in (mine, before)
    ]
    name = next(k for k in ("messages", "input", "contents") if k in mine)
    rest = [[plain(m) for m in b[name]] for b in (mine, before)]
    return heads[0] == heads[1] and rest[0][: len(rest[1])] == rest[1]


@pytest.mark.parametrize("transitions", [APPENDS, TRANSITIONS], ids=["appends", "transitions"])
def test_what_is_intact_extends_its_parent(transitions: tuple[Transition, ...]) -> None:
    """Of the transitions those that miss: their bytes must not show why."""
    seen = 0
    for transition in transitions:
        for expected in transition.expect:
            wanted = expected.verdict == "miss" and expected.cause != "boundary_not_preserved"
            if expected.parent is None or not (wanted or transitions is APPENDS):
                continue
            mine, before = (body(transition.exchanges[n - 1]) for n in (expected.n, expected.parent))
            assert extends(mine, before), transition.name
            seen += 1
    assert seen >= (200 if transitions is APPENDS else 50)


@pytest.mark.parametrize("provider", ["deepseek", "llama_cpp"])
def test_what_is_counted_twice_adds_up(provider: str) -> None:
    seen = 0
    for exchange in (e for t in ALL if t.provider == provider for e in t.exchanges):
        usage = usage_of(exchange)
        total, read, _ = tokens(exchange)
        if provider == "deepseek":
            assert (usage["prompt_cache_hit_tokens"], usage["prompt_cache_miss_tokens"]) == (read, total - read)
            assert read % 64 == 0
        else:
            assert (usage["cache_n"], usage["prompt_n"]) == (read, total - read)
        seen += 1
    assert seen > 50


def test_reads_have_their_providers_steps() -> None:
    for model, step in (("gpt-5.4", 128), ("gpt-5.5", 128), ("local-coder-30b", 16)):
        reads = [
            tokens(e)[1]
            for t in ALL
            if t.provider in {"openai", "vllm"}
            for e in t.exchanges
            if body(e)["model"] == model
        ]
        assert len(reads) > 20
        assert any(reads)
        assert not [read for read in reads if read % step]


def test_it_is_written_as_a_raw_folder(tmp_path: Path) -> None:
    transition = TRANSITIONS[0]
    folder = write(tmp_path / "one", transition)
    lines = [json.loads(line) for line in (folder / "wire" / "index.jsonl").read_text().splitlines()]
    assert [line["n"] for line in lines] == [e.n for e in transition.exchanges]
    for line, exchange in zip(lines, transition.exchanges, strict=True):
        assert {"n", "t", "path", "headers", "status", "t_first", "t_end"} <= line.keys()
        assert (folder / "wire" / f"{exchange.n:04d}.req").read_bytes() == exchange.request
        assert (folder / "wire" / f"{exchange.n:04d}.res").read_bytes() == exchange.response


def test_it_is_the_same_every_time() -> None:
    assert tuple(appends()) == APPENDS
    again = {t.name: t for t in engines.transitions()}
    assert again == {t.name: t for t in TRANSITIONS if t.name in again}


def test_it_imports_nothing_of_the_program() -> None:
    """A corpus that asked the judge would agree with it in everything."""
    files = list(Path(engines.__file__).parent.glob("*.py"))
    assert len(files) > 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.split(".")[0] == "ctxscope"], file
