"""Planning in processes of their own: what may take long stops nobody.

protocol    what goes over the socket between the two
process     the process: statements in, plans out
pool        the loop's side: who is next, and what becomes of a process that takes too long
"""
