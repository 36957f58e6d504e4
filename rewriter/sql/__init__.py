"""Statements of SQL as MySQL and MariaDB know them."""
