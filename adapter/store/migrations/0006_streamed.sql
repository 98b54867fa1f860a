-- Tokens and custom events are stored before their task gets to its end: whose they are, so that they can be taken back.

-- The checkpoint namespace of the task; null for events that are stored with what they tell of.
ALTER TABLE turns.event ADD COLUMN task text;
