-- What a turn needs to be done again from an earlier checkpoint (Reset), taken back (rollback) or undone (compensation).

ALTER TABLE turns.turn
    -- Temporal's run that runs the turn now, and the one it began in (as `original_execution_run_id`, which a run made
    -- by Reset keeps): a step that finds another run here was reset, or goes on with a long turn in its next run.
    ADD COLUMN run_id text,
    ADD COLUMN begun_in text,
    -- The thread's checkpoint and origin before the turn; NULL is a thread without any.
    ADD COLUMN base text,
    ADD COLUMN prior_origin uuid,
    -- It ended at an interrupt or a static breakpoint: the next turn may continue it.
    ADD COLUMN waits boolean NOT NULL DEFAULT false,
    -- Its effects are, or were, compensated: it cannot be retried or continued any more.
    ADD COLUMN undone boolean NOT NULL DEFAULT false;

-- Pending writes of the checkpoint that a turn starts from, and of subgraphs that wait in it. A turn adds to these rows
-- (an answer, results), so a rollback puts them back. Gone with the turn's end, unless it failed.
CREATE TABLE turns.base_write (
    turn_id       uuid NOT NULL REFERENCES turns.turn ON DELETE CASCADE,
    checkpoint_ns text NOT NULL,
    checkpoint_id text NOT NULL,
    task_id       text NOT NULL,
    idx           integer NOT NULL,
    channel       text NOT NULL,
    type          text,
    blob          bytea NOT NULL,
    task_path     text NOT NULL,
    PRIMARY KEY (turn_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

ALTER TABLE turns.effect
    ADD COLUMN finished_at timestamptz,
    -- Of effects with `compensate=`: where the function is ("module:qualname"), and how often it was called.
    ADD COLUMN compensate text,
    ADD COLUMN compensations integer NOT NULL DEFAULT 0,
    DROP CONSTRAINT effect_state_check,
    -- finished ► compensating (its turn failed or was rolled back) ► compensated | uncompensated (given up; `error`)
    ADD CONSTRAINT effect_state_check CHECK (
        state IN ('started', 'finished', 'failed', 'compensating', 'compensated', 'uncompensated'));
CREATE INDEX effect_turn ON turns.effect (turn_id);
