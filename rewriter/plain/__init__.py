"""Statements that are not for shards: on other tables, on the schema, and those that the proxy answers."""
