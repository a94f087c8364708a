"""The Python API: one function for every verb of the command line, with its names and defaults.

The command line calls these functions, too; what it adds is printing. `certiformer` gives them to users, with errors that
speak of arguments (`certiformer.arguments`).
"""
