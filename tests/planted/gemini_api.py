"""Bodies and replies of Gemini's ``generateContent`` (reference §4, §7)."""

from __future__ import annotations

import copy

from tests.planted.dialects import JSON, Answer, Dialect, dumps
from tests.planted.pieces import Counted, Piece, Prompt, plain, prompt
from tests.planted.texts import schema


class GeminiApi(Dialect):
    """One implicit cache; the model stands in the path."""

    list_name = "contents"
    system_path = "/systemInstruction"

    def __init__(self, model: str) -> None:
        self.path = f"/v1beta/models/{model}:generateContent"

    def opening(self, model: str, system: str, tools: tuple[str, ...], words: str) -> JSON:  # noqa: ARG002 - one face
        return {
            "systemInstruction": {"parts": [{"text": system}]},
            "tools": [{"functionDeclarations": [self.tool(name) for name in tools]}],
            "contents": [self.user(words)],
        }

    def said(self, given: Answer) -> list[JSON]:
        parts: list[JSON] = [{"text": given.text}]
        if given.call:
            parts.append({"functionCall": {"name": given.call[1], "args": given.call[2]}})
        return [{"role": "model", "parts": parts}]

    def told(self, given: Answer, words: str) -> list[JSON]:
        if not given.call:
            return [self.user(words)]
        answered = {"functionResponse": {"name": given.call[1], "response": {"output": words}}}
        return [{"role": "user", "parts": [answered]}]

    def prompt(self, body: JSON, headers: dict[str, str]) -> Prompt:  # noqa: ARG002 - one face
        pieces = [Piece(plain(body["systemInstruction"]), 1)]
        pieces += [Piece(plain(tool), 1) for tool in self.tools(body)]
        pieces += [Piece(plain(content), 2) for content in body["contents"]]
        return prompt(pieces, ("", "", ""))

    def generated(self, given: Answer) -> bytes:
        return b"".join(plain(content) for content in self.said(given))

    def reply(self, body: JSON, counted: Counted, given: Answer, number: str, extra: JSON) -> bytes:  # noqa: ARG002
        usage = {"promptTokenCount": counted.total, "candidatesTokenCount": counted.out}
        usage["totalTokenCount"] = counted.total + counted.out
        if counted.read:
            usage["cachedContentTokenCount"] = counted.read
        candidate = {"index": 0, "content": self.said(given)[0], "finishReason": "STOP"}
        named = {"modelVersion": self.path.split("/")[-1].split(":")[0], "responseId": number}
        return dumps({"candidates": [candidate], "usageMetadata": usage} | named | extra)

    def tool(self, name: str) -> JSON:
        return {"name": name, "description": f"Works on {name}.", "parameters": copy.deepcopy(schema(name))}

    def tools(self, body: JSON) -> list[JSON]:
        found: list[JSON] = body["tools"][0]["functionDeclarations"]
        return found

    def schema_of(self, tool: JSON) -> JSON:
        found: JSON = tool["parameters"]
        return found

    def tool_path(self, index: int) -> str:
        return f"/tools/0/functionDeclarations/{index}"

    def system(self, body: JSON) -> str:
        return str(body["systemInstruction"]["parts"][0]["text"])

    def set_system(self, body: JSON, text: str) -> None:
        body["systemInstruction"]["parts"][0]["text"] = text

    def user(self, text: str) -> JSON:
        return {"role": "user", "parts": [{"text": text}]}

    def assistant(self, text: str) -> JSON:
        return {"role": "model", "parts": [{"text": text}]}

    def set_text(self, message: JSON, text: str) -> None:
        part = message["parts"][0]
        if "functionResponse" in part:
            part["functionResponse"]["response"]["output"] = text
        else:
            part["text"] = text
