"""A call as it was published, so that publishing again costs what changed."""

from __future__ import annotations

from dataclasses import dataclass

from ctxscope.model import CacheVerdict, Call, Endpoint, ReplyVerdict, TokenLedger, Window
from ctxscope.session.calls import Slot
from ctxscope.session.judge import Judged


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Published:
    """A call as it was published, and what it was made from: as long as that stays, it is published as it is."""

    slot: Slot
    verdict: Judged
    told: Endpoint
    call: Call

    def holds(
        self,
        slot: Slot,
        verdict: Judged,
        reply: ReplyVerdict,
        cache: CacheVerdict,
        tokens: TokenLedger,
        parent: int | None,
        marks: tuple[str, ...],
        told: Endpoint,
        window: Window,
    ) -> bool:
        """Whether it would be made the same; arguments as for ``call_of``."""
        call = self.call
        return (
            (self.slot is slot and self.verdict is verdict and self.told == told)
            and (call.reply, call.cache, call.tokens) == (reply, cache, tokens)
            and (call.parent, call.markers, call.window) == (parent, marks, window)
        )
