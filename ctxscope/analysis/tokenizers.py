"""Which vocabulary a model is counted with, and how its own tokens relate to that one's (prompt_caching §11)."""

from __future__ import annotations

import re
from functools import lru_cache

from ctxscope.analysis.vocabulary import CL100K, O200K, Vocabulary

_CLAUDE = re.compile(
    r"claude-(?:(\d+)(?:[-.](\d{1,2}))?(?!\d)-)?([a-z]+)(?:-(\d+)(?:[-.](\d{1,2}))?(?!\d))?", re.IGNORECASE
)
"""``claude-3-5-sonnet…`` and ``claude-opus-4-7…``, whatever a host puts before it."""
_ONLY_LATER = frozenset({"fable", "mythos"})
_LATER = (4, 7)
"""First version of the generation of Claude with the newer tokenizer and the larger images."""
_O200K = re.compile(
    r"(?:^|/|^ft:)(?:chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5(?:\.[0-5])?(?![.\d])|gpt-oss|o[134](?![a-z\d]))"
)
"""OpenAI's models from 4o to 5.5; later ones bring an encoding of their own, which agrees within 0.1 %."""
_CL100K = re.compile(r"(?:^|/|^ft:)gpt-(?:4(?![.\do])|3\.?5(?!\d))")
"""OpenAI's models before 4o; Azure leaves the point of 3.5 out."""
_OLD_CLAUDE, _NEW_CLAUDE = 1.15, 1.45
"""Where to start for Claude: no trustworthy constant was found."""


def is_claude(model: str | None) -> bool:
    """Whether a model is one of Anthropic's."""
    return "claude" in (model or "").lower()


def is_later_claude(model: str | None) -> bool:
    """Whether a model is Claude 4.7 or later."""
    found = _CLAUDE.search(model or "")
    if found is None:
        return False
    major, minor = (found[1], found[2]) if found[1] else (found[4], found[5])
    version = (int(major or 0), int(minor or 0))
    return version >= _LATER or (not major and found[3].lower() in _ONLY_LATER)


def vocabulary_of(model: str | None) -> Vocabulary:
    """The public vocabulary that a model is counted with: its own, else o200k_base."""
    return CL100K if _CL100K.search(model or "") else O200K


def is_exact(model: str | None) -> bool:
    """Whether ``vocabulary_of`` gives the model's own."""
    return any(own.search(model or "") for own in (_O200K, _CL100K))


@lru_cache
def factor(model: str | None) -> float:
    """Tokens of a model for each of the vocabulary it is counted with: 1 where nothing better is known."""
    if not is_claude(model):
        return 1.0
    return _NEW_CLAUDE if is_later_claude(model) else _OLD_CLAUDE
