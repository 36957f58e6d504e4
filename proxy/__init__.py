"""The proxy: clients on one side, servers on the other, sessions and plans between them.

Read the room in this order:

    wire/          the protocol: bytes to values and back; no sockets, no await
    session/       a client's connection: log-in, commands, what a session has set
    backends/      connections to the servers: log-in, pools, one reply at a time
    execute/       plans at work: one host, several, merged, gathered, written
    local/         what the proxy answers by itself: SET, SHOW, transactions, the logical view
    status/        metrics, probes and the status page
    services.py    what one worker's clients share
    tables.py, facts.py
                   what the servers say of their tables and of themselves
    app.py, server.py, cli.py
                   one worker; the process that supervises them; the command

    errors.py      every error that a client can meet
"""
