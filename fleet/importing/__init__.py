"""From one unsharded database to shards: `shardgate propose` and `shardgate fleet import`.

    definitions   CREATE TABLEs, of a dump or a server, as values
    second        what sqlglot sees in them
    names         those that a schema can have
    kinds         what each table could be over shards: pure
    proposal      the two documents that a person edits: schema and plan
    source        the database that is imported
    plan          the plan's document
    tables        what the plan, the schema and both servers' columns say of each table together
    ids           the map of old to new IDs, a hashed table
    rows          one range of one table: copied, or compared and mended
    ranges        all ranges of a table, here or on a Dask cluster
    importing     the tool

A new ID keeps the old number as its local part: `shard | type | old`. So the map is needed for the shard
only, rows of one shard keep their order, and whatever is done twice is done to the same row.
"""
