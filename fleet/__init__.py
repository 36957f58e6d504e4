"""Tools over many hosts: create databases and tables, run a local demo cluster.

Imports ``config`` only. Everything here talks to the MySQL servers directly, never through the proxy.
"""
