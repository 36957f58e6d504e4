"""`shardgate advise`: logs of an application read, its statements counted by kind, and what is said of them.

lines      a log's lines, whatever their length, also of stdin and of what is compressed
entries    what all formats give, and what of a log cannot be used
general    the general log           slow       the slow query log
digests    performance_schema's digests, exported        script     SQL
logs       which of these a file is
tally      the kinds of statements, counted and planned
findings   what there is to say about them
report     the same for people         document   and for programs
"""
