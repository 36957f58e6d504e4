"""A statement's text: tokens, clauses, what its words leave behind. Knows no schema."""
