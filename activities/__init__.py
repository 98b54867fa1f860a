"""The activities: the bridge between workflow and LangGraph; `worker.py` composes them."""
