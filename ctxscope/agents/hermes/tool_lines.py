"""The line that Hermes puts in place of a tool's output, in the forms of 0.19 and 0.20 (read in both versions' compressors)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_CUT, _ELIDED = "...", "...[truncated]"
_COMMAND, _GOAL, _CODE, _QUESTION, _ARGUMENT = 80, 60, 60, 50, 40
"""Characters that a line keeps of an argument."""
_LONG_SKILL = 5000
"""Characters from which on a skill that is put away is named as one to load again (0.20)."""
_ANSWER = 199
"""Characters of a line that quotes an answer (0.20)."""
_NOT_ANSWERED = (
    *("The user did not provide a response", "[user did not respond"),
    *("[clarify prompt could not be delivered", "[oneshot mode:"),
)
"""How a reply of the tool that asks begins when nobody replied."""
_EXIT = re.compile(r'"exit_code"\s*:\s*(-?\d+)')
_TOTAL = re.compile(r'"total_count"\s*:\s*(\d+)')

Arguments = Mapping[str, Any]
Rest = Callable[[Arguments, str], str]


def line_of(tool: str, arguments: Any, output: str, *, old: bool) -> str:
    """The line for an output, of a tool that was called with ``arguments`` (as JSON); ``old``: by 0.19."""
    given = parsed(arguments)
    given = given if isinstance(given, dict) else {}
    if not old and tool == "skill_view":
        return f"[{tool}]{_skill(given, output)}"
    if not old and tool == "clarify":
        return _clarified(output)
    rest = _RESTS.get(tool)
    return f"[{tool}]{rest(given, output) if rest is not None else _other(given, output)}"


def parsed(text: Any) -> Any:
    """A text as the JSON it is; ``None`` for what is none, or nests too deep."""
    try:
        return json.loads(text) if isinstance(text, str) and text else None
    except (ValueError, RecursionError):
        return None


def _text(given: Arguments, name: str) -> str:
    value = given.get(name, "")
    return value if isinstance(value, str) else "" if value is None else str(value)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - len(_CUT)] + _CUT


def _lines(output: str) -> int:
    return output.count("\n") + 1 if output.strip() else 0


def _found(pattern: re.Pattern[str], output: str) -> str:
    match = pattern.search(output)
    return match[1] if match else "?"


def _sized(output: str) -> str:
    return f"({len(output):,} chars)"


def _result(output: str) -> str:
    return f"({len(output):,} chars result)"


def _other(given: Arguments, output: str) -> str:
    said = "".join(f" {name}={str(value)[:_ARGUMENT]}" for name, value in list(given.items())[:2])
    return f"{said} {_result(output)}"


def _written(given: Arguments, _: str) -> str:
    lines = _text(given, "content").count("\n") + 1 if given.get("content") else "?"
    return f" wrote to {given.get('path', '?')} ({lines} lines)"


def _searched(given: Arguments, output: str) -> str:
    where, what = given.get("path", "."), given.get("pattern", "?")
    return f" {given.get('target', 'content')} search for '{what}' in {where} -> {_found(_TOTAL, output)} matches"


def _browsed(given: Arguments, output: str) -> str:
    url, ref = given.get("url", ""), given.get("ref", "")
    return f"{f' {url}' if url else f' ref={ref}' if ref else ''} {_sized(output)}"


def _extracted(given: Arguments, output: str) -> str:
    urls = given.get("urls", [])
    urls = urls if isinstance(urls, list) else []
    first = urls[0] if urls else "?"
    if isinstance(first, dict):
        first = first.get("url") or first.get("href") or "?"
    more = f" (+{len(urls) - 1} more)" if len(urls) > 1 else ""
    return f" {first if isinstance(first, str) else '?'}{more} {_sized(output)}"


def _ran(given: Arguments, output: str) -> str:
    code = _text(given, "code")
    shown = code[:_CODE].replace("\n", " ") + (_CUT if len(code) > _CODE else "")
    return f" `{shown}` ({_lines(output)} lines output)"


def _skill(given: Arguments, output: str) -> str:
    name = given.get("name", "?")
    line = f" name={name} {_sized(output)}"
    if len(output) <= _LONG_SKILL:
        return line
    return f"{line} [SKILL_PRUNED: content lost in compression; reload with skill_view(name='{name}')]"


def _clarified(output: str) -> str:
    found = parsed(output)
    answer = found.get("user_response") if isinstance(found, dict) else None
    said = answer if isinstance(answer, list) else [answer]
    if not said or not all(isinstance(a, str) and a and not a.lstrip().startswith(_NOT_ANSWERED) for a in said):
        return f"[clarify]{_asked({}, output)}"
    quoted = json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    line = f"[clarify] user responded: {quoted}"
    return line if len(line) <= _ANSWER else line[: _ANSWER - len(_ELIDED)].rstrip() + _ELIDED


def _asked(_: Arguments, __: str) -> str:
    return " asked user a question"


def _named(given: Arguments, output: str) -> str:
    return f" name={given.get('name', '?')} {_sized(output)}"


_RESTS: Mapping[str, Rest] = {
    "terminal": lambda a, o: (
        f" ran `{_short(_text(a, 'command'), _COMMAND)}` -> exit {_found(_EXIT, o)}, {_lines(o)} lines output"
    ),
    "read_file": lambda a, o: f" read {a.get('path', '?')} from line {a.get('offset', 1)} {_sized(o)}",
    "write_file": _written,
    "search_files": _searched,
    "patch": lambda a, o: f" {a.get('mode', 'replace')} in {a.get('path', '?')} {_result(o)}",
    **{f"browser_{do}": _browsed for do in ("navigate", "click", "snapshot", "type", "scroll", "vision")},
    "web_search": lambda a, o: f" query='{a.get('query', '?')}' {_result(o)}",
    "web_extract": _extracted,
    "delegate_task": lambda a, o: f" '{_short(_text(a, 'goal'), _GOAL)}' {_result(o)}",
    "execute_code": _ran,
    **dict.fromkeys(("skill_view", "skills_list", "skill_manage"), _named),
    "vision_analyze": lambda a, o: f" '{_text(a, 'question')[:_QUESTION]}' {_sized(o)}",
    "memory": lambda a, _: f" {a.get('action', '?')} on {a.get('target', '?')}",
    "todo": lambda _, __: " updated task list",
    "clarify": _asked,
    "text_to_speech": lambda _, o: f" generated audio {_sized(o)}",
    "cronjob": lambda a, _: f" {a.get('action', '?')}",
    "process": lambda a, _: f" {a.get('action', '?')} session={a.get('session_id', '?')}",
}
"""By tool, what follows its name in brackets."""
