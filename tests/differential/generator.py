"""Cases from a seed: case `number` depends on the seed, the number and the catalog only."""

from __future__ import annotations

import random
from dataclasses import dataclass

from config.schema import Kind
from tests.differential.catalog import Catalog
from tests.differential.gathers import Gathers
from tests.differential.joins import Joins
from tests.differential.parts import Case, Statement
from tests.differential.selects import Selects
from tests.differential.writes import Writes

READS, WRITES, TRANSACTIONS, MISTAKES = 0.78, 0.12, 0.06, 0.04
GATHERS = 0.2  # of the reads
JOINS = 0.2  # of these
SESSION = (
    "SELECT 1",
    "SELECT DATABASE()",
    "SELECT 1 + 1 AS two, 'x' x, NULL",
    "SELECT @@sql_mode",
    "SELECT 1 FROM DUAL WHERE 1 = 0",
    "DO 1",
    "SELECT CONNECTION_ID() > 0",
)
EMPTY = ("", " ", ";", "/* x */", "-- x", "# x", "/*!99999 SELECT 2 */", "/*!40000 SELECT 2 */", "/**/ ;")


@dataclass(frozen=True)
class Generator:
    """`beyond`: the share of statements that single shards do not answer. `reads_only`: nothing is changed.
    `gathers`: the share of reads over several tables, or over groups of rows; `joins`: that of joins by an ID
    among these.
    """

    catalog: Catalog
    seed: int
    beyond: float = 0.06
    reads_only: bool = False
    gathers: float = GATHERS
    joins: float = JOINS

    def case(self, number: int) -> Case:
        """Case `number`, 0 and up."""
        rng = random.Random(f"{self.seed}:{number}")
        form = rng.random()
        if form > READS and self.reads_only:
            form = READS * form
        if form < READS * self.gathers:
            by_id = form < READS * self.gathers * self.joins
            statement = (Joins if by_id else Gathers)(rng, self.catalog).statement()
            return Case(number, statement.kind, (statement,))
        if form < READS:
            statement = Selects(rng, self.catalog).statement(beyond=self.beyond)
            return Case(number, statement.kind, (statement,))
        if form < READS + WRITES:
            writes = Writes(rng, self.catalog, number).batch(2 * self.beyond)
            return Case(number, "writes", tuple(writes))
        if form < READS + WRITES + TRANSACTIONS:
            return Case(number, "transaction", tuple(Writes(rng, self.catalog, number).transaction()))
        return Case(number, "mistakes and the session", (self._mistake(rng),))

    def _mistake(self, rng: random.Random) -> Statement:
        """What must fail alike, and statements without tables."""
        table = rng.choice(self.catalog.kinds(Kind.OBJECT, Kind.MAPPING, Kind.SINGLE))
        key = rng.choice(table.keys)
        name = table.routing or table.columns[0].name
        where = f"WHERE {name} = {key!r}"
        if not self.catalog.mysql:
            # (MySQL looks for it in the current database, and a shard's connection has none: another error)
            where += " AND NO_SUCH_FUNCTION(1)" if rng.random() < 0.05 else ""
        choices = (
            f"SELECT missing FROM {table.name} {where}",
            f"SELECT * FROM {table.name} {where} AND missing = 1",
            f"SELECT * FROM missing {where}",
            f"SELECT * FROM {self.catalog.database}.missing",
            f"SELECT * FROM nowhere.{table.name}",
            f"SELEC * FROM {table.name} {where}",
            f"SELECT FROM {table.name} {where}",
            f"SELECT * FROM {table.name} {where} ORDER BY missing",
            f"SELECT * FROM {table.name} {where} AND",
            f"SELECT x.id FROM {table.name} {where}",
            f"SELECT * FROM {table.name} {where} LIMIT -1",
            f"SELECT *, * FROM {table.name} {where}",
            f"UPDATE {table.name} SET missing = 1 {where}",
            f"DELETE FROM missing {where}",
            f"INSERT INTO {table.name} ({name}, missing) VALUES ({key!r}, 1)",
            *rng.sample(EMPTY, 2),
            *SESSION,
        )
        return Statement(rng.choice(choices), "mistakes and the session", exact_warnings=True)
