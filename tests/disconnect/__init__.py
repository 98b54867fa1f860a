"""What becomes of bookings when clients leave, write again at once, or write twice: measured, ours and by hand.

`python -m tests.disconnect` prints the tables; `test_disconnect.py` asserts what must hold for ours. A round's
walk: `rounds.py` (what the client does) ► `client.py` ► `served.py` (the processes), and back
`trees.py` and `counts.py` (what is left behind) ► `tables.py`.
"""
