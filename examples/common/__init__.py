"""What both web examples share.

demo      the running demo, and tables added to it
database  the mapped classes' base, sessions for reads and transactions that are run again when they must be
people    users: who signs in, and who is made
web       the server: routes whose handlers get a session, JSON, errors, headers
page/     style and script of both pages
"""
