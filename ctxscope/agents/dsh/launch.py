"""How the DeepSeek Harness is pointed at the proxy: ``DEEPSEEK_BASE_URL``.

From the project's reference (read in the package; it could not be had to run). A ``baseURL`` that is stored for a model
wins over the variable. Node's ``fetch`` takes no HTTPS_PROXY unless it is told to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxscope.agents.launching.command import pointed, told
from ctxscope.model import Override, Start

TITLE = "DeepSeek Harness"
COMMANDS = ("dsh",)
TESTED: tuple[str, ...] = ()
FORWARD: Mapping[str, str] = {"NODE_USE_ENV_PROXY": "1", "NODE_EXTRA_CA_CERTS": "{ca}"}

VARIABLE = "DEEPSEEK_BASE_URL"


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The variable, with DeepSeek's own address where the user has set none."""
    put = pointed(start.env, [((VARIABLE,), "https://api.deepseek.com")], through)
    return Override(
        argv=start.argv,
        env=put,
        how=told(put),
        changes=("models of other providers (llm-pi-ai) are not recorded",),
        by_hand="baseURL of llm-deepseek in a file for dsh --patch FILE.yml, which is loaded last",
    )
