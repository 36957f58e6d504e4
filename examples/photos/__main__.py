"""``python -m examples.photos``, while a demo runs."""

from __future__ import annotations

from pathlib import Path

from examples.common import people
from examples.common.web import serve
from examples.photos import web

FIRST_ROWS = """
    INSERT INTO user_followed_by_user (user_id, follower_id, sequence)
    SELECT followed_id, user_id, sequence FROM user_follows_user
"""
"""Whom the demo's users follow, from the other end: each row goes to another shard than it comes from."""

if __name__ == "__main__":
    folder, first_rows = Path(__file__).parent, {"user_followed_by_user": FIRST_ROWS}
    serve(
        "Photos with IDs that sort by time, on a demo.", 8002, folder, first_rows, people.routes, web.routes
    )
