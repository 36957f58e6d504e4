"""Two readings of one text: the proxy's, and the server's.

`grammar` makes statements that look harmless to one reader and not to another. `judge` runs each on a server
with an account that may only use the database `legacy`, and through a proxy whose own account may do all:
what the server refuses the proxy must not let through. `routes` does the same for rows: a statement
over shards must find what it finds on one server that holds all of them.
"""
