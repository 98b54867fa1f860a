"""The soak: many conversations on a whole local stack whose processes are killed, or restarted, all the time.

`python -m tests.soak` (or `make soak`) prints a table and exits with 1 if a turn was lost or an effect doubled.
"""
