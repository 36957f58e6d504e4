"""Privileges that a statement asks for, with the databases and tables that it names."""
