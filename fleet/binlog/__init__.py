"""`shardgate fleet changes`: what is written to the shards, read from the masters' binary logs, under its
logical names.

    gtids         which transactions have been read
    logical       a row of a shard as clients know it
    transactions  from a binary log's events to its committed transactions
    stream        one host's binary log, read in a thread (mysql-replication, when the command is used)
    positions     where to go on, kept in a file
    follow        all hosts of the topology, and what follows when it changes
"""
