"""The one place that says what each kind of statement is.

    forms.py             the fields of a row, and the values that they may have
    data.py, definitions.py, sessions.py, administration.py, shows.py
                         the rows: a `StatementForm` for each statement of the two reference manuals
    table.py             the rows by the words that they begin with; `form_of` finds the row of a statement

Code that must know what kind of statement it has asks the form, and never compares verbs.
"""
