"""Distributed transactions beside the sessions: where decisions are, and who finishes what was left."""
