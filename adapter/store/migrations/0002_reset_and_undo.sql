-- What a turn needs to be done again from an earlier checkpoint (Reset), taken back (rollback) or undone (compensation).

ALTER TABLE turns.turn
    -- Temporal's run that runs the turn now, and the one it began in (as `original_execution_run_id`, which a run made
    -- by Reset keeps): a step that finds another run here was reset, or goes on with a long turn in its next run.
    ADD COLUMN run_id text,
    ADD COLUMN begun_in text,
    -- The thread's checkpoint, origin and status before the turn; NULL is a thread without any.
    ADD COLUMN base text,
    ADD COLUMN prior_origin uuid,
    ADD COLUMN prior_thread jsonb,
    -- It ended at an interrupt or a static breakpoint: the next turn may continue it.
    ADD COLUMN waits boolean NOT NULL DEFAULT false,
    -- Its effects are, or were, compensated: it cannot be retried or continued any more.
    ADD COLUMN undone boolean NOT NULL DEFAULT false;

-- How the thread was left by the last turn that ended, for a turn that is rolled back.
ALTER TABLE turns.thread
    ADD COLUMN rest_status text NOT NULL DEFAULT 'idle',
    ADD COLUMN rest_error jsonb;

-- Pending writes of the checkpoint that a turn starts from, and of subgraphs that wait in it. A turn adds to these rows
-- (an answer, results), so a rollback, or a Reset to its beginning, puts them back. Gone when the next turn begins.
CREATE TABLE turns.base_write (
    turn_id       uuid NOT NULL REFERENCES turns.turn ON DELETE CASCADE,
    thread_id     uuid NOT NULL,
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
CREATE INDEX base_write_thread ON turns.base_write (thread_id);

ALTER TABLE turns.effect
    ADD COLUMN finished_at timestamptz,
    -- Of effects with `compensate=`: where the function is ("module:qualname"), and how often it was called.
    ADD COLUMN compensate text,
    ADD COLUMN compensations integer NOT NULL DEFAULT 0,
    -- The turn whose failure or rollback has it undone; no reference, since that turn's row may go first.
    ADD COLUMN undone_by uuid,
    DROP CONSTRAINT effect_state_check,
    -- finished ► compensating (its turn failed or was rolled back) ► compensated | uncompensated (given up; `error`)
    ADD CONSTRAINT effect_state_check CHECK (
        state IN ('started', 'finished', 'failed', 'compensating', 'compensated', 'uncompensated'));
CREATE INDEX effect_turn ON turns.effect (turn_id);
CREATE INDEX effect_undone_by ON turns.effect (undone_by) WHERE undone_by IS NOT NULL;
