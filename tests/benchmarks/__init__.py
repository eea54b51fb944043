"""Figures beside the budgets: run by hand (``python -m tests.benchmarks.run``) and by CI, never a test that can fail."""
