"""Many streams on few processes: measured, and what must hold is asserted.

`python -m tests.load` (or `make load`) prints two tables and exits with 1 if something does not hold. `idle.py`
(streams that wait next to turns that run) and `cuts.py` (clients that die anywhere in a stream) play on `served.py`'s
processes, with `client.py`'s clients; `judgement.py` says what broke.
"""
