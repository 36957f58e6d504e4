"""The second reader: a statement's tree, made by sqlglot out of the exact tokens.

start      whether this installation of sqlglot can be used: version, build, self-test; imported when needed
lexemes    exact tokens to sqlglot's
dialect    MySQL's grammar where sqlglot's differs; nodes know their tokens
tree       the tree of a statement: its clauses, to compare with the reader's, and its conditions
terms      conditions as small values, which the rest of the rewriter works with

Nothing here changes a statement's text, and nothing outside of this room imports sqlglot.
"""
