"""Mixed traffic of many kinds of clients for minutes or hours, with faults, and every answer checked.

    make soak ARGS="--minutes 10 --flavour mariadb --seed 7"

`clients.py` and `readers.py` are the traffic, `faults.py` what goes wrong meanwhile, `journal.py` what was
answered and whether that may be, `ledger.py` what must be on the servers at the end, `figures.py` what the
proxy's processes hold. docs/soak.md is the record.
"""
