-- Turns that begin later: `after_seconds`.

-- When it takes its place in the order of its thread; null once it has, and for a turn that never waited for a time.
ALTER TABLE turns.turn ADD COLUMN due_at timestamptz;
