"""A forum on one server: a dozen tables with foreign keys, and rows made by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from pymysql.cursors import Cursor

from tests.support.servers import Connection

TABLES = """
CREATE TABLE countries (
  code CHAR(2) NOT NULL PRIMARY KEY,
  name VARCHAR(64) NOT NULL
);
CREATE TABLE users (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(60) NOT NULL,
  email VARCHAR(190) NOT NULL,
  country CHAR(2) DEFAULT NULL,
  best_post INT UNSIGNED DEFAULT NULL,
  karma DOUBLE NOT NULL DEFAULT 0,
  avatar BLOB,
  born DATE DEFAULT '0000-00-00',
  created_at DATETIME NOT NULL,
  UNIQUE KEY email (email),
  KEY name (name),
  KEY best_post (best_post),
  CONSTRAINT users_country FOREIGN KEY (country) REFERENCES countries (code)
) COMMENT='people; and bots';
CREATE TABLE forums (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  parent_id INT UNSIGNED DEFAULT NULL,
  title VARCHAR(100) NOT NULL,
  about TEXT,
  PRIMARY KEY (id),
  CONSTRAINT forums_parent FOREIGN KEY (parent_id) REFERENCES forums (id)
);
CREATE TABLE topics (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  forum_id INT UNSIGNED NOT NULL,
  user_id INT UNSIGNED NOT NULL,
  title VARCHAR(200) NOT NULL,
  pinned TINYINT(1) NOT NULL DEFAULT 0,
  created_at DATETIME NOT NULL,
  PRIMARY KEY (id),
  KEY forum_id (forum_id, created_at),
  CONSTRAINT topics_forum FOREIGN KEY (forum_id) REFERENCES forums (id),
  CONSTRAINT topics_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE posts (
  id INT UNSIGNED NOT NULL AUTO_INCREMENT,
  topic_id INT UNSIGNED NOT NULL,
  user_id INT UNSIGNED DEFAULT NULL,
  parent_id INT UNSIGNED DEFAULT NULL,
  body TEXT NOT NULL,
  edits INT NOT NULL DEFAULT 0,
  length INT GENERATED ALWAYS AS (CHAR_LENGTH(body)) STORED,
  updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  PRIMARY KEY (id),
  KEY topic_id (topic_id, id),
  FULLTEXT KEY body (body),
  CONSTRAINT posts_topic FOREIGN KEY (topic_id) REFERENCES topics (id) ON DELETE CASCADE,
  CONSTRAINT posts_user FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE SET NULL,
  CONSTRAINT posts_parent FOREIGN KEY (parent_id) REFERENCES posts (id) ON DELETE SET NULL
);
ALTER TABLE users ADD CONSTRAINT users_best FOREIGN KEY (best_post) REFERENCES posts (id) ON DELETE SET NULL;
CREATE TABLE attachments (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  post_id INT UNSIGNED NOT NULL,
  name VARCHAR(100) CHARACTER SET latin1 NOT NULL,
  content BLOB NOT NULL,
  meta JSON DEFAULT NULL,
  flags BIT(3) NOT NULL DEFAULT b'1',
  CONSTRAINT attachments_post FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE
);
CREATE TABLE tags (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(40) NOT NULL,
  UNIQUE KEY name (name)
);
CREATE TABLE topic_tags (
  topic_id INT UNSIGNED NOT NULL,
  tag_id INT NOT NULL,
  PRIMARY KEY (topic_id, tag_id),
  KEY tag_id (tag_id),
  CONSTRAINT topic_tags_topic FOREIGN KEY (topic_id) REFERENCES topics (id) ON DELETE CASCADE,
  CONSTRAINT topic_tags_tag FOREIGN KEY (tag_id) REFERENCES tags (id)
);
CREATE TABLE tag_votes (
  topic_id INT UNSIGNED NOT NULL,
  tag_id INT NOT NULL,
  user_id INT UNSIGNED NOT NULL,
  vote TINYINT NOT NULL,
  PRIMARY KEY (topic_id, tag_id, user_id),
  CONSTRAINT tag_votes_tag FOREIGN KEY (topic_id, tag_id) REFERENCES topic_tags (topic_id, tag_id)
    ON DELETE CASCADE,
  CONSTRAINT tag_votes_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE likes (
  user_id INT UNSIGNED NOT NULL,
  post_id INT UNSIGNED NOT NULL,
  created_at DATETIME NOT NULL,
  PRIMARY KEY (user_id, post_id),
  CONSTRAINT likes_user FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT likes_post FOREIGN KEY (post_id) REFERENCES posts (id) ON DELETE CASCADE
);
CREATE TABLE messages (
  message_id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sender_id INT UNSIGNED NOT NULL,
  recipient_id INT UNSIGNED NOT NULL,
  body VARCHAR(500) NOT NULL,
  cost DECIMAL(9,3) NOT NULL,
  sent_at DATETIME(3) NOT NULL,
  CONSTRAINT messages_sender FOREIGN KEY (sender_id) REFERENCES users (id),
  CONSTRAINT messages_recipient FOREIGN KEY (recipient_id) REFERENCES users (id)
);
CREATE TABLE settings (
  user_id INT UNSIGNED NOT NULL,
  name VARCHAR(40) NOT NULL,
  value VARCHAR(200),
  PRIMARY KEY (user_id, name),
  CONSTRAINT settings_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE sessions (
  token VARCHAR(64) NOT NULL PRIMARY KEY,
  user_id INT UNSIGNED DEFAULT NULL,
  data TEXT,
  CONSTRAINT sessions_user FOREIGN KEY (user_id) REFERENCES users (id)
);
CREATE TABLE badges (
  kind ENUM('silver', 'gold', 'bronze') NOT NULL,
  name VARCHAR(40) NOT NULL,
  holders INT NOT NULL,
  ratio DOUBLE DEFAULT NULL,
  PRIMARY KEY (kind, name)
);
CREATE TABLE logs (
  at DATETIME NOT NULL,
  line VARCHAR(100)
);
"""
WORDS = [
    "ant",
    "bee",
    "cat",
    "eel",
    "fox",
    "gnu",
    "koi",
    "ñandú",
    "日本",
    "😀",
    ";",
    "--",
    "'q'",
    "b\\s",
    "x\ny",
]


def define(cursor: Cursor, database: str) -> None:
    """The database and its tables."""
    cursor.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    cursor.execute(f"USE {database}")
    cursor.execute("SET SESSION sql_mode = 'ALLOW_INVALID_DATES'")
    for statement in TABLES.split(";\n"):
        if statement.strip():
            cursor.execute(statement)


class Forum:
    """Rows of a forum with about `size` rows, and what happens there later."""

    def __init__(
        self, connection: Connection, database: str = "forum", *, size: int = 2000, seed: int = 1
    ) -> None:
        self.connection, self.database = connection, database
        self.random = random.Random(seed)
        self.users = max(4, size // 20)
        self.topics = max(4, size // 20)
        self.posts = size // 2

    def make(self) -> None:
        """Tables and rows."""
        with self.connection.cursor() as cursor:
            define(cursor, self.database)
            cursor.execute("SET SESSION foreign_key_checks = 0")
            for table, columns, rows in self._tables():
                self._insert(cursor, table, columns, rows)
            cursor.execute("SET SESSION foreign_key_checks = 1")

    def _insert(self, cursor: Cursor, table: str, columns: str, rows: Iterator[Sequence[Any]]) -> None:
        marks = ", ".join(["%s"] * len(columns.split(", ")))
        held: list[Sequence[Any]] = []
        sql = f"INSERT INTO {self.database}.{table} ({columns}) VALUES ({marks})"
        for row in rows:
            held.append(row)
            if len(held) == 1000:
                cursor.executemany(sql, held)
                held = []
        if held:
            cursor.executemany(sql, held)

    def text(self, words: int) -> str:
        """Some words."""
        return " ".join(self.random.choices(WORDS, k=words))

    def _moment(self) -> str:
        pick = self.random.randrange
        return f"20{pick(10, 26)}-{pick(1, 13):02}-{pick(1, 29):02} {pick(24):02}:{pick(60):02}:{pick(60):02}"

    def _some(self, most: int) -> int:
        return self.random.randrange(1, most + 1)

    def _tables(self) -> Iterator[tuple[str, str, Iterator[Sequence[Any]]]]:
        chance, users, topics, posts = self.random.random, self.users, self.topics, self.posts
        forums = max(3, topics // 20)
        yield "countries", "code, name", iter([("de", "Germany"), ("fr", "France"), ("jp", "日本")])
        yield (
            "users",
            "name, email, country, best_post, karma, avatar, born, created_at",
            (
                (
                    self.text(2)[:60],
                    f"user{n}@example.com",
                    self.random.choice([None, "de", "fr", "jp"]),
                    self._some(posts) if chance() < 0.3 else None,
                    self.random.uniform(-1, 1e6),
                    self.random.randbytes(self.random.randrange(20)) if chance() < 0.5 else None,
                    "0000-00-00" if chance() < 0.05 else "1980-02-03",
                    self._moment(),
                )
                for n in range(users)
            ),
        )
        yield (
            "forums",
            "parent_id, title, about",
            ((self._some(n) if n and chance() < 0.6 else None, self.text(3), None) for n in range(forums)),
        )
        yield (
            "topics",
            "forum_id, user_id, title, pinned, created_at",
            (
                (self._some(forums), self._some(users), self.text(4), chance() < 0.1, self._moment())
                for _ in range(topics)
            ),
        )
        yield (
            "posts",
            "topic_id, user_id, parent_id, body",
            (
                (
                    self._some(topics),
                    self._some(users) if chance() < 0.9 else None,
                    self._some(posts) if chance() < 0.3 else None,
                    self.text(8),
                )
                for _ in range(posts)
            ),
        )
        yield (
            "attachments",
            "post_id, name, content, meta, flags",
            (
                (
                    self._some(posts),
                    "größe.png",
                    self.random.randbytes(30),
                    '{"b": [1, 2.50], "a": "ü"}' if chance() < 0.5 else None,
                    5,
                )
                for _ in range(posts // 10)
            ),
        )
        yield "tags", "name", ((f"tag {n}",) for n in range(20))
        pairs = sorted({(self._some(topics), self._some(20)) for _ in range(topics * 2)})
        yield "topic_tags", "topic_id, tag_id", iter(pairs)
        yield (
            "tag_votes",
            "topic_id, tag_id, user_id, vote",
            ((topic, tag, self._some(users), 1) for topic, tag in pairs[::3]),
        )
        likes = sorted({(self._some(users), self._some(posts)) for _ in range(posts // 2)})
        yield "likes", "user_id, post_id, created_at", ((*one, self._moment()) for one in likes)
        yield (
            "messages",
            "sender_id, recipient_id, body, cost, sent_at",
            (
                (self._some(users), self._some(users), self.text(5), self._some(99999) / 1000, self._moment())
                for _ in range(posts // 10)
            ),
        )
        named = [(user, name) for user in range(1, users + 1) for name in ("theme", "Sprache ü")]
        yield "settings", "user_id, name, value", ((*one, self.text(1)) for one in named)
        yield (
            "sessions",
            "token, user_id, data",
            ((f"{self.random.getrandbits(200):050x}", self._some(users), "x") for _ in range(users)),
        )
        kinds = ("silver", "gold", "bronze")
        badges = [(kind, f"badge {n}", n, n / 3 if n else -0.0) for kind in kinds for n in range(topics * 3)]
        yield "badges", "kind, name, holders, ratio", iter(badges)
        yield "logs", "at, line", iter([("2024-01-01", "not imported")])

    # --- what happens later ------------------------------------------------------------------------

    def happen(self, cursor: Cursor) -> None:
        """One change, or a few that belong together, in one transaction."""
        pick = self.random.randrange
        user, post, topic = self._some(self.users), self._some(self.posts), self._some(self.topics)
        cursor.execute(f"USE {self.database}")
        cursor.execute("BEGIN")
        match pick(10):
            case 0:
                cursor.execute(
                    "INSERT INTO topics (forum_id, user_id, title, created_at) VALUES (1, %s, 'new', NOW())",
                    (user,),
                )
                cursor.execute(
                    "INSERT INTO posts (topic_id, user_id, body) VALUES (LAST_INSERT_ID(), %s, %s)",
                    (user, self.text(5)),
                )
            case 1:
                cursor.execute(
                    "UPDATE posts SET body = %s, edits = edits + 1 WHERE id = %s", (self.text(6), post)
                )
            case 2:
                cursor.execute("DELETE FROM posts WHERE id = %s", (post,))
            case 3:
                cursor.execute("DELETE FROM tag_votes WHERE topic_id = %s", (topic,))
                cursor.execute("DELETE FROM topic_tags WHERE topic_id = %s", (topic,))
            case 4:
                cursor.execute("UPDATE topics SET forum_id = 2 WHERE id = %s", (topic,))
                cursor.execute("UPDATE posts SET topic_id = %s WHERE id = %s", (topic, post))
            case 5:
                cursor.execute("SELECT MAX(id) FROM posts")
                cursor.execute(
                    "INSERT IGNORE INTO likes SELECT %s, MAX(id), NOW() FROM posts HAVING COUNT(*)",
                    (user,),
                )
            case 6:
                cursor.execute("UPDATE settings SET value = %s WHERE user_id = %s", (self.text(1), user))
                cursor.execute("REPLACE INTO settings VALUES (%s, %s, 'x')", (user, self.text(1)))
            case 7:
                cursor.execute("DELETE FROM sessions WHERE user_id = %s", (user,))
                cursor.execute(
                    "INSERT INTO users (name, email, born, created_at) VALUES ('n', UUID(), NULL, NOW())"
                )
            case 8:
                cursor.execute("DELETE FROM badges WHERE holders = %s", (pick(self.topics * 3),))
            case 9:
                cursor.execute(
                    "UPDATE IGNORE badges SET kind = 'gold' WHERE holders = %s", (pick(self.topics * 3),)
                )
        cursor.execute("COMMIT")
