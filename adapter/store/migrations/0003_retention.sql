-- What the deletion of old events needs (`event_retention`), and the list of abandoned work.

-- When the turn's events were deleted. A turn that ends once more after that, retried by Reset, has new ones.
ALTER TABLE turns.turn ADD COLUMN pruned_at timestamptz;

-- Ended turns that may have events, the oldest first. No column that changes with each stored event is in it (not
-- `last_offset`): those updates touch no index (HOT).
CREATE INDEX turn_prunable ON turns.turn (updated_at)
    WHERE status NOT IN ('pending', 'running') AND (pruned_at IS NULL OR pruned_at < updated_at);

-- Turns that failed or were cancelled, the newest first.
CREATE INDEX turn_broken ON turns.turn (updated_at DESC, turn_id) WHERE status IN ('error', 'interrupted', 'timeout');
