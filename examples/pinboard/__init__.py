"""Boards of pins: Pinterest's objects and mappings. README.md says how to start it."""
