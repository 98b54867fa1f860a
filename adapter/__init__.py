"""LangGraph, gated: what runs inside an activity. Node code needs two names of it, `effect` and `idempotency_key`."""
