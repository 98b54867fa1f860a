"""The contenders: each owns the processes of one way to run the graphs of `tests/bench/served/graphs.py`."""
