-- Threads, turns, their events, the fence and the effect journal.
-- LangGraph's own tables (checkpoints, checkpoint_blobs, checkpoint_writes, store) are made by LangGraph's savers.

CREATE TABLE turns.thread (
    thread_id        uuid PRIMARY KEY,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    state_updated_at timestamptz NOT NULL DEFAULT now(),
    metadata         jsonb NOT NULL DEFAULT '{}',
    config           jsonb NOT NULL DEFAULT '{}',
    -- idle ► busy (a turn is recorded) ► idle | interrupted | error (its last turn ended so) ► busy …
    status           text NOT NULL DEFAULT 'idle' CHECK (status IN ('idle', 'busy', 'interrupted', 'error')),
    interrupts       jsonb NOT NULL DEFAULT '{}',
    error            jsonb,
    -- The turn that idempotency keys of the thread's open superstep are derived from (I7).
    origin           uuid,
    last_seq         bigint NOT NULL DEFAULT 0
);
CREATE INDEX thread_metadata ON turns.thread USING gin (metadata jsonb_path_ops);
CREATE INDEX thread_updated_at ON turns.thread (updated_at DESC);

CREATE TABLE turns.turn (
    turn_id      uuid PRIMARY KEY,
    thread_id    uuid NOT NULL REFERENCES turns.thread ON DELETE CASCADE,
    -- Order of acceptance on the thread; turns of a thread run in this order.
    seq          bigint NOT NULL,
    graph_id     text NOT NULL,
    assistant_id uuid NOT NULL,
    -- pending ► running (begin) ► success | error | interrupted (finish, record_failure)
    -- pending ► interrupted (cancelled before it began); error ► running (retried from Temporal's UI)
    status       text NOT NULL DEFAULT 'pending'
                 CHECK (status IN ('pending', 'running', 'success', 'error', 'interrupted', 'timeout')),
    request      jsonb NOT NULL,
    request_hash bytea NOT NULL,
    metadata     jsonb NOT NULL DEFAULT '{}',
    strategy     text NOT NULL DEFAULT 'enqueue',
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    -- Set by begin, in the same transaction as the first thing it stores.
    origin       uuid,
    applied      boolean NOT NULL DEFAULT false,
    resume       jsonb,
    stop         bigint,
    -- Tasks that stopped at a static breakpoint in this turn; '' is the root graph. A retried attempt holds them.
    held         text[] NOT NULL DEFAULT '{}',
    error        jsonb,
    -- Events are numbered from 1 under this row's lock, so that they become visible in order (I9).
    last_offset  bigint NOT NULL DEFAULT 0,
    UNIQUE (thread_id, seq)
) WITH (fillfactor = 70);
CREATE INDEX turn_open ON turns.turn (thread_id, seq) WHERE status IN ('pending', 'running');

CREATE TABLE turns.event (
    turn_id  uuid NOT NULL REFERENCES turns.turn ON DELETE CASCADE,
    "offset" bigint NOT NULL,
    event    text NOT NULL,
    key      text,
    data     text NOT NULL,
    PRIMARY KEY (turn_id, "offset")
);

CREATE TABLE turns.fence (
    thread_id uuid NOT NULL REFERENCES turns.thread ON DELETE CASCADE,
    -- '' is the whole thread; otherwise the task ids from the root down, joined by '/'.
    scope     text NOT NULL,
    token     bigint NOT NULL,
    attempt   integer NOT NULL,
    PRIMARY KEY (thread_id, scope)
) WITH (fillfactor = 70);

CREATE TABLE turns.effect (
    key            text PRIMARY KEY,
    thread_id      uuid NOT NULL REFERENCES turns.thread ON DELETE CASCADE,
    turn_id        uuid NOT NULL,
    name           text NOT NULL,
    node           text NOT NULL,
    mode           text NOT NULL CHECK (mode IN ('keyed', 'once')),
    -- started ► finished | failed; failed ► started and started ► started (another attempt); finished stays.
    -- In mode "once" a row that is found started is of unknown outcome: a person settles it as finished or failed.
    state          text NOT NULL DEFAULT 'started' CHECK (state IN ('started', 'finished', 'failed')),
    attempts       integer NOT NULL DEFAULT 1,
    settled        boolean NOT NULL DEFAULT false,
    result_type    text,
    result         bytea,
    error          text,
    started_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX effect_thread ON turns.effect (thread_id, started_at);

-- What a node with an error handler raised. LangGraph's serializer keeps an exception's repr only; the handler may
-- run in another process and must still see the exception.
CREATE TABLE turns.node_error (
    thread_id uuid NOT NULL REFERENCES turns.thread ON DELETE CASCADE,
    task_id   text NOT NULL,
    module    text NOT NULL,
    qualname  text NOT NULL,
    kind      text NOT NULL,
    arguments bytea NOT NULL,
    PRIMARY KEY (thread_id, task_id)
);

-- Refuses a transaction whose attempt is no longer the newest claim of its scope, or of a scope around it (I5).
-- FOR SHARE: a newer claim, which updates the row, waits until this transaction ended, so nothing that was
-- checked here can become stale before it is committed.
-- `scopes` lists the attempt's own scope last and the scopes around it before.
CREATE FUNCTION turns.assert_claim(thread uuid, scopes text[], mine bigint, mine_attempt integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    own text := scopes[array_length(scopes, 1)];
    held boolean := false;
    f record;
BEGIN
    FOR f IN SELECT scope, token, attempt FROM turns.fence
             WHERE thread_id = thread AND scope = ANY (scopes) ORDER BY scope FOR SHARE
    LOOP
        IF f.scope = own AND f.token = mine AND f.attempt = mine_attempt THEN
            held := true;
        ELSIF (f.token, f.attempt) > (mine, mine_attempt) OR f.scope = own THEN
            RAISE EXCEPTION 'scope "%" of thread % is claimed by %/%, not by this attempt %/%',
                f.scope, thread, f.token, f.attempt, mine, mine_attempt USING ERRCODE = 'TF001';
        END IF;
    END LOOP;
    IF NOT held THEN
        RAISE EXCEPTION 'scope "%" of thread % is not claimed by this attempt %/%',
            own, thread, mine, mine_attempt USING ERRCODE = 'TF001';
    END IF;
END $$;
