"""The proxy: clients on one side, servers on the other, sessions and plans between them.

Read the room in this order:

    wire/          the protocol: bytes to values and back; no sockets, no await
    backends/      connections to the servers: log-in, pools, one reply at a time
    session/       what a client has set and opened
    catalog/       what the servers say of their tables and of themselves
    planning/      planning in processes of its own
    engine/        a statement at work: what all ways of running one share
    execute/       the ways: several hosts, merged, gathered, written, prepared
    local/         what the proxy answers by itself: SET, SHOW, transactions, the logical view
    pipeline.py    from a plan to its way
    frontend/      the client's socket: connection, log-in, commands
    status/        metrics, probes and the status page
    app.py, server.py, cli.py
                   one worker; the process that supervises them; the command

    errors.py      every error that a client can meet
"""

from .interpreted import choose

choose()
