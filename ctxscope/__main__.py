"""``python -m ctxscope``."""

from __future__ import annotations

import sys

from ctxscope.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
