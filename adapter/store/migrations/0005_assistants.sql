-- Assistants: a graph with a configuration of its own. And what copies, prunings and lifetimes of threads need.

CREATE TABLE turns.assistant (
    assistant_id uuid PRIMARY KEY,
    -- Made by the server for a graph of the project file; its id is derived from the graph's name.
    system       boolean NOT NULL DEFAULT false,
    -- One of `turns.assistant_version`; PATCH adds one, "latest" goes back to an earlier one.
    version      integer NOT NULL DEFAULT 1,
    graph_id     text NOT NULL,
    name         text NOT NULL,
    description  text,
    -- As the client said it: clients see `context` and `config.configurable` stand for each other.
    config       jsonb NOT NULL DEFAULT '{}',
    context      jsonb NOT NULL DEFAULT '{}',
    metadata     jsonb NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX assistant_metadata ON turns.assistant USING gin (metadata jsonb_path_ops);
CREATE INDEX assistant_created_at ON turns.assistant (created_at DESC);

CREATE TABLE turns.assistant_version (
    assistant_id uuid NOT NULL REFERENCES turns.assistant ON DELETE CASCADE,
    version      integer NOT NULL,
    graph_id     text NOT NULL,
    name         text NOT NULL,
    description  text,
    config       jsonb NOT NULL,
    context      jsonb NOT NULL,
    metadata     jsonb NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (assistant_id, version)
);

ALTER TABLE turns.thread
    -- Of a copy: how the original's last turn ended, since the copy has no turns that tell.
    ADD COLUMN prior_status text,
    -- Minutes after its last change that a thread is deleted, or reduced to its latest checkpoint.
    ADD COLUMN ttl_minutes double precision,
    ADD COLUMN ttl_strategy text CHECK (ttl_strategy IN ('delete', 'keep_latest')),
    -- When it was reduced; a later change makes it due once more.
    ADD COLUMN ttl_pruned_at timestamptz;
CREATE INDEX thread_ttl ON turns.thread (updated_at) WHERE ttl_minutes IS NOT NULL;

-- The checkpoints that the turn began from, or went through, are gone: it cannot be done again (Reset).
ALTER TABLE turns.turn ADD COLUMN detached boolean NOT NULL DEFAULT false;
