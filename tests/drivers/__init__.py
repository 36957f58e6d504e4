"""Real clients, each run through the proxy and on one plain server: the answers must be the same.

`checks.yaml` says what they do, the programs in clients/ do it with one driver each, `matrix.py` runs the
programs and compares. `python -m tests.drivers` prints the table of docs/drivers.md from a run.
"""
