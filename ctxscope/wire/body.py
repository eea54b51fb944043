"""Bytes into a ``Body``: hashed, cut, its model named."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from urllib.parse import unquote

from ctxscope.model import Body
from ctxscope.wire import WireApi
from ctxscope.wire.blocks import param

_MODEL_IN_PATH = re.compile(r"/models/([^/:?]+)|/model/([^?]+)/invoke(?:-with-response-stream)?(?:$|[/?])")
"""Gemini and Vertex; Bedrock, where it may be the ARN of an inference profile with a slash in it."""


def make_body(data: bytes, api: WireApi | None, parent: Body | None = None, path: str = "") -> Body:
    """A body cut into segments, reusing those of ``parent``; without an API it has none.

    ``path`` is the request's own, where some APIs name the model.
    """
    segments = api.segments(data, parent) if api is not None else ()
    found = tuple(s for s in segments if s.kind == "param")
    body = Body(data, api.name if api is not None else None, segments, None, hashlib.sha256(data).hexdigest(), found)
    return replace(body, model=_model(body, path))


def _model(body: Body, path: str) -> str | None:
    in_path = _MODEL_IN_PATH.search(path)
    if in_path is not None:
        return unquote(in_path[1] or in_path[2])
    value = param(body, "model")
    return value if isinstance(value, str) else None
