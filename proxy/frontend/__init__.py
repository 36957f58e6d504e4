"""The client's socket: connection, log-in, commands, compression, and who is connected."""
