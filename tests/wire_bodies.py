"""Request bodies of each API for the wire tests: spelled at random, or small and plain."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from ctxscope.wire import by_name, names

APIS = tuple(by_name(n) for n in names())

words = st.text(st.sampled_from('abé漢🙂"\\/\n\t  {}[],:\u2028'), max_size=12)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False), words)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=6,
)
marks = st.sampled_from([{}, {}, {"cache_control": {"type": "ephemeral"}}])
roles = st.sampled_from(["user", "assistant", "system", "developer", "tool"])
odd = st.one_of(st.none(), values)

tools = st.lists(
    st.builds(lambda n, s, m: {"name": n, "description": "d", "input_schema": s, **m}, words, values, marks), max_size=3
)
blocks = st.one_of(
    st.builds(lambda t, m: {"type": "text", "text": t, **m}, words, marks),
    st.builds(lambda i: {"type": "tool_use", "id": "toolu_1", "name": "look", "input": i}, values),
    st.builds(lambda t, m: {"type": "tool_result", "tool_use_id": "toolu_1", "content": t, **m}, words, marks),
    st.builds(lambda t: {"text": t}, words),
    odd,
)
contents = st.one_of(words, st.lists(blocks, max_size=3), odd)
messages = st.lists(
    st.one_of(
        st.builds(lambda r, c: {"role": r, "content": c}, roles, contents),
        st.builds(lambda r, c: {"parts": c, "role": r}, roles, contents),
        st.builds(lambda r, c, x: {"content": c, "extra": x, "role": r}, roles, contents, values),
        odd,
    ),
    max_size=5,
)
declared = st.lists(st.builds(lambda t: {"functionDeclarations": t}, tools), max_size=2)
pairs = st.one_of(
    st.tuples(st.sampled_from(["messages", "input", "contents"]), messages),
    st.tuples(st.just("tools"), st.one_of(tools, declared)),
    st.tuples(st.sampled_from(["system", "instructions"]), contents),
    st.tuples(st.just("systemInstruction"), st.builds(lambda c: {"parts": c, "role": "user"}, contents)),
    st.tuples(st.sampled_from(["model", "max_tokens", "a/b", "é~"]), values),
)
objects = st.lists(pairs, max_size=6)
"""Members of a body in order; keys may come twice."""
blanks = st.sampled_from(["", "", " ", "\n\t", "  \r\n"])


def spell(members: list[tuple[str, Any]], blank: str = "", *, ascii_only: bool = False) -> bytes:
    """A body with these members, ``blank`` between all tokens."""
    separators = (f"{blank},{blank}", f"{blank}:{blank}")
    texts = (
        json.dumps(key, ensure_ascii=ascii_only)
        + separators[1]
        + json.dumps(value, ensure_ascii=ascii_only, separators=separators)
        for key, value in members
    )
    return f"{blank}{{{blank}{separators[0].join(texts)}{blank}}}{blank}".encode("utf-8", "surrogatepass")


bodies = st.builds(lambda m, b, a: spell(m, b, ascii_only=a), objects, blanks, st.booleans())
