"""The MySQL protocol without I/O: bytes in, values or bytes out.

Nothing in this package awaits, opens a socket or keeps a global. Read in this order:

`constants`   capability, status and command numbers `packets`     framing, length-encoded values, OK/ERR/EOF,
the reader of a client's command packets `handshake`   greeting and response;  `auth`  scrambles;
`server_auth`  a client logs in;  `login`  we log in to a server `charsets`    collation numbers and what they
belong to `resultset`   column definitions and text rows, built and read `replies`     where a server's reply
ends, found without decoding its rows;  `rows`  a result set taken apart for merging
"""
