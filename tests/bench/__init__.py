"""What a turn costs, next to what one would use instead: `python -m tests.bench` (or `make bench`, 20 minutes).

Each scenario (`tests/bench/scenarios/`) runs this project and its alternatives in turns (A B C A B C …) on the same
PostgreSQL and the same Temporal server, prints a table of medians with least and greatest, with ratios made round by
round, and all of it goes into a JSON file. `python -m tests.bench turns history` runs some of them; `--rounds`,
`--contenders` and `--out` say more. Contenders:

- `ours`: `turns worker` and `turns api` as processes, asked over HTTP;
- `plain`: the same graph in a FastAPI handler with LangGraph's PostgreSQL saver, durability "sync";
- `plugin`: Temporal's own LangGraph plugin (`temporalio-langgraph`), asked by Temporal's client without HTTP;
- `aegra`: `aegra-api`.

All but ours run in environments of their own, `.turns/bench/<name>`, made from `served/<name>.txt`, versions and
hashes only, which `uv pip compile <name>.in --universal --python-version 3.11 --generate-hashes --no-emit-index-url
--no-annotate --no-header -o <name>.txt` writes. What they run there is `tests/bench/served/`, and nothing else of this
project; `contenders/` starts it. One that cannot be installed, or fails, is told of below the table, and the rest goes
on.

Targets are ratios within one run, since absolute numbers are the machine's. An idle machine measures best.
"""

import warnings

# By the embedded PostgreSQL's package, at import, on a machine without a login session.
warnings.filterwarnings("ignore", "XDG_RUNTIME_DIR is not set")
