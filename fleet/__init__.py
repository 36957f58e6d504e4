"""Tools over many hosts: databases, tables and accounts.

Imports ``config`` only. Everything here talks to the MySQL servers directly, never through the proxy.
"""
