"""What the servers say of themselves: facts, columns, routines, rows of reference tables."""
