"""What an operator writes, and where it comes from.

Read the room in this order:

    layout.py      how the 64 bits of an ID are cut (data, not code)
    schema.py      the logical tables: their kind, where they live, how a row is routed
    ranges.py      the ranges of a keyspace, in columns: there may be 65,536
    topology.py    which host holds which shard; what the data path looks up
    address.py     how a server or a listener is written
    document.py    YAML or JSON text to plain values, with the line of every field
    runs.py, json_lines.py
                   large documents: long lists of YAML, and the lines of JSON, without YAML's parser
    validation.py  such a document checked by a pydantic model; problems are collected, none stops it
    read_schema.py, columns.py
                   the schema document; what each kind of table needs of its columns
    read_topology.py, read_ranges.py
                   the topology document; how its ranges must lie; many ranges in bulk
    checks.py      what must hold between a schema and a topology, and between two versions of one
    units.py, fields.py
                   durations, sizes, paths, ID layouts and the like as documents write them
    settings.py    listen addresses, users, backends, limits, time-outs
    load.py        the front door: files and texts in, models out, or one ConfigError that lists all
    apart.py       a large topology read in a process of its own
    sources/       where a topology comes from while the proxy runs: a file, or ZooKeeper

The models are frozen: a new topology is a new object, never a changed one. This room imports nothing
of the others.
"""
