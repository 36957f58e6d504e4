"""Statements about the session itself: transactions, SET, USE, KILL."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from config.flavour import Flavour
from rewriter.plan import Access, Plan
from rewriter.plans import SetStatement
from rewriter.plans.builtins import (
    FOR_ALL,
    Assignment,
    Begin,
    Commit,
    Kill,
    ReleaseSavepoint,
    Rollback,
    RollbackTo,
    SetSavepoint,
    SetScope,
    SetVariables,
    Use,
)
from rewriter.plans.characteristics import PLAIN, Characteristics, Isolation
from rewriter.route.context import Statement
from rewriter.route.scope import INFORMATION_SCHEMA, Refuse, Unsupported
from rewriter.route.slot_filling import fill_database_facts, fill_slots
from rewriter.route.values import Slots
from rewriter.splice import Template
from rewriter.sql.privileges.beyond import EVERY_DATABASE
from rewriter.sql.privileges.variables import PRIVILEGED
from rewriter.sql.statements.facts import may_touch_tables
from rewriter.sql.statements.forms import Kind
from rewriter.sql.statements.inner import behind_set_statement
from rewriter.sql.statements.table import form_of
from rewriter.text.edits import Edits
from rewriter.text.facts import Span
from rewriter.text.literals import NotPlain, unquote
from rewriter.text.tokens import NAME, STRING, WORD, Source, Unreadable, quote_name
from rewriter.text.written import encoded

from .nowhere import plan_nowhere
from .unsharded import About, by_calls, plan_confined

_NEXT: Final = frozenset({"transaction_isolation", "tx_isolation", "transaction_read_only", "tx_read_only"})
_SCOPES: Final = {
    "GLOBAL": SetScope.GLOBAL, "SESSION": SetScope.SESSION, "LOCAL": SetScope.SESSION,
    "PERSIST": SetScope.PERSIST, "PERSIST_ONLY": SetScope.PERSIST_ONLY,
}  # fmt: skip
_MODES: Final = {
    "READ ONLY": Characteristics(read_only=True),
    "READ WRITE": Characteristics(read_only=False),
    "WITH CONSISTENT SNAPSHOT": Characteristics(snapshot=True),
}


class Words:
    """Walks over a statement's tokens by their words."""

    def __init__(self, source: Source, at: int = 0) -> None:
        self.source = source
        self.at = at

    def take(self, *words: str) -> bool:
        """Step over these words, if they stand here in this order."""
        if all(self.source.is_word(self.at + number, word) for number, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def op(self, *operators: str) -> bool:
        """Step over one of these operators."""
        if self.source.is_op(self.at, *operators):
            self.at += 1
            return True
        return False

    def name(self) -> str:
        """Step over a name. Raises Unreadable when none stands here."""
        if not self.source.is_name(self.at):
            raise Unreadable("expected a name")
        self.at += 1
        return self.source.tokens[self.at - 1].name

    @property
    def done(self) -> bool:
        """Whether this is the end."""
        return self.at >= len(self.source.tokens)

    def finish(self) -> None:
        """Raises Unreadable when this is not the end."""
        if not self.done:
            raise Unreadable(f"unexpected {self.source.tokens[self.at].text}")


def transaction(statement: Statement) -> Plan | None:
    """BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT, RELEASE SAVEPOINT. Raises Unreadable."""
    words = Words(statement.source)
    plan: Plan | None = None
    if statement.source.is_word(0, "BEGIN") and statement.source.is_word(1, "NOT"):
        return None  # MariaDB's BEGIN NOT ATOMIC … END
    if words.take("BEGIN") or words.take("START", "TRANSACTION"):
        plan = _begin(words)
    elif words.take("COMMIT"):
        plan = _end(words, Commit)
    elif words.take("ROLLBACK"):
        words.take("WORK")
        if words.take("TO"):
            words.take("SAVEPOINT")
            plan = RollbackTo(name=words.name())
        else:
            plan = _end(words, Rollback)
    elif words.take("SAVEPOINT"):
        plan = SetSavepoint(name=words.name())
    elif words.take("RELEASE", "SAVEPOINT"):
        plan = ReleaseSavepoint(name=words.name())
    if plan is not None:
        words.finish()
    return plan


def _begin(words: Words) -> Plan:
    words.take("WORK")
    said = PLAIN
    while not words.done:
        mode = next((mode for text, mode in _MODES.items() if words.take(*text.split())), None)
        if mode is None:
            raise Unreadable("expected a transaction mode")
        if mode.over(said) != said.over(mode):
            raise Unreadable("one of READ ONLY and READ WRITE")
        said = mode.over(said)
        if not words.op(","):
            break
    return Begin(characteristics=said)


def _end(words: Words, ending: type[Commit | Rollback]) -> Plan:
    words.take("WORK")
    chain: bool | None = None
    release: bool | None = None
    if words.take("AND", "CHAIN"):
        chain = True
    elif words.take("AND", "NO", "CHAIN"):
        chain = False
    if words.take("RELEASE"):
        if chain:
            raise Unreadable("unexpected RELEASE")
        release = True
    elif words.take("NO", "RELEASE"):
        release = False
    return ending(chain=chain, release=release)


def use(statement: Statement) -> Plan | None:
    """USE database. Raises Unreadable."""
    words = Words(statement.source)
    if not words.take("USE"):
        return None
    database = words.name()
    words.finish()
    databases = () if database.lower() == INFORMATION_SCHEMA else (database,)  # which is everybody's
    return Use(database=database, databases=databases)


def kill(statement: Statement) -> Plan | None:
    """KILL [HARD | SOFT] [CONNECTION | QUERY] id. Raises Unreadable and Refuse."""
    words = Words(statement.source)
    if not words.take("KILL"):
        return None
    flavour = statement.names.env.flavour
    if flavour.kills_by_user and not words.take("HARD"):
        words.take("SOFT")
    query = words.take("QUERY")
    if not query:
        words.take("CONNECTION")
    if statement.source.is_word(words.at, *_KILLED_BY) and words.at + 1 < len(statement.source.tokens):
        if not flavour.kills_by_user:
            raise Unreadable("expected the id of a session")
        raise _unsupported(
            f"KILL {statement.source.at(words.at).text}",
            "SHOW PROCESSLIST, then KILL each session by its Id.",
        )
    texts = Texts(statement)
    target = texts.template(words.at, len(statement.source.tokens))
    return Kill(id=target, query=query, session_slots=tuple(texts.slots.names))


_KILLED_BY: Final = ("USER", "ID", "HARD", "SOFT")


class Texts:
    """Templates of parts of a statement, with the session's values in them."""

    def __init__(self, statement: Statement, *, variables: bool = True) -> None:
        """`variables`: user variables are among the session's values, else left to the server."""
        self.source = statement.source
        self.slots = Slots(len(self.source.literals))
        self.edits = Edits(self.source)
        fill_slots(self.source, self.slots, self.edits, typed=False, variables=variables)

    def template(self, first: int, end: int) -> Template:
        """The tokens from `first` to `end`. Raises Unreadable when there are none."""
        if first >= end or end > len(self.source.tokens):
            raise Unreadable("expected a value")
        return self.edits.template(first, end)


def set_(statement: Statement) -> Plan | None:
    """SET, in all its forms. Raises Unreadable and Refuse."""
    source = statement.source
    words = Words(source)
    if not words.take("SET"):
        return None
    if source.is_word(1, "STATEMENT") and not statement.names.env.flavour.set_var_hints:
        return _set_statement(statement)
    if source.is_word(1, "PASSWORD") and source.is_word(2, "FOR") and not source.is_word(3, "CURRENT_USER"):
        plan = _set_password(statement)
        if plan is not None:
            return plan
    if source.is_word(1, "PASSWORD", "ROLE", "RESOURCE") or words.take("DEFAULT", "ROLE"):
        raise _not_passed_on(f"SET {source.tokens[1].text}")
    texts = Texts(statement, variables=False)
    home = plan_confined(statement)
    if home is None:
        fill_database_facts(source, texts.edits)
    databases = home.databases if home is not None else ()
    assignments = _transaction(words)
    if not assignments:
        assignments = _assignments(words, texts)
    words.finish()
    flavour = statement.names.env.flavour
    if any(_for_admins(one, flavour) or one.scope in FOR_ALL for one in assignments):
        databases = (*databases, EVERY_DATABASE)
    if all(one.constant for one in assignments):
        home = None
    reads_tables = any(source.is_word(at, "FROM", "TABLE") for at in range(len(source.tokens)))
    effects = statement.effects
    if home is not None and effects is not None and effects.locks and not (effects.calls or reads_tables):
        home = None  # named locks are on the host of statements without tables
    if home is None and reads_tables:
        raise _unsupported("a subquery in SET", "SELECT the value first.")
    if home is None and effects is not None and effects.calls:
        home = by_calls(statement)
    return SetVariables(
        access=Access.ADMIN if any(_for_admins(one, flavour) for one in assignments) else Access.NONE,
        databases=databases,
        assignments=tuple(assignments),
        session_slots=tuple(texts.slots.names),
        home=home,
        reads_tables=reads_tables or may_touch_tables(source, flavour=flavour),
        effects=effects,
    )


def _for_admins(assignment: Assignment, flavour: Flavour) -> bool:
    """Whether servers want a privilege for it that is not about rows. SET GLOBAL has an error of its own."""
    privileged = assignment.scope is SetScope.SESSION and assignment.name in PRIVILEGED[flavour.name]
    return privileged or assignment.scope in (SetScope.PERSIST, SetScope.PERSIST_ONLY)


def _set_password(statement: Statement) -> Plan | None:
    """SET PASSWORD FOR an account of the servers, where it is clear of which."""
    return plan_confined(statement) or plan_nowhere(statement, About())


def _set_statement(statement: Statement) -> Plan:
    """MariaDB's SET STATEMENT … FOR statement: one host gets it whole, or the inner statement is planned by
    itself. Raises Unreadable and Refuse.
    """
    source = statement.source
    at = behind_set_statement(source)
    form = form_of(source, at)
    if form.kind is Kind.UNKNOWN:
        raise Unreadable("expected a statement")
    reads = any(
        source.is_name(place) and source.at(place).name.lower() == "sql_mode" for place in range(2, at - 1)
    )
    by_itself = form.kind in (Kind.SHOW, Kind.SET, Kind.USE) and not reads  # the proxy must see these
    if not (form.behind_set_statement or by_itself):
        raise Refuse(
            "unsupported",
            what=f"SET STATEMENT … FOR {form.words}",
            reason="only what a server runs by itself may stand behind FOR",
            alternative="SET SESSION the variables before the statement, and set them back behind it.",
        )
    for one in range(2, at - 1):
        if not (source.is_name(one) and _OF_READING.match(source.at(one).name)):
            continue
        name = source.at(one).name
        if name.lower() == "sql_mode" and _reads_alike(statement, one + 1):
            continue
        raise Refuse(
            "unsupported",
            what=f"SET STATEMENT {name}",
            reason="it could change how the statement behind it is read",
            alternative=f"SET SESSION {name} before the statement, and set it back behind it.",
        )
    plan = None if by_itself else plan_confined(statement)
    if plan is not None and plan.session_slots and form.kind is Kind.QUERY:
        with suppress(Refuse, Unreadable):  # columns keep their names, which are read in a query by itself
            return _for_one_statement(statement, at)
    return plan or _for_one_statement(statement, at)


def _for_one_statement(statement: Statement, at: int) -> Plan:
    """SET STATEMENT of a statement at `at` that several servers may run."""
    source, flavour = statement.source, statement.names.env.flavour
    if flavour.set_var_hints:
        raise Unreadable("expected a variable")  # a server has its own words for it
    variables = []
    words = Words(source, 2)
    while words.at < at:
        name = words.name()
        if not words.op("=", ":="):
            raise Unreadable("expected a value")
        if _OF_CONNECTIONS.match(name) or _OF_READING.match(name):
            raise _unsupported(f"SET STATEMENT {name}", f"SET SESSION {name} before the statement.")
        variables.append(name.lower())
        while words.at < at - 1 and not source.is_op(words.at, ","):
            computed = source.is_op(words.at, "(", ":=", "?") or source.is_word(words.at, "NEXT", "PREVIOUS")
            if computed or words.at in source.marks:
                raise _unsupported(f"an expression for {name}", "Give the variable a plain value.")
            words.at += 1
        words.at += 1  # the comma, or FOR
    texts = Edits(source)
    return SetStatement(
        variables=tuple(variables),
        assignments=texts.template(2, at - 1),
        inner=texts.template(at),
    )


def _reads_alike(statement: Statement, at: int) -> bool:
    """Whether the text `= 'modes'` at a token gives an sql_mode under which statements are read as under the
    session's: both have none of the modes that matter.
    """
    source, env = statement.source, statement.names.env
    value = source.at(at + 1)
    if not source.is_op(at, "=") or value.kind != STRING or value.literal < 0:
        return False
    if not (source.is_op(at + 2, ",") or source.is_word(at + 2, "FOR")):
        return False
    if env.ansi_quotes or env.no_backslash_escapes or env.pipes_as_concat:
        return False
    if env.high_not_precedence or env.ignore_space:
        return False
    try:
        modes = unquote(source.literals[value.literal], True).decode("ascii").upper().split(",")
    except (NotPlain, UnicodeDecodeError):
        return False
    statement.guard(Span(at + 1, at + 2))
    return _NOT_OF_READING.issuperset(modes)


_NOT_OF_READING: Final = frozenset(
    {
        "",
        "ALLOW_INVALID_DATES",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "NO_AUTO_VALUE_ON_ZERO",
        "NO_ENGINE_SUBSTITUTION",
    }
    | {"NO_UNSIGNED_SUBTRACTION", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ONLY_FULL_GROUP_BY", "REAL_AS_FLOAT"}
    | {"PAD_CHAR_TO_FULL_LENGTH", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES", "TRADITIONAL"}
)
"""Modes of sql_mode that do not change how a text is read."""

#: Variables that change how a text is read, or how its bytes are.
_OF_READING: Final = re.compile(
    "sql_mode|character_set_|collation_|autocommit|completion_type", re.IGNORECASE
)
#: Variables that belong to one connection, or to the transaction on it, so that no other can be given them.
_OF_CONNECTIONS: Final = re.compile(
    "last_insert_id|identity|insert_id|rand_seed|session_track_|gtid_|pseudo_|tx_|transaction_"
    "|binlog_|sql_log_bin|skip_replication|wsrep_",
    re.IGNORECASE,
)


def _unsupported(what: str, alternative: str = "") -> Refuse:
    """The refusal of a statement that only shards would have to run."""
    return Unsupported(what=what, reason="the proxy does not pass it on", alternative=alternative)


def _not_passed_on(what: str, alternative: str = "") -> Refuse:
    """The refusal of a statement that the proxy passes on to no server."""
    return Refuse("unsupported", what=what, reason="the proxy does not pass it on", alternative=alternative)


def _transaction(words: Words) -> list[Assignment]:
    """SET [scope] TRANSACTION …; nothing when it is something else."""
    start = words.at
    scope = SetScope.NEXT
    for word, meaning in _SCOPES.items():
        if words.take(word):
            scope = meaning
            break
    if not words.take("TRANSACTION"):
        words.at = start
        return []
    found = []
    while True:
        if words.take("ISOLATION", "LEVEL"):
            level = next((one for one in Isolation if words.take(*one.value.split())), None)
            if level is None:
                raise Unreadable("expected an isolation level")
            value = Template((level.literal,))
            found.append(Assignment(scope=scope, name="transaction_isolation", value=value))
        elif words.take("READ", "ONLY"):
            found.append(Assignment(scope=scope, name="transaction_read_only", value=Template((b"1",))))
        elif words.take("READ", "WRITE"):
            found.append(Assignment(scope=scope, name="transaction_read_only", value=Template((b"0",))))
        else:
            raise Unreadable("expected a transaction characteristic")
        if len({one.name for one in found}) < len(found):
            raise Unreadable("a transaction characteristic stands twice")
        if not words.op(","):
            return found


def _assignments(words: Words, texts: Texts) -> list[Assignment]:
    found = []
    sticky = SetScope.SESSION
    while True:
        end = _item_end(texts.source, words.at)
        special = _names(words, texts, end)
        if special is not None:
            found.append(special)
        else:
            assignment, sticky = _assignment(words, texts, end, sticky)
            found.append(assignment)
        words.at = end
        if not words.op(","):
            return found


def _item_end(source: Source, at: int) -> int:
    while at < len(source.tokens) and not source.is_op(at, ","):
        at = source.closing.get(at, at) + 1
    return at


def _names(words: Words, texts: Texts, end: int) -> Assignment | None:
    """NAMES …, CHARACTER SET … or CHARSET …"""
    source = texts.source
    if source.is_op(words.at + 1, "=", ":="):
        return None
    names = words.take("NAMES")
    if not names and not words.take("CHARACTER", "SET") and not words.take("CHARSET"):
        return None
    scope = SetScope.NAMES if names else SetScope.CHARSET
    charset = collate = None
    if not words.take("DEFAULT"):
        charset = _charset(texts, words.at)
        words.at += 1
    if names and words.take("COLLATE"):
        collate = _charset(texts, words.at)
        words.at += 1
    if words.at != end:
        raise Unreadable("expected the end")
    return Assignment(scope=scope, name=scope, value=charset, collate=collate, constant=bool(names))


def _charset(texts: Texts, at: int) -> Template:
    """A character set's or collation's name, as written."""
    token = texts.source.at(at)
    if token.kind not in (WORD, NAME, STRING):
        raise Unreadable("expected a name")
    if token.kind == STRING:
        return texts.template(at, at + 1)
    if token.kind == NAME:  # `default` is no keyword
        return Template((quote_name(token.name),))
    return Template((encoded(token.name),))


def _assignment(words: Words, texts: Texts, end: int, sticky: SetScope) -> tuple[Assignment, SetScope]:
    source = texts.source
    token = source.at(words.at)
    scope, name = sticky, ""
    if token.kind == "variable":
        scope, name = SetScope.USER, token.text
        words.at += 1
    elif token.kind == "system":
        scope, name = _system_variable(token.text)
        words.at += 1
    else:
        for word, meaning in _SCOPES.items():
            if source.is_name(words.at + 1) and words.take(word):
                scope = sticky = meaning
                break
        name = words.name().lower()
        while words.op("."):
            name += "." + words.name().lower()
    if not words.op("=", ":=") or words.at >= end:
        raise Unreadable("expected =")
    default = end - words.at == 1 and source.is_word(words.at, "DEFAULT")
    value = None if default else texts.template(words.at, end)
    constant = end - words.at == 1 or (end - words.at == 2 and source.is_op(words.at, "-", "+"))
    constant = constant and source.at(end - 1).kind != "system"
    return Assignment(scope=scope, name=name, value=value, constant=constant), sticky


def _system_variable(text: str) -> tuple[SetScope, str]:
    """@@name or @@scope.name to scope and name."""
    first, dot, rest = text[2:].partition(".")
    if dot and first.upper() in _SCOPES:
        return _SCOPES[first.upper()], rest
    return (SetScope.NEXT if text[2:] in _NEXT else SetScope.SESSION), text[2:]
