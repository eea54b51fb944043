"""Changes that break a prefix whoever the provider is, each made to the next call of an ordinary conversation.

Bodies are: user, answer with a call, its result, answer, user (so far the third), answer with a call, result, answer, user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.planted.dialects import JSON, Dialect
from tests.planted.shapes import ANY, SURE, Transition
from tests.planted.tape import Tape
from tests.planted.texts import BILLING, VOLATILE, prose, system_text

Family = Callable[[], Tape]


@dataclass(frozen=True, slots=True)
class Change:
    """``make`` changes a body in place and gives the path of what changed."""

    name: str
    cause: str
    make: Callable[[Dialect, JSON], str | None]
    stands_on: str
    others: tuple[str, ...] = ()
    calls: int = 3
    """Ordinary calls before it."""


def _system_changed(dialect: Dialect, body: JSON) -> str:
    words = dialect.system(body).split(" ")
    dialect.set_system(body, " ".join([*words[:-40], "From now on answer in rhymes only.", *words[-30:]]))
    return dialect.system_path


def _system_grew(dialect: Dialect, body: JSON) -> str:
    dialect.set_system(body, dialect.system(body) + "\n" + prose("more rules", 700))
    return dialect.system_path


def tool_added(dialect: Dialect, body: JSON) -> str:
    dialect.tools(body).insert(2, dialect.tool("depth_probe"))
    return dialect.tool_path(2)


def _tool_removed(dialect: Dialect, body: JSON) -> str:
    del dialect.tools(body)[2]
    return dialect.tool_path(2)


def _tool_reordered(dialect: Dialect, body: JSON) -> str:
    tools = dialect.tools(body)
    tools[1], tools[3] = tools[3], tools[1]
    return dialect.tool_path(1)


def _tool_schema(dialect: Dialect, body: JSON) -> str:
    dialect.schema_of(dialect.tools(body)[2])["properties"]["limit"]["description"] = "At most this many lines."
    return dialect.tool_path(2)


def _tool_description(dialect: Dialect, body: JSON) -> str:
    dialect.describe(dialect.tools(body)[1])["description"] = "Writes a chart, and never two at once."
    return dialect.tool_path(1)


def _tool_keys(dialect: Dialect, body: JSON) -> str:
    schema = dialect.schema_of(dialect.tools(body)[2])
    schema["properties"] = dict(reversed(schema["properties"].items()))
    return dialect.tool_path(2)


def _rewritten(dialect: Dialect, body: JSON) -> str:
    dialect.set_text(dialect.messages(body)[dialect.at(4)], prose("another wish", 1500))
    return dialect.message_path(4)


def _rewritten_first(dialect: Dialect, body: JSON) -> str:
    dialect.set_text(dialect.messages(body)[dialect.at(0)], prose("another start", 1300))
    return dialect.message_path(0)


def _inserted(dialect: Dialect, body: JSON) -> str:
    place = dialect.at(4)
    pair = [dialect.user(prose("between", 600)), dialect.assistant(prose("between reply", 500))]
    dialect.messages(body)[place:place] = pair
    return dialect.message_path(4)


def _removed(dialect: Dialect, body: JSON) -> str:
    del dialect.messages(body)[dialect.at(1) : dialect.at(3)]
    return dialect.message_path(1)


def _truncated(dialect: Dialect, body: JSON) -> str:
    del dialect.messages(body)[dialect.at(0) : dialect.at(4)]
    return dialect.message_path(0)


SUMMARY = f"This conversation goes on from an earlier one. Summary:\n{prose('summary', 900)}"


def _compacted(dialect: Dialect, body: JSON) -> str:
    """All but the last answer and the user's newest words is one summary now."""
    dialect.messages(body)[dialect.at(0) : -2] = [dialect.user(SUMMARY)]
    return dialect.message_path(0)


def _users_kept(dialect: Dialect, body: JSON) -> str:
    """Of what was said the user's own words stay, and one summary."""
    messages = dialect.messages(body)
    words = [messages[dialect.at(place)] for place in (0, 4, 8)]
    messages[dialect.at(0) :] = [*words, dialect.user(SUMMARY), messages[-1]]
    return dialect.message_path(1)


def _pruned(dialect: Dialect, body: JSON) -> str:
    dialect.set_text(dialect.messages(body)[dialect.at(2)], "[Old tool result cleared to save context]")
    return dialect.message_path(2)


def _model(dialect: Dialect, body: JSON) -> None:  # noqa: ARG001 - the face of all changes
    body["model"] = f"{body['model']}-20260901"


CHANGES: tuple[Change, ...] = (
    Change("model_changed", "model_changed", _model, "§12 C02: model id differs (alias to snapshot too)"),
    Change("system_changed", "system_changed", _system_changed, "§12 C03: first divergence in the system text"),
    Change("system_grew", "system_changed", _system_grew, "§12 C03: first divergence in the system text"),
    Change("tool_added", "tool_added", tool_added, "§12 C05: set of tool names differs"),
    Change("tool_removed", "tool_removed", _tool_removed, "§12 C05: set of tool names differs"),
    Change("tool_reordered", "tool_reordered", _tool_reordered, "§12 C06; §6 tool array order is visible everywhere"),
    Change("tool_schema_changed", "tool_schema_changed", _tool_schema, "§12 C07: same name, sorted JSON differs"),
    Change("tool_description", "tool_schema_changed", _tool_description, "§12 C07; §2.2, §3.1 tool descriptions"),
    Change("tool_key_order", "tool_key_order", _tool_keys, "§12 C08; §6 key order inside the JSON schema: v"),
    Change("history_rewritten", "history_rewritten", _rewritten, "§12 C11: a message at index i<last differs in place"),
    Change("history_rewritten_first", "history_rewritten", _rewritten_first, "§12 C11: message 0 differs in place"),
    Change("message_inserted", "message_inserted", _inserted, "§12 C12: LCS on messages shows an insertion only"),
    Change("message_removed", "message_removed", _removed, "§12 C13: middle messages gone", ("history_truncated",)),
    Change(
        "history_truncated", "history_truncated", _truncated, "§12 C13: leading messages gone", ("message_removed",)
    ),
    Change(
        "compaction",
        "compaction",
        _compacted,
        "§12 C14: token drop of half and more, and text not in the history",
        calls=4,
    ),
    Change(
        "compaction_users_kept",
        "compaction",
        _users_kept,
        "§12 C14: token drop of half and more, and text not in the history",
        calls=6,
    ),
    Change("tool_result_pruned", "tool_result_pruned", _pruned, "§12 C15: same call id, placeholder content"),
)


def changed(prefix: str, family: Family, *without: str, unsure: frozenset[str] = frozenset()) -> Iterator[Transition]:
    """Every change in one family but ``without``; of those in ``unsure`` the reference says "?" (any confidence)."""
    for change in CHANGES:
        if change.name in without:
            continue
        tape = family()
        body = tape.begin(change.calls)
        path = change.make(tape.dialect, body)
        call = tape.ask(body)
        confidence = ANY if tape.provider == "unknown" or change.name in unsure else SURE
        tape.note(tape.broken(call, change.cause, path, *change.others, confidence=confidence))
        yield tape.done(f"{prefix}/{change.name}", change.stands_on)


def summarized(prefix: str, family: Family) -> Transition:
    """Nothing but a summary and no word of what was said: its bytes alone do not tell it from another task."""
    tape = family()
    body = tape.begin(4)
    tape.dialect.messages(body)[tape.dialect.at(0) :] = [tape.dialect.user(SUMMARY)]
    call = tape.ask(tape.dialect.marked(body))
    told = tape.broken(call, None, None, "compaction", confidence=ANY, also=frozenset({"warm", "cold", "unknown"}))
    tape.note(replace(told, expected_read=None, lost=None, parent=None))
    return tape.done(f"{prefix}/summary_alone", "§12 C14 against DESIGN 2 (another task): the reference leaves it open")


def volatile(prefix: str, family: Family, *kinds: str) -> Iterator[Transition]:
    """A line of the system text that is another in the fourth call, by kind; all of them without ``kinds``."""
    for kind in kinds or tuple(VOLATILE):
        yield _with_line(prefix, family, kind, VOLATILE[kind])


def _with_line(prefix: str, family: Family, kind: str, lines: tuple[str, str]) -> Transition:
    tape = family()
    tape.system = system_text(lines[0])
    body = tape.begin()
    tape.dialect.set_system(body, system_text(lines[1]))
    call = tape.ask(body)
    tape.note(tape.broken(call, "volatile_content", tape.dialect.system_path))
    return tape.done(f"{prefix}/volatile_{kind}", f"§12 C04: the differing span is a {kind.replace('_', ' ')}")


def billing_elsewhere(prefix: str, family: Family) -> Transition:
    """The checksum of a billing header kills the prefix of servers that are not Anthropic's own."""
    return _with_line(prefix, family, "billing_header", BILLING)
