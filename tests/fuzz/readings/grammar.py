"""Generated statements: a payload that the account must not run, written so that a reader may overlook it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

#: Character sets that a client may name; ones that cannot be a client's are refused by both.
CHARSETS = (
    *("utf8mb4", "utf8mb3", "latin1", "latin2", "latin5", "latin7", "ascii", "binary", "swe7", "dec8", "hp8"),
    *("cp850", "cp852", "cp866", "cp1250", "cp1251", "cp1256", "cp1257", "koi8r", "koi8u", "greek", "hebrew"),
    *("armscii8", "geostd8", "keybcs2", "macce", "macroman", "tis620", "euckr", "gb2312", "ujis", "eucjpms"),
    *("gbk", "big5", "sjis", "cp932", "gb18030", "ucs2", "utf16", "utf16le", "utf32"),
)
MODES = (
    *("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "IGNORE_SPACE", "PIPES_AS_CONCAT", "HIGH_NOT_PRECEDENCE"),
    *("ANSI", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "TRADITIONAL", "ORACLE", "MSSQL", "NO_TABLE_OPTIONS"),
)
RESULTS = ("", "", "", "NULL", "binary", "utf16", "ucs2", "utf32", "latin1", "swe7")

#: What an account for `legacy` may not do; SECRET stands for the canary's database, FILE for a file's path.
PAYLOADS = (
    "SELECT v FROM SECRET.canary",
    "SELECT a , b FROM legacy.fuzzed UNION SELECT 1 , v FROM SECRET.canary",
    "SELECT ( SELECT v FROM SECRET.canary LIMIT 1 )",
    "SELECT * FROM legacy.fuzzed , SECRET.canary",
    "SELECT * FROM legacy.fuzzed NATURAL JOIN SECRET.canary",
    "SELECT * FROM ( SELECT v FROM SECRET.canary ) x",
    "WITH c AS ( SELECT v FROM SECRET.canary ) SELECT * FROM c",
    "SELECT * FROM `SECRET`.`canary`",
    "SELECT * FROM SECRET . canary",
    "SELECT SECRET.tell ( )",
    "SELECT `SECRET`.`tell` ( )",
    "DO SECRET.tell ( )",
    "CALL SECRET.show ( )",
    "SELECT LOAD_FILE ( 'FILE' )",
    "SELECT 'x' INTO OUTFILE 'FILE.new'",
    "SELECT 'x' INTO DUMPFILE 'FILE.new'",
    "( SELECT 'x' INTO OUTFILE 'FILE.new' )",
    "SELECT 1 UNION SELECT 2 INTO OUTFILE 'FILE.new'",
    "TABLE SECRET.canary",
    "SHOW CREATE TABLE SECRET.canary",
    "SHOW COLUMNS FROM canary FROM SECRET",
    "SHOW INDEX IN canary IN SECRET",
    "DESCRIBE SECRET.canary",
    "EXPLAIN SELECT * FROM SECRET.canary",
    "HANDLER SECRET.canary OPEN",
    "CHECKSUM TABLE SECRET.canary",
    "LOCK TABLES SECRET.canary READ",
    "USE SECRET",
    "SELECT user FROM mysql.user",
    "INSERT INTO SECRET.canary VALUES ( 'spoilt' )",
    "UPDATE SECRET.canary SET v = 'spoilt'",
    "DELETE FROM SECRET.canary",
    "DELETE SECRET.canary FROM SECRET.canary JOIN legacy.fuzzed",
    "REPLACE INTO SECRET.canary VALUES ( 'spoilt' )",
    "INSERT INTO legacy.fuzzed SELECT 1 , v FROM SECRET.canary",
    "INSERT INTO legacy.fuzzed VALUES ( 1 , 'x' )",
    "UPDATE legacy.fuzzed SET b = 'x'",
    "DELETE FROM legacy.fuzzed WHERE a = 3",
    "CREATE TABLE legacy.fuzzed2 ( a INT )",
    "CREATE TABLE legacy.fuzzed3 AS SELECT v FROM SECRET.canary",
    "ALTER TABLE legacy.fuzzed COMMENT 'x'",
    "TRUNCATE SECRET.canary",
    "SET GLOBAL net_retry_count = 77",
    "SET @@global.net_retry_count = 77",
    "PREPARE p FROM 'SELECT v FROM SECRET.canary'",
    "EXECUTE IMMEDIATE 'DELETE FROM SECRET.canary'",
    "SET STATEMENT max_statement_time = 9 FOR DELETE FROM SECRET.canary",
    "SET @x = ( SELECT v FROM SECRET.canary )",
    "SELECT NEXTVAL ( SECRET.seq )",
    "SELECT * FROM JSON_TABLE ( ( SELECT v FROM SECRET.canary ) , '$' COLUMNS ( x TEXT PATH '$' ) ) t",
    "BEGIN NOT ATOMIC DELETE FROM SECRET.canary ; END",
    "SHOW TABLES WHERE ( SELECT v FROM SECRET.canary LIMIT 1 ) > ''",
    "EXPLAIN FOR CONNECTION 1",
    "SHOW CREATE USER root",
    "SELECT * FROM performance_schema.threads",
    "CREATE TEMPORARY TABLE legacy.t AS SELECT v FROM SECRET.canary",
    "CREATE VIEW legacy.fuzzed4 AS SELECT v FROM SECRET.canary",
    "SELECT a FROM legacy.fuzzed PROCEDURE ANALYSE ( )",
    "SELECT GET_LOCK ( 'x' , 0 ) FROM SECRET.canary",
    "ANALYZE FORMAT=JSON DELETE FROM SECRET.canary",
)
#: What it may do, so that hiding places are also tried around allowed text.
ALLOWED = (
    "SELECT a , b FROM legacy.fuzzed WHERE a = 3",
    "SELECT 'it''s' , \"two\" , 0x41 , b'1' , 1e5 , .5",
    "SELECT a AS `x y` , COUNT ( * ) FROM fuzzed GROUP BY a",
    "SELECT 1",
    "SHOW TABLES",
    "SELECT @@sql_mode , @@version_comment",
    "SELECT a -- 1\n FROM fuzzed",
    "SELECT a FROM fuzzed WHERE b LIKE '%\\\\' OR a = 1",
)
_VERSIONS = (
    *("", "", "0", "00000", "32302", "40101", "50003", "50700", "50701", "50799", "50800", "80000", "080000"),
    *(
        "90000",
        "90700",
        "090700",
        "97000",
        "99999",
        "999999",
        "100000",
        "100100",
        "101100",
        "101199",
        "110000",
    ),
    *("1", "4010", "5070", "5070 1", "507001", "0507001", "800000", "8"),
)


@dataclass(frozen=True)
class Manner:
    """What a session has set: texts of SET statements, in their order."""

    charset: str
    settings: tuple[bytes, ...]

    @classmethod
    def any(cls, chooser: Random) -> Manner:
        charset = chooser.choice(CHARSETS if chooser.random() < 0.6 else CHARSETS[:3])
        settings = [f"SET NAMES {charset}".encode()]
        results = chooser.choice(RESULTS)
        mode = chooser.choice(MODES if chooser.random() < 0.6 else MODES[:1])
        if results:
            settings.append(f"SET character_set_results = {results}".encode())
        settings.append(b"SET sql_mode = '" + mode.encode() + b"'")
        if chooser.random() < 0.2:
            settings.append(b"SET character_set_client = " + chooser.choice(CHARSETS).encode())
        chooser.shuffle(settings)
        return cls(charset, tuple(settings))


class Writer:
    """Makes texts. All that is drawn comes from `chooser`."""

    def __init__(
        self,
        chooser: Random,
        names: Mapping[str, str],
        payloads: Sequence[str] = PAYLOADS,
        others: Sequence[str] = ALLOWED,
    ) -> None:
        """`names` stand in the texts for what is found only when they run."""
        self._chooser = chooser
        self._names = names
        self._texts = payloads, others

    def statement(self) -> bytes:
        chooser = self._chooser
        text = chooser.choice(self._texts[chooser.random() > 0.8])
        tokens = []
        for word in text.split(" "):
            for name, value in self._names.items():
                word = re.sub(rf"\b{name}\b", value, word)
            tokens.append(word.encode())
        way = chooser.random()
        if way < 0.35:
            made = self._spaced(tokens)
        elif way < 0.6:
            made = self._in_comments(tokens)
        elif way < 0.9:
            made = self._hidden(tokens)
        else:
            made = self._mutated(b" ".join(tokens))
        return self._mutated(made) if chooser.random() < 0.15 else made

    def _space(self) -> bytes:
        chooser = self._chooser
        kind = chooser.random()
        if kind < 0.3:
            return b" "
        if kind < 0.4:
            return chooser.choice(
                (b"\t", b"\n", b"\r", b"\v", b"\f", b"\0", b"\x1a", b"\x7f", b"\x85", b"\x1c")
            )
        if kind < 0.55:
            return bytes([chooser.randrange(128, 256)])
        if kind < 0.6:
            return bytes([chooser.randrange(256)])
        if kind < 0.63:
            return b"" if chooser.random() < 0.3 else b"\xc2\xa0"
        return self._comment()

    def _comment(self) -> bytes:
        chooser = self._chooser
        control = bytes([chooser.randrange(33)])
        return chooser.choice(
            (
                *(
                    b"/**/",
                    b"/* x */",
                    b"/*/*/",
                    b"/*!*/",
                    b"/*! */",
                    b"/*M!*/",
                    b"/*M! */",
                    b"/*+ x */",
                    b"/***/",
                ),
                *(
                    b"#\n",
                    b"-- \n",
                    b"--" + control + b"\n",
                    b"--\n",
                    b"# ' \n",
                    b"-- /* \n",
                    b"/* ' */",
                    b'/* " */',
                ),
                *(
                    b"/*! /* */ */",
                    b"/* /*! */",
                    b"/*!99999 ' */",
                    b"/*M!999999 */",
                    b"/*!" + self._version() + b"*/",
                ),
            )
        )

    def _version(self) -> bytes:
        return self._chooser.choice(_VERSIONS).encode() + self._chooser.choice((b"", b" ", b" "))

    def _opening(self) -> bytes:
        return self._chooser.choice((b"/*!", b"/*!", b"/*M!", b"/*m!", b"/* !", b"/*+")) + self._version()

    def _spaced(self, tokens: list[bytes]) -> bytes:
        """Other things than spaces between the words."""
        odd = self._chooser.randrange(len(tokens) + 1)
        parts = []
        for number, token in enumerate(tokens):
            if number:
                parts.append(self._space() if number == odd or self._chooser.random() < 0.04 else b" ")
            parts.append(token)
        if odd == len(tokens):
            parts.append(self._space())
        return b"".join(parts)

    def _in_comments(self, tokens: list[bytes]) -> bytes:
        """Some of the words in a comment that a server opens, or does not."""
        chooser = self._chooser
        first = chooser.randrange(len(tokens))
        end = chooser.randrange(first, len(tokens)) + 1
        inside = b" ".join(tokens[first:end])
        nested = chooser.random()
        if nested < 0.2:
            inside = self._opening() + inside + b" */"
        elif nested < 0.3:
            inside = b"/* x */" + inside
        elif nested < 0.4:
            inside = inside + b"/* x */" + chooser.choice((b"", b"*/", b"/*"))
        closing = chooser.choice((b" */", b"*/", b"*/", b"* /", b"", b"*/*/"))
        before = b" ".join(tokens[:first])
        if chooser.random() < 0.2:
            before += chooser.choice((b"1", b"1-", b"1--", b"'", b'"', b"`", b"'a'", b".", b"@", b"-"))
        return before + b" " + self._opening() + inside + closing + b" " + b" ".join(tokens[end:])

    def _hidden(self, tokens: list[bytes]) -> bytes:
        """Behind a harmless beginning, within what one reader takes for a text, a name or a comment."""
        chooser = self._chooser
        payload = b" ".join(tokens)
        quote = chooser.choice((b"'", b"'", b'"', b"`", b"$$", b"$a$"))
        high = bytes([chooser.randrange(0x80, 0x100)])
        escape = chooser.choice(
            (
                b"\\",
                b"\\\\",
                high + b"\\",
                high,
                b"\\" + high,
                quote,
                quote + quote,
                b"\0",
                b"\\\0",
                b"",
                high + high,
            )
        )
        prefix = chooser.choice(
            (b"", b"N", b"n", b"x", b"b", b"_latin1", b"_gbk ", b"_utf8mb4", b"@", b"a.", b"q")
        )
        start = chooser.choice((b"SELECT ", b"SELECT a FROM fuzzed WHERE b = ", b"DO ", b"SELECT 1, "))
        joint = chooser.choice((b" UNION ", b" ; ", b" , ( ", b" , ", b" FROM ", b" AND ( ", b" */ ", b"\n"))
        tail = chooser.choice(
            (b"", b" -- ", b" #", b" /*", b" /*!", b" " + quote, b" ) -- " + quote, b") #" + quote)
        )
        around = chooser.random()
        if around < 0.15:
            start, joint = self._opening() + b" " + start, joint + b" */ "
        return start + prefix + quote + escape + quote + joint + payload + tail

    def _mutated(self, text: bytes) -> bytes:
        chooser = self._chooser
        data = bytearray(text)
        for _ in range(chooser.choice((1, 1, 1, 2, 3))):
            place = chooser.randrange(len(data) + 1)
            odd = chooser.choice(
                (
                    *(
                        b"'",
                        b'"',
                        b"`",
                        b"\\",
                        b"/*",
                        b"*/",
                        b"/*!",
                        b"--",
                        b"#",
                        b";",
                        b"@",
                        b".",
                        b"$",
                        b"(",
                        b")",
                    ),
                    *(b"\xa0", b"\xff", b"\xbf", b"\x81", b"\x8e", b"\x7f", b"\0", b"\n", b"\r", b"\x1a"),
                    bytes([chooser.randrange(256)]),
                )
            )
            kind = chooser.random()
            if kind < 0.6 or not data:
                data[place:place] = odd
            elif kind < 0.8:
                data[place : place + 1] = odd
            else:
                del data[place : place + chooser.choice((1, 1, 2, 5))]
        return bytes(data)
