"""Statements that clients prepare."""
