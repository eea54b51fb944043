"""Spells what Hermes 0.20.1, or 0.19, writes and sends on chat_completions: ``state.db``, its side files, bodies, replies."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.samples.hermes_db import NEW, write_database
from tests.samples.recording import T0, Recording, compact, pieces

MODEL = "fern-mini"
BASE_URL = "http://127.0.0.1:8800/v1"
HEADERS = {
    "host": "127.0.0.1:8800",
    "accept": "application/json",
    "content-type": "application/json",
    "user-agent": "OpenAI/Python 2.24.0",
    "authorization": "<cut>",
}


@dataclass(frozen=True)
class Call:
    """A tool call, spelled twice by hand: as the model wrote its arguments and as Hermes re-sends them."""

    id: str
    name: str
    written: str
    resent: str

    def row(self) -> str:
        function = {"name": self.name, "arguments": self.written}
        item = "fc_" + self.id.removeprefix("call_")
        ids = {"id": self.id, "call_id": self.id, "response_item_id": item}
        return json.dumps([{**ids, "type": "function", "function": function}], ensure_ascii=False)


@dataclass(frozen=True)
class Thought:
    """Reasoning in words and the opaque bytes beside it, as an answer that is not streamed brings them."""

    text: str
    signature: str

    @property
    def details(self) -> list[dict[str, Any]]:
        form = "anthropic-claude-v1"
        return [{"type": "reasoning.text", "text": self.text, "signature": self.signature, "format": form, "index": 0}]

    def columns(self) -> dict[str, str]:
        return {"reasoning": self.text, "reasoning_content": self.text, "reasoning_details": json.dumps(self.details)}


# --- messages of a request -------------------------------------------------------------------------------------------


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str, thought: Thought | None = None) -> dict[str, Any]:
    details = {"reasoning_details": thought.details} if thought else {}
    return {"role": "assistant", "content": text, **details}


def calling(text: str, call: Call, thought: Thought | None = None) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.resent}
    sent = {"id": call.id, "type": "function", "function": function}
    return {**answer(text, thought), "tool_calls": [sent]}


def live_result(call: Call, text: str) -> dict[str, Any]:
    """A tool message of the process that ran the tool."""
    return {"role": "tool", "name": call.name, "content": text, "tool_call_id": call.id}


def loaded_result(call: Call, text: str) -> dict[str, Any]:
    """The same message in a process that read it from the database: the name is gone."""
    return {"role": "tool", "content": text, "tool_call_id": call.id}


# --- rows ------------------------------------------------------------------------------------------------------------


def user_row(at: float, text: str, **columns: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": T0 + at, **columns}


def answer_row(at: float, text: str, finish: str | None = "stop", **columns: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "timestamp": T0 + at, "finish_reason": finish, **columns}


def calling_row(at: float, text: str, call: Call, **columns: Any) -> dict[str, Any]:
    return answer_row(at, text, "tool_calls", tool_calls=call.row(), **columns)


def tool_row(at: float, call: Call, text: str, **columns: Any) -> dict[str, Any]:
    named = {"tool_call_id": call.id, "tool_name": call.name}
    return {"role": "tool", "content": text, "timestamp": T0 + at, **named, **columns}


# --- a session with its traffic --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spent:
    """Tokens a reply reports."""

    prompt: int
    cached: int
    output: int


@dataclass
class Session:
    """A row of ``sessions`` with its messages."""

    id: str
    started: float = 0.0
    parent: str | None = None
    ended: float | None = None
    end_reason: str | None = None
    title: str | None = None


@dataclass
class Home:
    """A Hermes home and the recording beside it, grown in the order things happened."""

    prompt: str
    tools: list[dict[str, Any]]
    context_length: int
    max_tokens: int
    compression: dict[str, Any]
    sessions: list[Session]
    rows: list[dict[str, Any]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    wire: Recording = field(default_factory=lambda: Recording("/v1/chat/completions", HEADERS))
    spent: list[tuple[str, Spent]] = field(default_factory=list)
    calls: int = 0
    schema: int = NEW
    streams: bool = True

    @property
    def session(self) -> Session:
        return self.sessions[-1]

    # the log

    def add(self, *rows: dict[str, Any]) -> None:
        """Inserts rows under the next ids, as a flush does."""
        for row in rows:
            fixed = {"id": len(self.rows) + 1, "session_id": self.session.id, "observed": 0, "active": 1}
            self.rows.append({**row, **fixed, "compacted": 0})

    def archive(self) -> None:
        """Marks every active row as compacted away; the new list is added after this."""
        for row in self.rows:
            if row["active"] and row["session_id"] == self.session.id:
                row["active"], row["compacted"] = 0, 1

    def note(self, at: float, logger: str, text: str, *, named: bool = True) -> None:
        """A line of agent.log."""
        stamp = datetime.fromtimestamp(T0 + at, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        who = f" [{self.session.id}]" if named else ""
        self.log.append(f"{stamp} INFO{who} {logger}: {text}")

    def process(self, at: float) -> None:
        """A new agent process."""
        self.calls = 0
        text = "OpenAI client created (agent_init, shared=True) thread=MainThread:1"
        self.note(at, "run_agent", f"{text} provider=custom base_url={BASE_URL} model={MODEL}", named=False)

    def turn(self, at: float, history: int, text: str) -> None:
        start = f"conversation turn: session={self.session.id} model={MODEL} provider=custom platform=cli"
        self.note(at, "agent.turn_context", f"{start} history={history} msg='{text}'")

    def turn_ended(self, at: float, calls: int, length: int) -> None:
        text = f"Turn ended: reason=text_response(finish_reason=stop) model={MODEL} api_calls={calls}/90"
        text += f" budget={calls}/90 tool_turns=1 last_msg_role=assistant response_len={length}"
        self.note(at, "agent.conversation_loop", f"{text} session={self.session.id}")

    # the wire

    def ask(
        self,
        at: float,
        messages: list[dict[str, Any]],
        spent: Spent,
        text: str,
        call: Call | None = None,
        thought: Thought | None = None,
    ) -> None:
        """A main call: its body, its reply, its line in agent.log."""
        body = {
            "messages": [{"role": "system", "content": self.prompt}, *messages],
            "model": MODEL,
            "max_tokens": self.max_tokens,
            **({"stream": True, "stream_options": {"include_usage": True}} if self.streams else {}),
            "tools": self.tools,
        }
        number = f"{len(self.wire.lines) + 1:04d}"
        reply = streamed(number, spent, text, call) if self.streams else whole(number, spent, text, call, thought)
        self.wire.add(at, compact(body), reply)
        self.calls += 1
        self.spent.append(("", spent))
        share = 100 * spent.cached // spent.prompt
        line = f"API call #{self.calls}: model={MODEL} provider=custom in={spent.prompt} out={spent.output}"
        line += f" total={spent.prompt + spent.output} latency=1.5s cache={spent.cached}/{spent.prompt} ({share}%)"
        self.note(at + 1.5, "agent.conversation_loop", line)

    def side(self, at: float, task: str, body: dict[str, Any], spent: Spent, text: str) -> None:
        """An auxiliary call, which leaves no row."""
        number = f"{len(self.wire.lines) + 1:04d}"
        reply = streamed(number, spent, text, None) if body.get("stream") else whole(number, spent, text)
        self.wire.add(at, compact(body), reply)
        self.spent.append((task, spent))
        line = f"Auxiliary {task}: using custom ({MODEL}) at {BASE_URL}/"
        self.note(at, "agent.auxiliary_client", line, named=False)

    def write(self, case: Path) -> None:
        home = case / "log/.hermes"
        (home / "sessions").mkdir(parents=True, exist_ok=True)
        (home / "logs").mkdir(exist_ok=True)
        self._write_database(home / "state.db")
        for session in self.sessions:
            text = json.dumps(self._snapshot(session), indent=2, ensure_ascii=False)
            (home / "sessions" / f"session_{session.id}.json").write_bytes(text.encode())
        (home / "logs/agent.log").write_bytes("".join(line + "\n" for line in self.log).encode())
        (home / "config.yaml").write_bytes(self._config().encode())
        self.wire.write(case / "wire")

    def _config(self) -> str:
        lines = ["model:", f"  default: {MODEL}", "  provider: custom", f"  base_url: {BASE_URL}", "  api_key: unused"]
        lines += ["  api_mode: chat_completions", f"  context_length: {self.context_length}"]
        lines += ["sessions:", "  write_json_snapshots: true", "display:", f"  streaming: {str(self.streams).lower()}"]
        lines.append("compression:")
        for key, value in {"enabled": True, "threshold": 0.5, **self.compression}.items():
            lines.append(f"  {key}: {str(value).lower() if isinstance(value, bool) else value}")
        return "\n".join(lines) + "\n"

    def _snapshot(self, session: Session) -> dict[str, Any]:
        """``session_<id>.json`` as of the session's first write: it is never shortened, so later it may be stale."""
        first = next(row for row in self.rows if row["session_id"] == session.id)
        message = {key: first[key] for key in ("role", "content", "timestamp")}
        return {
            "session_id": session.id,
            "model": MODEL,
            "base_url": BASE_URL,
            "platform": "cli",
            "session_start": _local(session.started),
            "last_updated": _local(session.started + 1.2),
            "system_prompt": self.prompt,
            "tools": self.tools,
            "message_count": 1,
            "messages": [{**message, "_db_persisted": True}],
        }

    def _write_database(self, path: Path) -> None:
        digest = hashlib.sha256(self.prompt.encode()).hexdigest()
        rows = [self._session_row(session, digest) for session in self.sessions]
        usage = [self._usage_row(task) for task in dict.fromkeys(task for task, _ in self.spent)]
        prompts = [{"hash": digest, "prompt": self.prompt}] if self.schema == NEW else []
        write_database(path, self.schema, prompts, rows, self.rows, usage)

    def _session_row(self, session: Session, digest: str) -> dict[str, Any]:
        mine = [row for row in self.rows if row["session_id"] == session.id and row["active"]]
        last = session is self.session
        settings = {"max_iterations": 90, "reasoning_config": None, "max_tokens": self.max_tokens}
        main = [spent for task, spent in self.spent if not task] if last else []
        return {
            "id": session.id,
            "source": "cli",
            "model": MODEL,
            "model_config": json.dumps(settings),
            **({"system_prompt_hash": digest} if self.schema == NEW else {"system_prompt": self.prompt}),
            "parent_session_id": session.parent,
            "started_at": T0 + session.started,
            "ended_at": None if session.ended is None else T0 + session.ended,
            "end_reason": session.end_reason,
            "message_count": len(mine),
            "tool_call_count": sum(1 for row in mine if row.get("tool_calls")),
            "input_tokens": sum(s.prompt - s.cached for s in main),
            "output_tokens": sum(s.output for s in main),
            "cache_read_tokens": sum(s.cached for s in main),
            "api_call_count": len(main),
            "cwd": "/home/ada/greenhouse",
            "billing_provider": "custom",
            "billing_base_url": BASE_URL,
            "title": session.title,
            **({"title_source": "llm" if session.title else None} if self.schema == NEW else {}),
        }

    def _usage_row(self, task: str) -> dict[str, Any]:
        mine = [spent for name, spent in self.spent if name == task]
        return {
            "session_id": self.session.id,
            "model": MODEL,
            "billing_provider": "custom",
            "billing_base_url": BASE_URL,
            "task": task,
            "api_call_count": len(mine),
            "input_tokens": sum(s.prompt - s.cached for s in mine),
            "output_tokens": sum(s.output for s in mine),
            "cache_read_tokens": sum(s.cached for s in mine),
        }


def _local(at: float) -> str:
    return datetime.fromtimestamp(T0 + at, UTC).replace(tzinfo=None).isoformat()


def _usage(spent: Spent) -> dict[str, Any]:
    return {
        "prompt_tokens": spent.prompt,
        "completion_tokens": spent.output,
        "total_tokens": spent.prompt + spent.output,
        "prompt_tokens_details": {"cached_tokens": spent.cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def streamed(number: str, spent: Spent, text: str, call: Call | None) -> str:
    """The SSE stream of an answer."""
    head = {"id": f"chatcmpl-fern{number}", "object": "chat.completion.chunk", "created": int(T0), "model": MODEL}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": p} for p in pieces(text))]
    if call:
        function = {"name": call.name, "arguments": call.written}
        deltas.append({"tool_calls": [{"index": 0, "id": call.id, "type": "function", "function": function}]})
    choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if call else "stop"}])
    chunks = [{**head, "choices": choice} for choice in choices]
    chunks.append({**head, "choices": [], "usage": _usage(spent)})
    return "".join(f"data: {compact(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def whole(number: str, spent: Spent, text: str, call: Call | None = None, thought: Thought | None = None) -> str:
    """The same as one JSON document."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if thought:
        said = {"reasoning_content": thought.text, "reasoning": thought.text}
        message |= {**said, "reasoning_details": thought.details}
    if call:
        function = {"name": call.name, "arguments": call.written}
        message["tool_calls"] = [{"id": call.id, "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    head = {"id": f"chatcmpl-fern{number}", "object": "chat.completion", "created": int(T0), "model": MODEL}
    return compact({**head, "choices": [choice], "usage": _usage(spent)})
