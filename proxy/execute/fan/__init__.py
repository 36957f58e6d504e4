"""One SELECT on several hosts, and the one result that is made of it."""
