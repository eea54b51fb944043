"""LiteLLM callbacks: what a custom logger was called with, a JSON object a line.

Two things in it can be read (docs.litellm.ai, logging specification; ``complete_input_dict`` compared with recorded
bodies of LiteLLM 1.110): ``additional_args.complete_input_dict``, the dictionary handed to the provider's client before
the call, and ``standard_logging_object``, LiteLLM's own form of the call, written after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from ctxscope.capture.importers.http_parts import decoded, headers, moment, origin, spelled, split_url
from ctxscope.capture.importers.imported import Answer, Capture, Damage, Ending, Imported, UnfitError, item
from ctxscope.capture.importers.json_lines import Line, first_objects, objects
from ctxscope.capture.importers.sdk_body import body_of, endpoint
from ctxscope.wire.json_text import loads

title = "LiteLLM callbacks"
notes = (
    "LiteLLM keeps the dictionary it hands to the provider's client: spelling and, for some routes, keys added later are left out.",
    "A call of which only LiteLLM's own form is kept (standard_logging_object) is not what was sent.",
    "A call of which LiteLLM tells no time bears that of the file, in the order of its lines.",
    "LiteLLM tells whether a call failed but not every status: 200 stands for success, 500 for a failure without a code.",
)

_MARKS = frozenset({"complete_input_dict", "standard_logging_object", "litellm_call_id", "litellm_params"})
_OK, _FAILED = 200, 500


def claims(path: Path, head: bytes) -> float:
    """See ``Importer``."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return 0.0
    return 0.9 if any(_is_callback(value) for value in first_objects(path)) else 0.0


def _is_callback(value: Mapping[str, Any]) -> bool:
    arguments = value.get("additional_args")
    return bool(_MARKS & value.keys()) or (isinstance(arguments, dict) and "complete_input_dict" in arguments)


def read(path: Path) -> Capture:
    """See ``Importer``. A callback before a call and the one after it are one exchange, by ``litellm_call_id``."""
    damage = Damage(path, "line", "a callback with complete_input_dict or standard_logging_object")
    written = path.stat().st_mtime
    calls = _Calls(written)
    for line in objects(path, damage):
        try:
            exchange = _exchange(line.value, written)
        except ValueError as error:
            damage.add(line.number, str(error))
        else:
            calls.take(line, exchange)
    return Capture(tuple(item(call.exchange, call.load, path) for call in calls.found), tuple(damage.sentences()))


@dataclass(slots=True)
class _Calls:
    """Exchanges, put together from the callbacks before and after them."""

    written: float
    found: list[_Call] = field(default_factory=list)
    _open: dict[str, list[int]] = field(default_factory=dict)
    """By id, the calls that have no answer yet; attempts at one call share its id."""

    def take(self, line: Line, exchange: Imported) -> None:
        """Add a callback: a call of its own, or the answer to an earlier one."""
        name = str(line.value.get("litellm_call_id") or "")
        digest = sha256(exchange.body).digest()
        waiting = self._open.setdefault(name, []) if name else []
        for at in waiting if exchange.answer or exchange.ending else ():
            if digest == self.found[at].digest or exchange.fidelity == "normalised":
                self.found[at] = self.found[at].answered_by(line, exchange)
                waiting.remove(at)
                return
        if exchange.answer is None:
            waiting.append(len(self.found))
        self.found.append(_Call(replace(exchange, body=b""), digest, (line.load,), self.written))


@dataclass(frozen=True, slots=True)
class _Call:
    """One exchange and what reads the lines that tell of it."""

    exchange: Imported
    """Without its body."""
    digest: bytes
    readers: tuple[Callable[[], dict[str, Any]], ...]
    written: float

    def answered_by(self, line: Line, later: Imported) -> _Call:
        """The same, with what a later line adds."""
        return replace(self, exchange=_joined(self.exchange, later), readers=(*self.readers, line.load))

    def load(self) -> Imported:
        """Read it again."""
        first, *later = (_exchange(read(), self.written) for read in self.readers)
        return _joined(first, later[0]) if later else first


def _joined(first: Imported, later: Imported) -> Imported:
    return replace(first, time=min(first.time, later.time), answer=later.answer, ending=later.ending)


# --- a callback ------------------------------------------------------------------------------------------------------


def _exchange(kwargs: Mapping[str, Any], written: float) -> Imported:
    """A callback as an exchange. Raises ``UnfitError``."""
    standard = kwargs.get("standard_logging_object")
    standard = standard if isinstance(standard, Mapping) else {}
    given = kwargs.get("additional_args")
    given = given if isinstance(given, Mapping) else kwargs
    handed = given.get("complete_input_dict")
    if isinstance(handed, str):  # some routes hand over what they have spelled already
        handed = _parsed(handed)
    if isinstance(handed, Mapping) and handed:
        body = body_of(handed)
    elif "messages" in standard:
        body = _own_form(standard)
    else:
        raise UnfitError("an object with neither")
    upstream, path = _address(given.get("api_base") or standard.get("api_base"))
    started = _first_time(standard.get("startTime"), kwargs.get("start_time"))
    time = started if started is not None else written
    return Imported(
        time=time,
        method="POST",
        target=endpoint(path, body),
        upstream=upstream,
        headers=decoded(headers(given.get("headers"))),
        body=spelled(body),
        fidelity="parsed" if handed else "normalised",
        answer=_answer(kwargs, standard, time),
        ending=_ending(kwargs, standard),
    )


def _own_form(standard: Mapping[str, Any]) -> dict[str, Any]:
    """LiteLLM's record of a call as the chat request it is in form."""
    settings = standard.get("model_parameters")
    body = {"model": standard.get("model"), "messages": standard["messages"]}
    return {**body, **settings} if isinstance(settings, Mapping) else body


def _address(base: Any) -> tuple[str, str]:
    """Origin and path of ``api_base``: a URL, or the parts of one (scheme, user, host, port, path, …) as httpx holds it."""
    match base:
        case [str() as scheme, _, str() as host, int() | None as port, str() as path, *_] if scheme and host:
            return origin(scheme, f"{host}:{port}" if port else host), path
        case str():
            try:
                return split_url(base)
            except ValueError:
                pass
    return "", ""


def _answer(kwargs: Mapping[str, Any], standard: Mapping[str, Any], started: float) -> Answer | None:
    first = _first_time(
        standard.get("completionStartTime"),
        kwargs.get("completion_start_time"),
        standard.get("endTime"),
        kwargs.get("end_time"),
    )
    time = first if first is not None else started
    if standard.get("status") == "failure":
        told = standard.get("error_information")
        code = told.get("error_code") if isinstance(told, Mapping) else None
        status = int(code) if isinstance(code, int | str) and str(code).isdecimal() else _FAILED
        return Answer(time, status, body=spelled({"error": {"message": str(standard.get("error_str") or "")}}))
    response = standard.get("response")
    if not isinstance(response, Mapping | str) or not response:
        response = kwargs.get("original_response")
    if isinstance(response, str):
        response = _parsed(response)
    return Answer(time, _OK, body=spelled(response)) if isinstance(response, Mapping) and response else None


def _ending(kwargs: Mapping[str, Any], standard: Mapping[str, Any]) -> Ending | None:
    ended = _first_time(standard.get("endTime"), kwargs.get("end_time"))
    return None if ended is None else Ending(ended)


def _first_time(*values: Any) -> float | None:
    return next((found for found in map(moment, values) if found is not None), None)


def _parsed(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return None
