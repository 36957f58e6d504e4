"""Room between the rows of lists that clients reorder: the arithmetic, and making more of it."""
