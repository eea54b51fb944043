"""Bodies and replies of OpenAI's Responses API (reference §3, §7)."""

from __future__ import annotations

import copy
from typing import Any

from tests.planted.dialects import JSON, Answer, Dialect, dumps, sse
from tests.planted.pieces import Counted, Piece, Prompt, plain, prompt
from tests.planted.texts import envelope, schema


class ResponsesApi(Dialect):
    """``key`` separates caches by ``prompt_cache_key`` (gpt-5.6+); ``old_thinking`` keeps reasoning of earlier turns."""

    path = "/v1/responses"
    list_name = "input"
    system_path = "/instructions"

    def __init__(self, *, stream: bool = True, writes: bool = True, old_thinking: bool = True, key: str = "") -> None:
        self.stream = stream
        self.writes = writes
        self.old_thinking = old_thinking
        self.key = key

    def opening(self, model: str, system: str, tools: tuple[str, ...], words: str) -> JSON:
        body: JSON = {
            "model": model,
            "instructions": system,
            "input": [self.user(words)],
            "tools": [self.tool(name) for name in tools],
            "store": False,
            "stream": self.stream,
        }
        return body | ({"prompt_cache_key": self.key} if self.key else {})

    def said(self, given: Answer) -> list[JSON]:
        """A call and a text are items of their own; a story's answer is one or the other, so that items can be counted."""
        items: list[JSON] = []
        if given.thinking:
            sealed = envelope(given.thinking)
            items.append({"type": "reasoning", "id": f"rs_{sealed[:12]}", "summary": [], "encrypted_content": sealed})
        if given.call:
            spelled = plain(given.call[2]).decode()
            items.append(
                {"type": "function_call", "call_id": given.call[0], "name": given.call[1], "arguments": spelled}
            )
        else:
            items.append(self.assistant(given.text))
        return items

    def told(self, given: Answer, words: str) -> list[JSON]:
        if not given.call:
            return [self.user(words)]
        return [{"type": "function_call_output", "call_id": given.call[0], "output": words}]

    def prompt(self, body: JSON, headers: dict[str, str]) -> Prompt:  # noqa: ARG002 - one face
        pieces = [Piece(plain(tool), 0) for tool in body.get("tools", ())]
        if "instructions" in body:
            pieces.append(Piece(plain(["developer", body["instructions"]]), 1, None, True))
        items = body["input"]
        turn = max((i for i, item in enumerate(items) if item.get("role") == "user"), default=0)
        for index, item in enumerate(items):
            kind = item.get("type", "message")
            if kind == "reasoning" and not self.old_thinking and index < turn:
                continue
            following = items[index + 1].get("type") if index + 1 < len(items) else None
            end = item.get("role") == "user" or (kind == "function_call_output" and following != kind)
            pieces.append(_rendered(item, end))
        reasoning = body.get("reasoning") or {}
        text = body.get("text") or {}
        used = [body["model"], body.get("parallel_tool_calls"), reasoning.get("effort"), text, body.get("service_tier")]
        explicit = (body.get("prompt_cache_options") or {}).get("mode") == "explicit"
        key = str(body.get("prompt_cache_key", "")) if self.writes else ""
        return prompt(pieces, (str(used), "", ""), key, explicit)

    def generated(self, given: Answer) -> bytes:
        return b"".join(_rendered(item, False).text for item in self.said(given))

    def reply(self, body: JSON, counted: Counted, given: Answer, number: str, extra: JSON) -> bytes:
        details: JSON = {"cached_tokens": counted.read}
        if self.writes:
            details["cache_write_tokens"] = counted.write
        usage = {
            "input_tokens": counted.total,
            "input_tokens_details": details,
            "output_tokens": counted.out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": counted.total + counted.out,
        }
        output = [item | {"status": "completed"} for item in self.said(given)]
        response: JSON = {"id": f"resp_{number}", "object": "response", "created_at": 1_790_000_000}
        done = {"model": body["model"], "status": "completed", "output": output, "usage": usage} | extra
        if not body.get("stream"):
            return dumps(response | done)
        begun = response | {"model": body["model"], "status": "in_progress", "output": [], "usage": None}
        events: list[tuple[str | None, JSON | str]] = [
            ("response.created", {"type": "response.created", "response": begun})
        ]
        for index, item in enumerate(output):
            named = {"type": "response.output_item.done", "output_index": index, "item": item}
            events.append(("response.output_item.done", named))
        events.append(("response.completed", {"type": "response.completed", "response": response | done}))
        return sse(events)

    def tool(self, name: str) -> JSON:
        described = {"name": name, "description": f"Works on {name}.", "parameters": copy.deepcopy(schema(name))}
        return {"type": "function"} | described | {"strict": False}

    def schema_of(self, tool: JSON) -> JSON:
        found: JSON = tool["parameters"]
        return found

    def system(self, body: JSON) -> str:
        return str(body["instructions"])

    def set_system(self, body: JSON, text: str) -> None:
        body["instructions"] = text

    def user(self, text: str) -> JSON:
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    def assistant(self, text: str) -> JSON:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    def set_text(self, message: JSON, text: str) -> None:
        if message["type"] == "function_call_output":
            message["output"] = text
        else:
            message["content"][0]["text"] = text


def _rendered(item: JSON, end: bool) -> Piece:
    """An item as printed; a reasoning item takes no tokens that are reported (§8), a picture's bytes stand for it."""
    if item.get("type") == "reasoning":
        return Piece(plain(["r", item["encrypted_content"][:8]]), 2, None, end)
    content = item.get("content")
    mark = None
    parts: list[Any] = [item.get("role") or item.get("type")]
    if isinstance(content, str):
        parts.append(content)
    else:
        for part in content or ():
            mark = 1800 if "prompt_cache_breakpoint" in part else mark
            parts.append(part.get("text") or str(part.get("image_url"))[-400:])
    parts += [item.get("name"), item.get("arguments"), item.get("output"), item.get("encrypted_content")]
    return Piece(plain([p for p in parts if p is not None]), 2, mark, end)
