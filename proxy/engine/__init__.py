"""A statement at work: what all ways of running one share."""
