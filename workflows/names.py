"""Owns the names that cross process boundaries: workflows, activities, updates, queries, error types.

A name here is stored in Temporal's histories: renaming one breaks runs in flight.
"""

from __future__ import annotations

TURN_WORKFLOW = "Turn"
HANDOVER_WORKFLOW = "HandOver"
DELAY_WORKFLOW = "Delay"
WEBHOOK_WORKFLOW = "Webhook"
SWEEP_WORKFLOW = "Sweep"
SWEEP_SCHEDULE = "turns-sweep"
PRUNE_WORKFLOW = "Prune"
PRUNE_SCHEDULE = "turns-prune"
EXPIRE_WORKFLOW = "Expire"
EXPIRE_SCHEDULE = "turns-expire"

# LangGraph node names cannot contain a colon, so these never collide with an activity named after a node.
BEGIN = "turn:begin"
ADVANCE = "turn:advance"
FINISH = "turn:finish"
RECORD_FAILURE = "turn:record_failure"
HAND_OVER = "turn:hand_over"
COMPENSATE = "turn:compensate"
FALL_DUE = "turn:fall_due"
WEBHOOK = "turn:webhook"
SWEEP = "turn:sweep"
PRUNE = "turn:prune"
EXPIRE = "turn:expire"

SUBMIT = "submit"
CANCEL = "cancel"
ROLL_BACK = "roll_back"
PROGRESS = "progress"

TURN_FAILED = "TurnFailed"
STALE_ATTEMPT = "StaleAttempt"
SUPERSEDED = "Superseded"
UNDONE = "Undone"
NOT_FOUND = "NotFound"
COMPENSATION_FAILED = "CompensationFailed"
WORKER_STOPPED = "WorkerStopped"


def workflow_id(thread_id: str) -> str:
    """Returns the workflow id of a thread: one running workflow a thread is what makes one running turn a thread."""
    return f"thread/{thread_id}"
