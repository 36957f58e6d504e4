"""Rows gathered into a scratch server, which runs the rest of the statement."""
