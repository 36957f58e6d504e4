"""``python -m examples.pinboard``, while a demo runs."""

from __future__ import annotations

from pathlib import Path

from examples.common import people
from examples.common.web import serve
from examples.pinboard import web

FIRST_ROWS = """
    INSERT INTO user_follows_boards (user_id, board_id, sequence)
    SELECT f.user_id, b.board_id, f.sequence
      FROM user_follows_user f JOIN user_has_boards b ON b.user_id = f.followed_id
"""
"""The demo's users follow each other: may they follow each other's boards."""

if __name__ == "__main__":
    folder, first_rows = Path(__file__).parent, {"user_follows_boards": FIRST_ROWS}
    serve("Boards of pins, on a demo.", 8001, folder, first_rows, people.routes, web.routes)
