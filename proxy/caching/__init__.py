"""Answers kept in memcached and Redis, and when they may be given: see docs/decisions/caching.md.

`stores` speaks to the caches, `members` decides when all writers are known to invalidate, `server` is one
cache as one worker sees it, `caches` are all of them.
"""
