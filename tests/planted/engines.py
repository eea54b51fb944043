"""Local engines: llama.cpp's slots and vLLM's blocks (reference §5, §6, §12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.planted.changes import Family, changed, tool_added, volatile
from tests.planted.families import llama_cpp, vllm
from tests.planted.rules import Slots
from tests.planted.shapes import ANY, LIKELY, SURE, UNSURE, Transition
from tests.planted.texts import TOOLS, prose, system_text

_BOTH = (("llama_cpp", llama_cpp), ("vllm", vllm))


def transitions() -> Iterator[Transition]:
    for prefix, family in _BOTH:
        yield from changed(prefix, family)
        yield from volatile(prefix, family, "clock", "nonce", "token_counter")
        yield _first(prefix, family)
        yield _retry(prefix, family)
        yield _subagent(prefix, family)
        yield _reads_too_much(prefix, family)
        yield _idle(prefix, family)
    yield _evicted_by_side_call()
    yield _processed_anew()
    yield _side_call_fits()
    yield _other_model()
    yield _salt()
    yield _freed()
    yield from _silent()
    yield _parsed_arguments()


def _first(prefix: str, family: Family) -> Transition:
    tape = family()
    tape.note(tape.cold(tape.ask(tape.opening())))
    return tape.done(f"{prefix}/first_call_cold", "§12 C01: no earlier call")


def _retry(prefix: str, family: Family) -> Transition:
    """The whole prompt again: all of it but the last token, or block, is read."""
    tape = family()
    body = tape.begin()
    call = tape.ask(body)
    again = tape.ask(body, after=8.0, turn=3)
    assert again.counted.total > again.counted.read >= again.counted.total - 17
    tape.note(tape.warm(call, 3), tape.warm(again, 4))
    return tape.done(f"{prefix}/retry_equal_bytes", "§5: llama.cpp at most N-1; vLLM floor((N-1)/B)*B")


def _side_body(family: Family) -> dict[str, object]:
    tape = family()
    body = tape.dialect.opening(tape.model, prose("title rules", 700), (), prose("title wish", 500))
    del body["tools"]
    return body


def _subagent(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin(2)
    sub = tape.dialect.opening(tape.model, system_text(seed="subagent"), TOOLS[2:], prose("sub wish", 1500))
    side = tape.ask(sub, after=3.0, turn=1, seed="sub")
    main = tape.ask(body, after=9.0, turn=2)
    last = tape.ask(tape.grown(main, 2), turn=3)
    tape.note(replace(tape.cold(side), also=frozenset({"warm"})), tape.warm(main, 2), tape.warm(last, 4))
    return tape.done(f"{prefix}/subagent_between", "§12: search all earlier calls; §5: a slot, or blocks, for each")


def _reads_too_much(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin()
    tool_added(tape.dialect, body)
    whole = tape.calls[-1].counted.total // 16 * 16
    call = tape.ask(body, usage=lambda c: replace(c, read=whole))
    told = tape.broken(call, "tool_added", "/tools/2", confidence=LIKELY | UNSURE)
    tape.note(replace(told, expected_read=None, lost=0))
    return tape.done(f"{prefix}/read_contradicts_bytes", "§12: got > exp: lower confidence")


def _idle(prefix: str, family: Family) -> Transition:
    tape = family()
    body = tape.begin()
    call = tape.ask(body, after=20_000.0)
    tape.note(tape.warm(call, 3))
    return tape.done(f"{prefix}/idle_for_hours", "§1: no TTL: what is not evicted stays")


def _evicted_by_side_call() -> Transition:
    """One slot: the title's call takes it, and what it held is gone."""
    tape = llama_cpp(slots=1)
    body = tape.begin(2)
    side = tape.ask(_side_body(llama_cpp), after=2.0, turn=1, seed="title")
    main = tape.ask(body, after=4.0, turn=2)
    assert main.counted.read < 64
    tape.note(replace(tape.cold(side), also=frozenset({"warm"})), tape.missed(main, "engine_limit", parent=2))
    after = tape.ask(tape.grown(main, 2), turn=3)
    tape.note(tape.warm(after, 4))
    return tape.done("llama_cpp/engine_limit_slot_stolen", "§5: parallel calls steal slots; §12 C30 slot stolen")


def _processed_anew() -> Transition:
    """A model with sliding windows and no checkpoint: each prompt is processed from its start."""
    tape = llama_cpp()
    body = tape.begin(2)
    assert isinstance(tape.rules, Slots)
    tape.rules.whole = True
    call = tape.ask(body, turn=2)
    assert call.counted.read == 0
    tape.note(tape.missed(call, "engine_limit", "unexplained_miss", confidence=SURE | LIKELY))
    return tape.done("llama_cpp/engine_limit_reprocessed", "§5: forcing full prompt re-processing; §12 C30")


def _side_call_fits() -> Transition:
    tape = llama_cpp(slots=2)
    body = tape.begin(2)
    side = tape.ask(_side_body(llama_cpp), after=2.0, turn=1, seed="title")
    main = tape.ask(body, after=4.0, turn=2)
    tape.note(replace(tape.cold(side), also=frozenset({"warm"})), tape.warm(main, 2))
    return tape.done("llama_cpp/side_call_has_its_slot", "§5: slot by likeness, else the least recently used")


def _other_model() -> Transition:
    """A LoRA is chosen by its name in ``model``."""
    tape = vllm()
    body = tape.begin()
    call = tape.ask(body | {"model": "local-coder-30b-tuned"})
    tape.note(tape.broken(call, "model_changed", None))
    return tape.done("vllm/lora_changed", "§1, §5: block hash holds the LoRA id; §12 C02 model id differs")


def _salt() -> Transition:
    tape = vllm()
    body = tape.begin(3, tape.opening() | {"cache_salt": "crew-a"})
    call = tape.ask(body | {"cache_salt": "crew-b"})
    assert call.counted.read == 0
    tape.note(tape.missed(call, "isolation_changed", also=frozenset({"cold", "break"})))
    return tape.done("vllm/isolation_changed", "§6: cache_salt is a full miss; §12 C29")


def _freed() -> Transition:
    tape = vllm()
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body)
    names = ("engine_limit", "routing_changed")
    tape.note(tape.missed(call, "unexplained_miss", *names, confidence=SURE | LIKELY))
    return tape.done("vllm/unexplained_miss", "§5: LRU, replicas each have a cache; §12 C31")


def _silent() -> Iterator[Transition]:
    for name in ("append", "tool_added"):
        tape = vllm(silent=True)
        body = tape.begin()
        if name == "tool_added":
            tool_added(tape.dialect, body)
        call = tape.ask(body)
        unsure = UNSURE | frozenset({"consistent"})
        if name == "append":
            tape.note(tape.warm(call, 3))
        else:
            tape.note(tape.broken(call, "tool_added", "/tools/2", confidence=unsure))
        yield tape.done(
            f"vllm/not_reported_{name}", "§5: cached_tokens only with a flag; DESIGN 2: warm, or not reported"
        )


def _parsed_arguments() -> Transition:
    """An old call's arguments, spelt in another way: the template sees them parsed."""
    tape = vllm()
    body = tape.begin()
    function = body["messages"][2]["tool_calls"][0]["function"]
    function["arguments"] = function["arguments"].replace(": ", ":").replace("é", "\\u00e9")
    call = tape.ask(body)
    tape.note(replace(tape.warm(call, 3), confidence=ANY))
    return tape.done("vllm/arguments_respelt", "§6: parsed to dict: whitespace and escapes inside arguments are benign")
