"""What a statement would cost over shards, and what would make it cost less: for `shardgate advise` and SHOW
PROXY ADVICE. Nothing here is part of any plan, and nothing of it runs unless somebody asks.

samples    statements that stand for many: of a fingerprint, of a digest of a server's own
cost       a statement's plan as a way and a number of shards
clauses    what the conditions of a statement say of its tables' columns
words      how tables and columns are called that do not exist yet
changes    changes of the schema, and the statement planned again with one
remedies   which of them would help: every one that is named was tried
"""
