"""Widgets that paint rows the rest computed."""
