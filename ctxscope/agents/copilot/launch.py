"""How the GitHub Copilot CLI is pointed at the proxy: ``COPILOT_PROVIDER_BASE_URL``, with a provider of the user's own.

Run with 1.0.102 so. With a GitHub login the address comes with the login, and no variable for it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ctxscope.agents.launching.command import pointed, told
from ctxscope.model import Override, Start

TITLE = "GitHub Copilot CLI"
COMMANDS = ("copilot",)
TESTED: tuple[str, ...] = ("1.0.102",)
FORWARD: Mapping[str, str] = {"NODE_EXTRA_CA_CERTS": "{ca}"}

VARIABLE = "COPILOT_PROVIDER_BASE_URL"
GITHUB = ("https://api.githubcopilot.com", "https://api.individual.githubcopilot.com")
GITHUB_FOR_COMPANIES = ("https://api.business.githubcopilot.com", "https://api.enterprise.githubcopilot.com")


def launch(start: Start, through: Callable[[str], str]) -> Override:
    """The variable where it is set; else nothing, and the addresses of GitHub for a forward proxy."""
    put = pointed(start.env, [((VARIABLE,), None)], through)
    if not put:
        for url in (*GITHUB, *GITHUB_FOR_COMPANIES):
            through(url)
    return Override(
        argv=start.argv,
        env=put,
        how=told(put) or ("nothing: with a GitHub login it can be recorded with --forward only",),
        by_hand=f"--forward with a GitHub login; {VARIABLE} with a provider of your own",
    )
