"""Spans of statements, for a collector of OpenTelemetry.

A *trace* is what a client's operation has caused anywhere; it has an ID, which comes with a statement as its
`traceparent` (W3C Trace Context): as a query attribute, or in a comment as sqlcommenter writes it. A *span*
is one piece of work in it. The proxy adds one for the statement, and within it one for each statement that a
server got for it, whose ID is handed on to that server.

`context` reads and writes traceparents, `spans` is what is noted while a statement is at work, `otlp` what a
collector gets of it, `export` sends it.
"""
