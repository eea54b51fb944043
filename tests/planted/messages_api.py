"""Bodies and replies of the Anthropic Messages API (reference §2, §7)."""

from __future__ import annotations

import copy
from typing import Any

from tests.planted.dialects import JSON, Answer, Dialect, dumps, sse
from tests.planted.pieces import Counted, Piece, Prompt, plain, prompt
from tests.planted.texts import envelope, schema

EPHEMERAL = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
STRIPPERS = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-1", "claude-sonnet-4-0")
"""Models that show only the last turn's thinking (§8)."""
_SYSTEM_CUT = "\n"


def _life(block: Any) -> int | None:
    mark = block.get("cache_control") if isinstance(block, dict) else None
    return None if not mark else 3600 if mark.get("ttl") == "1h" else 300


def _blocks(content: Any) -> list[JSON]:
    """A string is one text block (§2.1)."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _bare(block: JSON) -> JSON:
    return {key: value for key, value in block.items() if key not in ("cache_control", "signature")}


def _has_images(body: JSON) -> bool:
    return any(b.get("type") == "image" for m in body["messages"] for b in _blocks(m["content"]) if isinstance(b, dict))


class MessagesApi(Dialect):
    """``thinks`` gives answers thinking blocks; ``life`` is what the marks ask for."""

    path = "/v1/messages"

    def __init__(self, stream: bool = True, head_mark: JSON = EPHEMERAL, tail_mark: JSON | None = EPHEMERAL) -> None:
        self.stream = stream
        self.head_mark = head_mark
        self.tail_mark = tail_mark

    def opening(self, model: str, system: str, tools: tuple[str, ...], words: str) -> JSON:
        head, _, rest = system.partition(_SYSTEM_CUT)
        blocks: list[JSON] = [{"type": "text", "text": head}, {"type": "text", "text": rest}]
        blocks[-1]["cache_control"] = dict(self.head_mark)
        body: JSON = {
            "model": model,
            "max_tokens": 8192,
            "system": blocks,
            "tools": [self.tool(name) for name in tools],
            "messages": [self.user(words)],
            "stream": self.stream,
        }
        return self.marked(body)

    def marked(self, body: JSON) -> JSON:
        """The last block of the last message, and none before it, carries the moving mark."""
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                block.pop("cache_control", None)
        last = body["messages"][-1]["content"]
        if self.tail_mark and isinstance(last, list):
            last[-1]["cache_control"] = dict(self.tail_mark)
        return body

    def said(self, given: Answer) -> list[JSON]:
        blocks: list[JSON] = []
        if given.thinking:
            blocks.append({"type": "thinking", "thinking": given.thinking, "signature": envelope(given.thinking)})
        blocks.append({"type": "text", "text": given.text})
        if given.call:
            blocks.append({"type": "tool_use", "id": given.call[0], "name": given.call[1], "input": given.call[2]})
        return [{"role": "assistant", "content": blocks}]

    def told(self, given: Answer, words: str) -> list[JSON]:
        if not given.call:
            return [self.user(words)]
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": given.call[0], "content": words}]}]

    def prompt(self, body: JSON, headers: dict[str, str]) -> Prompt:
        pieces = [Piece(plain(_bare(tool)), 0, _life(tool)) for tool in body.get("tools", ())]
        pieces += [Piece(plain(_bare(b)), 1, _life(b)) for b in _blocks(body.get("system", []))]
        for index, message in enumerate(body["messages"]):
            for block in self._shown(body, index):
                text = plain([message["role"], _bare(block)])
                if block.get("type") == "image":  # 10 x 10 patches (§11), of bytes that stand for the picture
                    text = plain([message["role"], block["source"]["data"]])[-400:].rjust(400, b"#")
                pieces.append(Piece(text, 2, _life(block)))
        if "cache_control" in body and pieces:
            last = pieces[-1]
            pieces[-1] = Piece(last.text, last.level, _life(body))
        return prompt(pieces, self._settings(body, headers), headers.get("anthropic-workspace-id", ""))

    def _shown(self, body: JSON, index: int) -> list[JSON]:
        """Blocks of a message that the model is given: old thinking is stripped by some (§8)."""
        blocks = _blocks(body["messages"][index]["content"])
        turn = max(
            (i for i, m in enumerate(body["messages"]) if m["role"] == "user" and _speaks(_blocks(m["content"]))),
            default=0,
        )
        if str(body["model"]).startswith(STRIPPERS) and index < turn:
            return [b for b in blocks if b.get("type") != "thinking"]
        return blocks

    def _settings(self, body: JSON, headers: dict[str, str]) -> tuple[str, str, str]:
        """§2.2, by the level from which a setting counts."""
        web = sorted(t["type"] for t in body.get("tools", ()) if str(t.get("type", "")).startswith("web_"))
        cited = [b.get("citations") for m in body["messages"] for b in _blocks(m["content"]) if "citations" in b]
        choice = body.get("tool_choice")
        effort = (body.get("output_config") or {}).get("effort", "high")
        thinking = {k: v for k, v in (body.get("thinking") or {}).items() if k != "display"}
        rest = [choice, thinking, effort, _has_images(body), body.get("context_management"), body.get("output_format")]
        rest.append(headers.get("anthropic-beta", ""))
        return str(body["model"]), str([body.get("speed", "standard"), web, cited]), str(rest)

    def generated(self, given: Answer) -> bytes:
        return b"".join(plain(["assistant", _bare(b)]) for m in self.said(given) for b in m["content"])

    def usage(self, counted: Counted) -> JSON:
        """The input side (§7)."""
        return {
            "input_tokens": counted.total - counted.read - counted.write,
            "cache_creation_input_tokens": counted.write,
            "cache_read_input_tokens": counted.read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": counted.write - counted.long,
                "ephemeral_1h_input_tokens": counted.long,
            },
            "service_tier": "standard",
        }

    def reply(self, body: JSON, counted: Counted, given: Answer, number: str, extra: JSON) -> bytes:
        usage = self.usage(counted) if not counted.silent else {"input_tokens": counted.total}
        blocks = [] if body.get("max_tokens") == 0 else self.said(given)[0]["content"]
        stop = "max_tokens" if body.get("max_tokens") == 0 else "tool_use" if given.call else "end_turn"
        message: JSON = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"]}
        start = {k: v for k, v in extra.items() if k != "context_management"}
        late = {k: v for k, v in extra.items() if k == "context_management"}
        if not body.get("stream"):
            whole = {"content": blocks, "stop_reason": stop, "stop_sequence": None}
            return dumps(message | whole | {"usage": usage | {"output_tokens": counted.out}} | extra)
        opened = message | {"content": [], "stop_reason": None, "stop_sequence": None} | start
        events: list[tuple[str | None, JSON | str]] = [
            (
                "message_start",
                {"type": "message_start", "message": opened | {"usage": usage | {"output_tokens": 1}}},
            )
        ]
        for index, block in enumerate(blocks):
            events += _streamed(index, block)
        ended: JSON = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}}
        kept = {k: v for k, v in usage.items() if k.endswith("input_tokens")}
        events.append(("message_delta", ended | {"usage": kept | {"output_tokens": counted.out}} | late))
        events.append(("message_stop", {"type": "message_stop"}))
        return sse(events)

    def tool(self, name: str) -> JSON:
        return {"name": name, "description": f"Works on {name}.", "input_schema": copy.deepcopy(schema(name))}

    def schema_of(self, tool: JSON) -> JSON:
        found: JSON = tool["input_schema"]
        return found

    def system(self, body: JSON) -> str:
        return _SYSTEM_CUT.join(block["text"] for block in body["system"])

    def set_system(self, body: JSON, text: str) -> None:
        for block, part in zip(body["system"], text.split(_SYSTEM_CUT, 1), strict=True):
            block["text"] = part

    system_path = "/system/1"
    """Of what stands behind the first line break of the text."""

    def user(self, text: str) -> JSON:
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    def assistant(self, text: str) -> JSON:
        return {"role": "assistant", "content": [{"type": "text", "text": text}]}

    def set_text(self, message: JSON, text: str) -> None:
        block = next(b for b in message["content"] if b["type"] in ("text", "tool_result"))
        block["content" if block["type"] == "tool_result" else "text"] = text


def _speaks(blocks: list[JSON]) -> bool:
    return any(block.get("type") != "tool_result" for block in blocks)


def _streamed(index: int, block: JSON) -> list[tuple[str | None, JSON | str]]:
    """The events of one block."""
    kind = block["type"]
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(kind)
    started = {"type": kind} | (empty if empty is not None else {k: v for k, v in block.items() if k != "input"})
    if kind == "tool_use":
        started["input"] = {}
    deltas: list[JSON] = {
        "text": [{"type": "text_delta", "text": block.get("text")}],
        "thinking": [
            {"type": "thinking_delta", "thinking": block.get("thinking")},
            {"type": "signature_delta", "signature": block.get("signature")},
        ],
        "tool_use": [{"type": "input_json_delta", "partial_json": plain(block.get("input")).decode()}],
    }.get(kind, [])
    return [
        ("content_block_start", {"type": "content_block_start", "index": index, "content_block": started}),
        *(("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas),
        ("content_block_stop", {"type": "content_block_stop", "index": index}),
    ]
