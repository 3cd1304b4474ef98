"""Measurements; see README.md. Nothing of ours imports them, and they are not in the wheel."""
