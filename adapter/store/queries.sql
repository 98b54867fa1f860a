-- Every statement of the project, by name, with why it is written so and which locks it takes.
-- Parameters are named; `adapter/store/sql.py` loads this file.

-- name: lock_migrations
-- One migration at a time, whoever starts first; released with the session.
SELECT pg_advisory_lock(7261340921)

-- name: unlock_migrations
SELECT pg_advisory_unlock(7261340921)

-- name: create_schema
CREATE SCHEMA IF NOT EXISTS turns

-- name: create_migration_table
CREATE TABLE IF NOT EXISTS turns.migration (
    version integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())

-- name: schema_exists
SELECT to_regclass('turns.migration') IS NOT NULL AS exists

-- name: schema_version
SELECT coalesce(max(version), 0) AS version FROM turns.migration

-- name: record_migration
INSERT INTO turns.migration (version, name) VALUES (%(version)s, %(name)s)

-- name: ping
SELECT 1 AS one

-- name: begin
BEGIN

-- name: commit
COMMIT

-- ---------------------------------------------------------------- fence

-- name: claim
-- Takes the scope for this attempt unless a newer attempt holds it or a scope around it. Locks the fence rows
-- of the scope and of those around it, in scope order; drops the narrower scopes, whose attempts are stale now. No row,
-- too, for a turn that may not be run any more: the thread may belong to a later one that runs.
WITH around AS (
    SELECT token, attempt FROM turns.fence
    WHERE thread_id = %(thread_id)s AND scope = ANY (%(around)s::text[]) ORDER BY scope FOR SHARE
), narrower AS (
    DELETE FROM turns.fence
    WHERE thread_id = %(thread_id)s AND scope <> %(scope)s AND starts_with(scope, %(prefix)s)
      AND (token, attempt) <= (%(token)s::bigint, %(attempt)s::integer)
)
INSERT INTO turns.fence AS f (thread_id, scope, token, attempt)
SELECT %(thread_id)s, %(scope)s, %(token)s, %(attempt)s
WHERE NOT EXISTS (SELECT 1 FROM around a WHERE (a.token, a.attempt) > (%(token)s::bigint, %(attempt)s::integer))
  AND (%(turn_id)s::uuid IS NULL OR EXISTS (
      SELECT 1 FROM turns.turn t WHERE t.turn_id = %(turn_id)s AND (t.status IN ('pending', 'running') OR NOT (
          t.undone OR t.detached OR EXISTS (
              SELECT 1 FROM turns.turn l WHERE l.thread_id = t.thread_id AND l.seq > t.seq AND l.origin IS NOT NULL
          )))))
ON CONFLICT (thread_id, scope) DO UPDATE SET token = excluded.token, attempt = excluded.attempt
    WHERE (f.token, f.attempt) <= (excluded.token, excluded.attempt)
RETURNING f.token

-- name: end_blockers
-- Ends the sessions that keep a waiting claim from its fence rows: they are those of older attempts, which a newer one
-- has taken the place of. A process that is frozen, or cut off, in the middle of a transaction would keep its locks for
-- as long as its connection lives. One that waits for a lock itself is left alone: it is not what everybody waits for.
SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a
WHERE a.pid = ANY (pg_blocking_pids(%(pid)s)) AND a.wait_event_type IS DISTINCT FROM 'Lock'

-- name: current_claims
SELECT scope, token, attempt FROM turns.fence
WHERE thread_id = %(thread_id)s AND scope = ANY (%(scopes)s::text[]) ORDER BY scope

-- name: renew_claim
SELECT turns.renew_claim(%(thread_id)s, %(turn_id)s, %(run_id)s, %(head)s, %(old)s::bigint, %(old_attempt)s::integer,
    %(token)s::bigint, %(attempt)s::integer)

-- name: assert_claim
SELECT turns.assert_claim(%(thread_id)s, %(scopes)s::text[], %(token)s::bigint, %(attempt)s::integer)

-- ---------------------------------------------------------------- threads

-- name: create_thread
INSERT INTO turns.thread (thread_id, metadata, ttl_minutes, ttl_strategy)
VALUES (%(thread_id)s, %(metadata)s, %(ttl_minutes)s, %(ttl_strategy)s)
ON CONFLICT (thread_id) DO NOTHING RETURNING *

-- name: get_thread
SELECT * FROM turns.thread WHERE thread_id = %(thread_id)s

-- `only`, here and below, are the rows that whoever asks may see: see adapter/store/only.py. NULL is all of them, and
-- leaves the plan as it would be without the condition.

-- name: visible_threads
SELECT thread_id FROM turns.thread WHERE thread_id = ANY (%(thread_ids)s::uuid[])
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[]))

-- name: visible_turn
SELECT 1 AS one FROM turns.turn t JOIN turns.thread h USING (thread_id) WHERE t.turn_id = %(turn_id)s
  AND (%(only)s::jsonb[] IS NULL OR h.metadata @> ANY (%(only)s::jsonb[]))

-- name: list_threads
-- The usual order has an index; `search_threads` takes the others. Threads of stateless runs are nobody's.
SELECT * FROM turns.thread
WHERE metadata @> %(metadata)s::jsonb AND (%(status)s::text IS NULL OR status = %(status)s)
  AND NOT metadata ? 'turns_temporary'
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[]))
ORDER BY updated_at DESC, thread_id LIMIT %(limit)s OFFSET %(offset)s

-- name: search_threads
SELECT h.* FROM turns.thread h
WHERE metadata @> %(metadata)s::jsonb AND (%(status)s::text IS NULL OR status = %(status)s)
  AND (%(ids)s::uuid[] IS NULL OR thread_id = ANY (%(ids)s::uuid[])) AND NOT metadata ? 'turns_temporary'
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[]))
  -- Weeds out threads whose latest checkpoint has another text, number or truth value where `values` has one: these
  -- stand in the checkpoint itself. Whatever else `values` holds is for the reader of the state to compare.
  AND (%(values)s::jsonb = '{}' OR EXISTS (
      SELECT 1 FROM (
          SELECT checkpoint -> 'channel_values' AS held FROM checkpoints
          WHERE thread_id = h.thread_id::text AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1
      ) head
      WHERE NOT EXISTS (
          SELECT 1 FROM jsonb_each(%(values)s::jsonb) asked
          WHERE head.held ? asked.key AND NOT head.held -> asked.key @> asked.value
            AND jsonb_typeof(head.held -> asked.key) IN ('string', 'number', 'null'))))
ORDER BY
    CASE WHEN %(ascending)s THEN
        CASE %(sort)s WHEN 'created_at' THEN created_at WHEN 'updated_at' THEN updated_at
                      WHEN 'state_updated_at' THEN state_updated_at END END ASC,
    CASE WHEN NOT %(ascending)s THEN
        CASE %(sort)s WHEN 'created_at' THEN created_at WHEN 'updated_at' THEN updated_at
                      WHEN 'state_updated_at' THEN state_updated_at END END DESC,
    CASE WHEN %(ascending)s THEN
        CASE %(sort)s WHEN 'status' THEN status WHEN 'thread_id' THEN thread_id::text END END ASC,
    CASE WHEN NOT %(ascending)s THEN
        CASE %(sort)s WHEN 'status' THEN status WHEN 'thread_id' THEN thread_id::text END END DESC,
    thread_id
LIMIT %(limit)s OFFSET %(offset)s

-- name: count_threads
SELECT count(*) AS threads FROM turns.thread
WHERE metadata @> %(metadata)s::jsonb AND (%(status)s::text IS NULL OR status = %(status)s)
  AND NOT metadata ? 'turns_temporary'
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[]))

-- name: temporary_threads
-- Threads of stateless runs that are over long enough for a client to have fetched the result a second time.
SELECT thread_id FROM turns.thread
WHERE metadata @> '{"turns_temporary": true}' AND status <> 'busy'
  AND updated_at < now() - make_interval(secs => %(age_seconds)s)
LIMIT %(limit)s

-- name: update_thread_metadata
-- What the thread becomes must be theirs as well: nobody gives a thread to somebody else.
UPDATE turns.thread SET metadata = metadata || %(metadata)s::jsonb, updated_at = now(),
    ttl_minutes = coalesce(%(ttl_minutes)s, ttl_minutes), ttl_strategy = coalesce(%(ttl_strategy)s, ttl_strategy)
WHERE thread_id = %(thread_id)s AND (%(only)s::jsonb[] IS NULL
    OR metadata @> ANY (%(only)s::jsonb[]) AND (metadata || %(metadata)s::jsonb) @> ANY (%(only)s::jsonb[]))
RETURNING *

-- name: delete_thread
-- Turns, events, fences and effects go with it; a running attempt finds its claim gone and writes nothing more.
DELETE FROM turns.thread WHERE thread_id = %(thread_id)s RETURNING thread_id

-- name: lock_thread
-- Serialises what changes a thread outside a turn (update_state) with the recording of new turns.
SELECT * FROM turns.thread WHERE thread_id = %(thread_id)s FOR UPDATE

-- name: lock_fence
-- Makes a turn's begin wait until this transaction ended, which waits for those of attempts under way. Locks are taken
-- in one order, or transactions would wait for each other: the fence (an attempt's transaction begins with it), then
-- the thread, then its turns. A thread whose first turn has not begun gets a fence here, to have one to lock.
INSERT INTO turns.fence AS f (thread_id, scope, token, attempt)
SELECT thread_id, '', 0, 0 FROM turns.thread WHERE thread_id = %(thread_id)s
ON CONFLICT (thread_id, scope) DO UPDATE SET token = f.token

-- name: lock_fence_now
-- As `lock_fence`, for a transaction that holds the thread already and therefore must not wait: fails instead.
SELECT token FROM turns.fence WHERE thread_id = %(thread_id)s AND scope = '' FOR UPDATE NOWAIT

-- name: touch_thread_state
UPDATE turns.thread SET state_updated_at = now(), updated_at = now(), status = %(status)s,
    rest_status = %(status)s, rest_error = NULL,
    interrupts = '{}', error = NULL
WHERE thread_id = %(thread_id)s

-- name: copy_thread
-- One statement, so that row and checkpoints are of one moment, also while a turn writes. The copy has no turns and
-- starts without an origin: what its next turn does, it does on purpose, under keys of its own (I7). Of a busy thread
-- it is the state so far, with the status from before the turn under way, which is cut off in the copy. `metadata` is
-- what the copy has instead of the original's, but which graph the state is of is as true as the state.
WITH original AS (
    SELECT h.*, l.status AS last_status FROM turns.thread h LEFT JOIN LATERAL (
        SELECT status FROM turns.turn t WHERE t.thread_id = h.thread_id
          AND t.origin IS NOT NULL AND t.status NOT IN ('pending', 'running') ORDER BY t.seq DESC LIMIT 1
    ) l ON true
    WHERE h.thread_id = %(original)s
), made AS (
    INSERT INTO turns.thread AS n (
        thread_id, state_updated_at, metadata, config, status, interrupts, error, rest_status, rest_error, prior_status)
    SELECT %(copy)s, CASE WHEN state_updated_at = created_at THEN now() ELSE clock_timestamp() END,
        CASE WHEN %(metadata)s::jsonb IS NULL THEN metadata - 'turns_temporary'
            ELSE %(metadata)s::jsonb || jsonb_strip_nulls(jsonb_build_object(
                'graph_id', metadata -> 'graph_id', 'assistant_id', metadata -> 'assistant_id')) END,
        config, CASE WHEN status = 'busy' THEN rest_status ELSE status END,
        interrupts, CASE WHEN status = 'busy' THEN rest_error ELSE error END, rest_status, rest_error,
        CASE WHEN status = 'busy' THEN 'interrupted' ELSE coalesce(last_status, prior_status) END
    FROM original RETURNING n.*
), node_errors AS (
    INSERT INTO turns.node_error (thread_id, task_id, module, qualname, kind, arguments)
    SELECT %(copy)s, task_id, module, qualname, kind, arguments FROM turns.node_error WHERE thread_id = %(original)s
), saved AS (
    INSERT INTO checkpoints (
        thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    SELECT %(to)s::text, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM checkpoints WHERE thread_id = %(from)s
), channels AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(to)s::text, checkpoint_ns, channel, version, type, blob
    FROM checkpoint_blobs WHERE thread_id = %(from)s
), writes AS (
    INSERT INTO checkpoint_writes (
        thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
    SELECT %(to)s::text, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path
    FROM checkpoint_writes WHERE thread_id = %(from)s
)
SELECT * FROM made

-- name: one_snapshot
-- First in a transaction: everything in it sees the database as its first query did.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ

-- name: lock_quiet_thread
-- A thread that nothing runs or waits on; no turn is recorded on it until this transaction ends. One that somebody
-- else holds is about to change and is not quiet. With `expired`, only if its lifetime is over.
SELECT h.thread_id FROM turns.thread h
WHERE h.thread_id = %(thread_id)s AND (NOT %(expired)s OR h.ttl_minutes IS NOT NULL
    AND h.updated_at + make_interval(secs => h.ttl_minutes * 60) < now())
  AND NOT EXISTS (
    SELECT 1 FROM turns.turn o WHERE o.thread_id = h.thread_id AND o.status IN ('pending', 'running'))
FOR UPDATE SKIP LOCKED

-- name: detach_turns
-- What they began from is gone; so is what would be put back there.
WITH unneeded AS (DELETE FROM turns.base_write WHERE thread_id = %(thread_id)s)
UPDATE turns.turn SET detached = true WHERE thread_id = %(thread_id)s AND NOT detached

-- name: expired_threads
-- Threads whose lifetime is over, the longest unchanged first. One that was reduced is due again after its next change.
SELECT thread_id, ttl_strategy FROM turns.thread
WHERE ttl_minutes IS NOT NULL AND updated_at + make_interval(secs => ttl_minutes * 60) < now() AND status <> 'busy'
  AND (ttl_pruned_at IS NULL OR ttl_pruned_at < updated_at) AND NOT thread_id = ANY (%(skipped)s::uuid[])
ORDER BY updated_at LIMIT %(limit)s

-- name: mark_reduced
UPDATE turns.thread SET ttl_pruned_at = now() WHERE thread_id = %(thread_id)s

-- name: delete_expired_items
-- Of LangGraph's long-term store.
WITH gone AS (DELETE FROM store WHERE expires_at < now() RETURNING 1) SELECT count(*) AS items FROM gone

-- ---------------------------------------------------------------- assistants

-- name: ensure_system_assistants
-- One a graph of the project file, in the file's order; an existing one keeps what a client changed.
WITH made AS (
    INSERT INTO turns.assistant AS a (assistant_id, system, graph_id, name, metadata, created_at, updated_at)
    SELECT g.assistant_id, true, g.graph_id, g.graph_id, '{"created_by": "system"}', g.made_at, g.made_at
    FROM (
        SELECT assistant_id, graph_id, now() + ord * interval '1 microsecond' AS made_at
        FROM unnest(%(ids)s::uuid[], %(graph_ids)s::text[]) WITH ORDINALITY AS u (assistant_id, graph_id, ord)
    ) g
    ON CONFLICT (assistant_id) DO NOTHING RETURNING a.*
)
INSERT INTO turns.assistant_version (
    assistant_id, version, graph_id, name, description, config, context, metadata, created_at)
SELECT assistant_id, version, graph_id, name, description, config, context, metadata, created_at FROM made

-- name: create_assistant
WITH made AS (
    INSERT INTO turns.assistant AS a (assistant_id, graph_id, name, description, config, context, metadata)
    VALUES (%(assistant_id)s, %(graph_id)s, %(name)s, %(description)s, %(config)s, %(context)s, %(metadata)s)
    ON CONFLICT (assistant_id) DO NOTHING RETURNING a.*
), versions AS (
    INSERT INTO turns.assistant_version (
        assistant_id, version, graph_id, name, description, config, context, metadata, created_at)
    SELECT assistant_id, version, graph_id, name, description, config, context, metadata, created_at FROM made
)
SELECT * FROM made

-- name: get_assistant
SELECT * FROM turns.assistant WHERE assistant_id = %(assistant_id)s

-- name: lock_assistant
-- Before a statement that counts its versions.
SELECT 1 AS one FROM turns.assistant WHERE assistant_id = %(assistant_id)s FOR UPDATE

-- name: update_assistant
-- A new version: what is null stays as it is, metadata is merged, and what it becomes must be theirs as well. Runs after
-- `lock_assistant`.
WITH changed AS (
    UPDATE turns.assistant a SET
        version = 1 + (SELECT max(version) FROM turns.assistant_version v WHERE v.assistant_id = a.assistant_id),
        graph_id = coalesce(%(graph_id)s, graph_id), name = coalesce(%(name)s, name),
        description = coalesce(%(description)s, description), config = coalesce(%(config)s::jsonb, config),
        context = coalesce(%(context)s::jsonb, context), metadata = metadata || %(metadata)s::jsonb,
        updated_at = clock_timestamp()
    WHERE assistant_id = %(assistant_id)s AND (%(only)s::jsonb[] IS NULL
        OR metadata @> ANY (%(only)s::jsonb[]) AND (metadata || %(metadata)s::jsonb) @> ANY (%(only)s::jsonb[]))
    RETURNING a.*
), versions AS (
    INSERT INTO turns.assistant_version (
        assistant_id, version, graph_id, name, description, config, context, metadata, created_at)
    SELECT assistant_id, version, graph_id, name, description, config, context, metadata, updated_at FROM changed
)
SELECT * FROM changed

-- name: set_latest_assistant
-- An earlier version may have been somebody else's.
UPDATE turns.assistant a SET version = v.version, graph_id = v.graph_id, name = v.name,
    description = v.description, config = v.config, context = v.context, metadata = v.metadata, updated_at = now()
FROM turns.assistant_version v
WHERE a.assistant_id = %(assistant_id)s AND v.assistant_id = a.assistant_id AND v.version = %(version)s
  AND (%(only)s::jsonb[] IS NULL OR a.metadata @> ANY (%(only)s::jsonb[]) AND v.metadata @> ANY (%(only)s::jsonb[]))
RETURNING a.*

-- name: list_assistant_versions
SELECT * FROM turns.assistant_version
WHERE assistant_id = %(assistant_id)s AND metadata @> %(metadata)s::jsonb
ORDER BY version DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: delete_assistant
DELETE FROM turns.assistant WHERE assistant_id = %(assistant_id)s
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[])) RETURNING assistant_id

-- name: threads_of_assistant
SELECT thread_id FROM turns.thread
WHERE metadata @> jsonb_build_object('assistant_id', %(assistant_id)s::text)
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[])) LIMIT %(limit)s

-- name: search_assistants
-- Those that the server made for graphs which are not in this project file are nobody's.
SELECT * FROM turns.assistant
WHERE metadata @> %(metadata)s::jsonb AND (%(graph_id)s::text IS NULL OR graph_id = %(graph_id)s)
  AND (%(name)s::text IS NULL OR position(lower(%(name)s) IN lower(name)) > 0)
  AND (NOT system OR graph_id = ANY (%(graph_ids)s::text[]))
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[]))
ORDER BY
    CASE WHEN %(ascending)s THEN
        CASE %(sort)s WHEN 'created_at' THEN created_at WHEN 'updated_at' THEN updated_at END END ASC,
    CASE WHEN NOT %(ascending)s THEN
        CASE %(sort)s WHEN 'created_at' THEN created_at WHEN 'updated_at' THEN updated_at END END DESC,
    CASE WHEN %(ascending)s THEN CASE %(sort)s WHEN 'name' THEN name WHEN 'graph_id' THEN graph_id
        WHEN 'assistant_id' THEN assistant_id::text END END COLLATE "C" ASC,
    CASE WHEN NOT %(ascending)s THEN CASE %(sort)s WHEN 'name' THEN name WHEN 'graph_id' THEN graph_id
        WHEN 'assistant_id' THEN assistant_id::text END END COLLATE "C" DESC,
    assistant_id
LIMIT %(limit)s OFFSET %(offset)s

-- name: count_assistants
SELECT count(*) AS assistants FROM turns.assistant
WHERE metadata @> %(metadata)s::jsonb AND (%(graph_id)s::text IS NULL OR graph_id = %(graph_id)s)
  AND (%(name)s::text IS NULL OR position(lower(%(name)s) IN lower(name)) > 0)
  AND (NOT system OR graph_id = ANY (%(graph_ids)s::text[]))
  AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[]))

-- ---------------------------------------------------------------- turns

-- name: hold_thread
-- Before a statement that asks which turns are open: it sees the database as it was when it began, so it must begin
-- after whoever changes the same thread has committed. Lets rows that only refer to the thread pass.
SELECT 1 AS one FROM turns.thread WHERE thread_id = %(thread_id)s FOR NO KEY UPDATE

-- name: hold_thread_of
-- As `hold_thread`, for the thread of a turn.
SELECT 1 AS one FROM turns.thread WHERE thread_id = (SELECT thread_id FROM turns.turn WHERE turn_id = %(turn_id)s)
FOR NO KEY UPDATE

-- name: record_turn
-- Accepts a turn: the row is the deduplication of a request for ever (I3). Runs after `hold_thread`, so that
-- `seq` is the order of acceptance and "is a turn open?" has one answer.
WITH t AS (
    UPDATE turns.thread SET last_seq = last_seq + 1, status = 'busy', updated_at = now(),
        metadata = metadata || %(thread_metadata)s::jsonb,
        config = CASE WHEN %(config)s::jsonb = '{}' THEN config ELSE %(config)s::jsonb END
    WHERE thread_id = %(thread_id)s AND (%(only)s::jsonb[] IS NULL OR metadata @> ANY (%(only)s::jsonb[]))
      AND NOT EXISTS (SELECT 1 FROM turns.turn WHERE turn_id = %(turn_id)s)
      AND NOT (%(refuse_busy)s AND EXISTS (
          SELECT 1 FROM turns.turn o WHERE o.thread_id = %(thread_id)s AND o.status IN ('pending', 'running')))
      -- All open turns but the first wait.
      AND (%(queued_turns)s::bigint IS NULL OR %(queued_turns)s >= (
          SELECT count(*) FROM turns.turn o WHERE o.thread_id = %(thread_id)s AND o.status IN ('pending', 'running')))
      AND (%(assistant_as_of)s::timestamptz IS NULL OR EXISTS (
          SELECT 1 FROM turns.assistant
          WHERE assistant_id = %(assistant_id)s AND updated_at = %(assistant_as_of)s))
    RETURNING thread_id, last_seq
)
INSERT INTO turns.turn (
    turn_id, thread_id, seq, graph_id, assistant_id, request, request_hash, metadata, strategy, created_at, due_at)
SELECT %(turn_id)s, thread_id, last_seq, %(graph_id)s, %(assistant_id)s, %(request)s, %(request_hash)s,
       %(metadata)s, %(strategy)s,
       -- As in the Agent Server, the creation of a delayed run is when it is due.
       now() + make_interval(secs => %(delay)s),
       CASE WHEN %(delay)s > 0 THEN now() + make_interval(secs => %(delay)s) END
FROM t ON CONFLICT (turn_id) DO NOTHING RETURNING *

-- name: fall_due
-- A turn that waited for a time takes its place in the thread's order of acceptance. Runs after `hold_thread`. Returns
-- the turn if it waits for its begin, also when an earlier call has moved it.
WITH h AS (
    UPDATE turns.thread h SET last_seq = h.last_seq + 1, updated_at = now() FROM turns.turn t
    WHERE t.turn_id = %(turn_id)s AND t.status = 'pending' AND t.due_at IS NOT NULL AND h.thread_id = t.thread_id
    RETURNING h.last_seq
), moved AS (
    UPDATE turns.turn SET seq = h.last_seq, due_at = NULL FROM h
    WHERE turn_id = %(turn_id)s AND status = 'pending' AND due_at IS NOT NULL
    RETURNING turn_id, seq, request ? 'webhook' AS hook
)
SELECT * FROM moved UNION ALL
SELECT turn_id, seq, request ? 'webhook' FROM turns.turn
WHERE turn_id = %(turn_id)s AND status = 'pending' AND NOT EXISTS (SELECT 1 FROM moved)

-- name: turns_to_cancel
-- Open turns by id, a page at a time: those of one thread that are named, or all of a status.
SELECT t.turn_id, t.thread_id FROM turns.turn t JOIN turns.thread h USING (thread_id)
WHERE t.status = ANY (%(statuses)s::text[]) AND t.turn_id > %(after)s
  AND (%(thread_id)s::uuid IS NULL OR t.thread_id = %(thread_id)s)
  AND (%(turn_ids)s::uuid[] IS NULL OR t.turn_id = ANY (%(turn_ids)s::uuid[]))
  AND (%(only)s::jsonb[] IS NULL OR h.metadata @> ANY (%(only)s::jsonb[]))
ORDER BY t.turn_id LIMIT %(limit)s

-- name: get_turn
SELECT * FROM turns.turn WHERE turn_id = %(turn_id)s

-- name: get_thread_turn
SELECT * FROM turns.turn WHERE turn_id = %(turn_id)s AND thread_id = %(thread_id)s

-- name: list_turns
SELECT * FROM turns.turn
WHERE thread_id = %(thread_id)s AND (%(status)s::text IS NULL OR status = %(status)s)
ORDER BY seq DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: open_turns
SELECT turn_id, status, seq, due_at, request ? 'webhook' AS hook FROM turns.turn
WHERE thread_id = %(thread_id)s AND status IN ('pending', 'running') ORDER BY seq

-- name: cancel_waiting
-- pending ► interrupted, for every turn that waits before another one that cuts in; their thread stays busy.
WITH t AS (
    UPDATE turns.turn SET status = 'interrupted', updated_at = now()
    WHERE thread_id = %(thread_id)s AND status = 'pending' AND seq < %(seq)s RETURNING turn_id
)
SELECT turn_id, pg_notify('turns', turn_id::text) FROM t

-- name: discard_waiting
-- As `cancel_waiting`, for a turn that takes back what it cuts in on: they were never there.
WITH t AS (
    DELETE FROM turns.turn WHERE thread_id = %(thread_id)s AND status = 'pending' AND seq < %(seq)s RETURNING turn_id
)
SELECT turn_id, pg_notify('turns', turn_id::text) FROM t

-- name: overtaken
-- Turns of a thread run one after the other: when a later one has begun, this one runs nowhere any more.
SELECT 1 AS one FROM turns.turn t JOIN turns.turn o ON o.thread_id = t.thread_id AND o.seq > t.seq
WHERE t.turn_id = %(turn_id)s AND t.status = 'running' AND o.origin IS NOT NULL LIMIT 1

-- name: drop_claims
-- Makes every attempt on the thread stale, unless a later turn runs, which has made the earlier ones stale itself.
DELETE FROM turns.fence WHERE thread_id = %(thread_id)s AND NOT EXISTS (
    SELECT 1 FROM turns.turn WHERE thread_id = %(thread_id)s AND turn_id <> %(turn_id)s AND status = 'running')

-- name: turn_outcome
-- With what its thread's state is read with.
SELECT t.turn_id, t.thread_id, t.graph_id, t.status, t.error, h.config
FROM turns.turn t JOIN turns.thread h USING (thread_id) WHERE t.turn_id = %(turn_id)s

-- name: delete_turn
DELETE FROM turns.turn WHERE turn_id = %(turn_id)s AND thread_id = %(thread_id)s RETURNING turn_id

-- name: cancel_pending
-- pending ► interrupted, before the turn began; its thread is as it was, unless other turns wait. Runs after
-- `hold_thread_of`.
WITH t AS (
    UPDATE turns.turn SET status = 'interrupted', updated_at = now()
    WHERE turn_id = %(turn_id)s AND status = 'pending' RETURNING turn_id, thread_id
), h AS (
    UPDATE turns.thread h SET updated_at = now(), status = CASE WHEN EXISTS (
        SELECT 1 FROM turns.turn o WHERE o.thread_id = h.thread_id AND o.turn_id <> %(turn_id)s
          AND o.status IN ('pending', 'running')) THEN 'busy' ELSE 'interrupted' END
    FROM t WHERE h.thread_id = t.thread_id
)
SELECT turn_id, pg_notify('turns', turn_id::text) FROM t

-- name: stranded_turns
-- Recorded but never started: the API died between the row and the workflow. Or due, and whoever should say so is gone.
SELECT t.thread_id, t.turn_id, t.seq, t.due_at, t.request ? 'webhook' AS hook FROM turns.turn t
WHERE t.status = 'pending' AND t.created_at < now() - make_interval(secs => %(age_seconds)s)
ORDER BY t.thread_id, t.seq LIMIT %(limit)s

-- name: quiet_turns
-- Running by their rows, and untouched for a while: as many as can be asked about, other ones each time.
SELECT t.thread_id, t.turn_id, t.seq, t.due_at, t.request ? 'webhook' AS hook FROM turns.turn t
WHERE t.status = 'running' AND t.updated_at < now() - make_interval(secs => %(age_seconds)s)
ORDER BY random() LIMIT %(limit)s

-- name: load_turn
-- For an activity; the input is left out once it was applied, since it can be large. Wakes whoever watches the thread's
-- progress, which has come to a new step.
SELECT pg_notify('turns_thread', t.thread_id::text),
       t.turn_id, t.thread_id, t.seq, t.graph_id, t.assistant_id, t.status, t.origin, t.applied, t.resume,
       t.stop, t.error, t.held, t.last_offset, t.metadata, t.run_id, t.begun_in, t.base, t.undone,
       h.origin AS thread_origin, coalesce(p.status, h.prior_status) AS previous_status,
       c.checkpoint_id AS head, (c.metadata->>'step')::integer AS head_step,
       (t.status NOT IN ('pending', 'running') AND (t.detached OR EXISTS (
           SELECT 1 FROM turns.turn l WHERE l.thread_id = t.thread_id AND l.seq > t.seq AND l.origin IS NOT NULL
       ))) AS superseded,
       CASE WHEN t.applied AND NOT %(whole)s THEN t.request - 'input' ELSE t.request END AS request
FROM turns.turn t JOIN turns.thread h USING (thread_id)
-- The turn before: one that was cancelled, or refused, before it began left nothing.
LEFT JOIN LATERAL (
    SELECT status FROM turns.turn p WHERE p.thread_id = t.thread_id AND p.seq < t.seq
      AND p.origin IS NOT NULL AND p.status NOT IN ('pending', 'running') ORDER BY p.seq DESC LIMIT 1
) p ON true
LEFT JOIN LATERAL (
    SELECT checkpoint_id, metadata FROM checkpoints c WHERE c.thread_id = t.thread_id::text AND c.checkpoint_ns = ''
    ORDER BY checkpoint_id DESC LIMIT 1
) c ON true
WHERE t.turn_id = %(turn_id)s

-- name: older_open
-- A turn of the same thread that was accepted earlier and has not ended. One that is running by its row has lost its
-- run (somebody terminated it, or reset an older one), since Temporal runs one a thread at a time.
SELECT o.turn_id, o.seq, o.request ? 'webhook' AS hook
FROM turns.turn t JOIN turns.turn o ON o.thread_id = t.thread_id AND o.seq < t.seq
WHERE t.turn_id = %(turn_id)s AND t.status = 'pending' AND o.status IN ('pending', 'running') AND o.due_at IS NULL
ORDER BY o.seq LIMIT 1

-- name: start_turn
-- pending ► running, or a later status when it is begun over. Stores what every later step of the turn needs to know, and
-- keeps the pending writes of the checkpoint it starts from (and of subgraphs that wait there, if it goes on with them)
-- instead of those of the turn before. Handled and behind: a turn that begins anew needs no errors of the turns before.
-- Fails if the turn was cancelled or discarded meanwhile.
WITH t AS (
    UPDATE turns.turn SET status = 'running', updated_at = now(), origin = %(origin)s, resume = %(resume)s,
        stop = %(stop)s, held = '{}', error = NULL,
        run_id = CASE WHEN origin IS NULL THEN %(run_id)s ELSE run_id END,
        begun_in = CASE WHEN origin IS NULL THEN %(begun_in)s ELSE begun_in END,
        base = CASE WHEN origin IS NULL THEN %(base)s ELSE base END,
        prior_origin = CASE WHEN origin IS NULL THEN %(prior_origin)s::uuid ELSE prior_origin END,
        prior_thread = CASE WHEN origin IS NULL THEN (
            SELECT jsonb_build_object('status', rest_status, 'error', rest_error, 'interrupts', interrupts)
            FROM turns.thread WHERE thread_id = %(thread_id)s) ELSE prior_thread END
    WHERE turn_id = %(turn_id)s AND (status IN ('pending', 'running', 'error') OR %(over)s) RETURNING turn_id
), thread AS (
    UPDATE turns.thread SET origin = %(origin)s WHERE thread_id = %(thread_id)s
), behind AS (
    DELETE FROM turns.node_error WHERE thread_id = %(thread_id)s AND NOT %(continues)s
), unneeded AS (
    DELETE FROM turns.base_write WHERE thread_id = %(thread_id)s AND turn_id <> %(turn_id)s
), kept AS (
    SELECT * FROM checkpoint_writes WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id = %(base)s
    UNION ALL
    SELECT w.* FROM checkpoint_writes w JOIN checkpoints c USING (thread_id, checkpoint_ns, checkpoint_id)
    WHERE %(continues)s AND w.thread_id = %(thread)s AND c.checkpoint_ns <> ''
      AND c.metadata -> 'parents' ->> '' = %(base)s
), stored AS (
    INSERT INTO turns.base_write (
        turn_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
    SELECT t.turn_id, %(thread_id)s, k.checkpoint_ns, k.checkpoint_id, k.task_id, k.idx, k.channel, k.type, k.blob,
           k.task_path
    FROM t, kept k WHERE NOT %(over)s ON CONFLICT DO NOTHING
)
SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM t)
    THEN turns.not_found(format('turn %%s was cancelled or discarded before it began', %(turn_id)s::text)) END

-- name: adopt_turn
-- any status ► running, by a run that Reset made, or running ► running by the next run of a long turn. Its thread is
-- busy again.
WITH t AS (
    UPDATE turns.turn SET status = 'running', error = NULL, updated_at = now(), run_id = %(run_id)s, waits = false
    WHERE turn_id = %(turn_id)s RETURNING thread_id
)
UPDATE turns.thread h SET status = 'busy', error = NULL, updated_at = now() FROM t WHERE h.thread_id = t.thread_id

-- name: rewind_turn
-- What the abandoned branch noted does not hold in the fork; a fork's own checkpoint takes one superstep more.
UPDATE turns.turn SET held = '{}', stop = stop + 1 WHERE turn_id = %(turn_id)s

-- name: hold_open_turn
-- A turn that has not ended, locked so that it cannot meanwhile.
SELECT turn_id FROM turns.turn WHERE turn_id = %(turn_id)s AND status IN ('pending', 'running') FOR UPDATE

-- name: turn_of_checkpoint_undone
SELECT undone FROM turns.turn WHERE turn_id = %(turn_id)s

-- name: stateful_namespaces
-- Subgraphs that keep one history a thread (their namespaces hold no task ids) and have checkpoints after this one.
SELECT DISTINCT checkpoint_ns FROM checkpoints
WHERE thread_id = %(thread_id)s AND checkpoint_ns <> '' AND position(':' IN checkpoint_ns) = 0
  AND checkpoint_id > %(checkpoint_id)s

-- name: first_checkpoint
SELECT checkpoint_id FROM checkpoints
WHERE thread_id = %(thread_id)s AND checkpoint_ns = '' AND parent_checkpoint_id IS NULL ORDER BY checkpoint_id LIMIT 1

-- name: head_checkpoint
SELECT max(checkpoint_id) AS id FROM checkpoints WHERE thread_id = %(thread_id)s AND checkpoint_ns = ''

-- name: load_checkpoint
-- The newest checkpoint of a namespace, with its pending writes, and those of its values that are not known by their
-- versions; otherwise as LangGraph's saver loads it.
SELECT c.checkpoint_id, c.parent_checkpoint_id, c.checkpoint, c.metadata, (
    SELECT array_agg(array[b.channel::bytea, b.type::bytea, b.blob])
    FROM jsonb_each_text(c.checkpoint->'channel_versions') v
    JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns
        AND b.channel = v.key AND b.version = v.value
    WHERE NOT EXISTS (
        SELECT 1 FROM unnest(%(channels)s::text[], %(versions)s::text[]) k (channel, version)
        WHERE k.channel = v.key AND k.version = v.value)
) AS blobs, (
    SELECT array_agg(array[w.task_id::bytea, w.channel::bytea, w.type::bytea, w.blob]
        ORDER BY convert_to(w.task_path, 'UTF8'), w.task_id, w.idx)
    FROM checkpoint_writes w
    WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns AND w.checkpoint_id = c.checkpoint_id
) AS writes
FROM checkpoints c WHERE c.thread_id = %(thread_id)s AND c.checkpoint_ns = %(ns)s
ORDER BY c.checkpoint_id DESC LIMIT 1

-- name: hold_task
-- Noted with the checkpoint that the breakpoint follows, since nothing in the checkpoint tells of it.
UPDATE turns.turn SET held = array_append(held, %(task_id)s)
WHERE turn_id = %(turn_id)s AND NOT %(task_id)s = ANY (held)

-- name: set_thread_origin
UPDATE turns.thread SET origin = %(origin)s WHERE thread_id = %(thread_id)s

-- name: mark_applied
UPDATE turns.turn SET applied = true WHERE turn_id = %(turn_id)s AND NOT applied

-- name: set_turn_error
UPDATE turns.turn SET error = %(error)s WHERE turn_id = %(turn_id)s

-- name: finish_turn
-- running | pending | error ► a final status, and the thread's status with it: busy while other turns wait. Runs
-- after `hold_thread_of`.
WITH t AS (
    UPDATE turns.turn SET status = %(status)s, updated_at = now(), error = %(error)s,
        waits = %(thread_status)s = 'interrupted' AND %(status)s = 'success'
    WHERE turn_id = %(turn_id)s AND status IN ('pending', 'running', 'error') RETURNING thread_id, applied
)
UPDATE turns.thread h SET rest_status = %(thread_status)s, rest_error = %(error)s,
    status = CASE WHEN EXISTS (
        SELECT 1 FROM turns.turn o WHERE o.thread_id = h.thread_id AND o.turn_id <> %(turn_id)s
          AND o.status IN ('pending', 'running')) THEN 'busy' ELSE %(thread_status)s END,
    -- A turn that changed nothing leaves the questions that waited before it.
    interrupts = CASE WHEN %(status)s = 'error' AND NOT t.applied THEN h.interrupts ELSE %(interrupts)s END,
    error = %(error)s, updated_at = now(), state_updated_at = now()
FROM t WHERE h.thread_id = t.thread_id RETURNING h.status, pg_notify('turns_thread', h.thread_id::text)

-- name: roll_back_checkpoints
-- Deletes what a turn stored in LangGraph's tables: every checkpoint of any namespace that carries its id, their
-- pending writes, and the channel values that no other checkpoint holds.
WITH gone AS (
    DELETE FROM checkpoints WHERE thread_id = %(thread)s AND metadata ->> 'run_id' = %(turn)s
    RETURNING checkpoint_ns, checkpoint_id, checkpoint
), writes AS (
    DELETE FROM checkpoint_writes w USING gone g WHERE w.thread_id = %(thread)s
      AND w.checkpoint_ns = g.checkpoint_ns AND w.checkpoint_id = g.checkpoint_id
), versions AS (
    SELECT DISTINCT g.checkpoint_ns, v.key AS channel, v.value AS version
    FROM gone g, jsonb_each_text(g.checkpoint -> 'channel_versions') v
)
DELETE FROM checkpoint_blobs b USING versions v
WHERE b.thread_id = %(thread)s AND b.checkpoint_ns = v.checkpoint_ns AND b.channel = v.channel
  AND b.version = v.version AND NOT EXISTS (
    SELECT 1 FROM checkpoints c WHERE c.thread_id = %(thread)s AND c.checkpoint_ns = v.checkpoint_ns
      AND c.checkpoint -> 'channel_versions' ->> v.channel = v.version
      AND c.metadata ->> 'run_id' IS DISTINCT FROM %(turn)s)

-- name: drop_base_writes
-- What the checkpoint that a turn started from, and subgraphs that waited there, hold now.
DELETE FROM checkpoint_writes w USING checkpoints c
WHERE w.thread_id = %(thread)s AND c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
  AND c.checkpoint_id = w.checkpoint_id AND (
    (c.checkpoint_ns = '' AND c.checkpoint_id = %(base)s)
    OR (%(continued)s AND c.checkpoint_ns <> '' AND c.metadata -> 'parents' ->> '' = %(base)s))

-- name: restore_base_writes
INSERT INTO checkpoint_writes (
    thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
SELECT %(thread)s, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path
FROM turns.base_write WHERE turn_id = %(turn)s

-- name: roll_back_turn
-- Deletes a turn's row with its events, if its status is one of `statuses`; its thread is as it was before, or busy
-- while other turns wait. Runs after `hold_thread_of`.
WITH t AS (
    DELETE FROM turns.turn WHERE turn_id = %(turn_id)s AND status = ANY (%(statuses)s::text[])
    RETURNING turn_id, thread_id, origin, prior_origin, prior_thread
)
UPDATE turns.thread h SET status = CASE
        WHEN EXISTS (SELECT 1 FROM turns.turn o WHERE o.thread_id = h.thread_id AND o.turn_id <> t.turn_id
                     AND o.status IN ('pending', 'running')) THEN 'busy'
        ELSE coalesce(t.prior_thread ->> 'status', h.rest_status) END,
    rest_status = coalesce(t.prior_thread ->> 'status', h.rest_status),
    interrupts = coalesce(t.prior_thread -> 'interrupts', h.interrupts),
    origin = CASE WHEN t.origin IS NULL THEN h.origin ELSE t.prior_origin END,
    error = CASE coalesce(t.prior_thread ->> 'status', h.rest_status)
        WHEN 'error' THEN coalesce(t.prior_thread -> 'error', h.rest_error) ELSE %(error)s END,
    -- The graph that the state belongs to is the one of the last turn that is left.
    metadata = h.metadata || coalesce((
        SELECT jsonb_build_object('graph_id', o.graph_id, 'assistant_id', o.assistant_id) FROM turns.turn o
        WHERE o.thread_id = h.thread_id AND o.turn_id <> t.turn_id ORDER BY o.seq DESC LIMIT 1), '{}'),
    updated_at = now(), state_updated_at = now()
FROM t WHERE h.thread_id = t.thread_id
RETURNING t.turn_id, pg_notify('turns', t.turn_id::text), pg_notify('turns_thread', h.thread_id::text)

-- ---------------------------------------------------------------- events

-- name: append_events
-- Numbers the events under the turn's row lock, so that offsets become visible without gaps (I9), and wakes
-- the listeners when the transaction commits: those who read events, which is what the sign says. Arrays go in
-- binary form: psycopg escapes each element of a text one with a regular expression.
WITH t AS (
    UPDATE turns.turn SET last_offset = last_offset + %(count)s WHERE turn_id = %(turn_id)s
    RETURNING last_offset - %(count)s AS base
), stored AS (
    INSERT INTO turns.event (turn_id, "offset", event, key, task, data)
    SELECT %(turn_id)s, t.base + e.ord, e.event, e.key, e.task, e.data
    FROM t, unnest(%(events)b::text[], %(keys)b::text[], %(tasks)b::text[], %(datas)b::text[])
        WITH ORDINALITY AS e (event, key, task, data, ord)
    RETURNING 1
)
SELECT count(*) AS stored, pg_notify('turns', %(turn_id)s::text || '+') FROM stored

-- name: append_events_of_many
-- As `append_events`, for many turns at once, each under its own claim of its whole thread. Takes the fence rows first,
-- then the turns. It waits for nobody: a turn whose claim is not the newest, or whose rows somebody has locked, is left
-- out of what is returned.
WITH asked AS (
    SELECT * FROM unnest(%(turns)b::text[], %(threads)b::text[], %(tokens)b::bigint[], %(attempts)b::integer[],
        %(counts)b::integer[]) WITH ORDINALITY AS a (turn, thread, token, attempt, count, place)
), held AS MATERIALIZED (
    SELECT a.place, a.turn::uuid AS turn_id, a.count FROM asked a JOIN turns.fence f
    ON f.thread_id = a.thread::uuid AND f.scope = '' AND f.token = a.token AND f.attempt = a.attempt
    ORDER BY f.thread_id FOR SHARE OF f SKIP LOCKED
), free AS MATERIALIZED (
    SELECT turn_id FROM turns.turn WHERE turn_id IN (SELECT turn_id FROM held)
    ORDER BY turn_id FOR NO KEY UPDATE SKIP LOCKED
), numbered AS (
    UPDATE turns.turn t SET last_offset = t.last_offset + h.count FROM held h JOIN free USING (turn_id)
    WHERE t.turn_id = h.turn_id RETURNING h.place, t.turn_id, t.last_offset - h.count AS base
), stored AS (
    INSERT INTO turns.event (turn_id, "offset", event, key, task, data)
    SELECT n.turn_id, n.base + e.nth, e.event, e.key, e.task, e.data
    FROM numbered n JOIN unnest(%(places)b::integer[], %(nths)b::integer[], %(events)b::text[], %(keys)b::text[],
        %(tasks)b::text[], %(datas)b::text[]) AS e (place, nth, event, key, task, data) USING (place)
)
SELECT place, pg_notify('turns', turn_id::text || '+') FROM numbered

-- name: notify_turn
SELECT pg_notify('turns', %(turn_id)s::text)

-- name: notify_thread
-- Wakes whoever watches a thread's progress.
SELECT pg_notify('turns_thread', %(thread_id)s::text)

-- name: notify_cancel
SELECT pg_notify('turns_cancel', %(turn_id)s::text)

-- name: listen
LISTEN turns; LISTEN turns_thread

-- name: listen_cancel
LISTEN turns_cancel

-- name: read_events
SELECT "offset", event, data FROM turns.event
WHERE turn_id = %(turn_id)s AND "offset" > %(after)s ORDER BY "offset" LIMIT %(limit)s

-- name: read_turns
-- Positions of turns and their next events in one snapshot, so that "final and all read" has one answer. A turn's page ends
-- after `limit` events or `bytes`; octet_length does not unpack a stored value. A page without any event is at the end
-- whatever `last_offset` is: events before it may have been deleted, which does not change how they are counted.
SELECT a.place, t.status, t.last_offset, e."offset", e.event, e.data
FROM unnest(%(turns)b::text[], %(afters)b::bigint[]) WITH ORDINALITY AS a (turn, after, place)
JOIN turns.turn t ON t.turn_id = a.turn::uuid
LEFT JOIN LATERAL (
    SELECT "offset", event, data, sum(octet_length(data)) OVER (ORDER BY "offset") - octet_length(data) AS before
    FROM turns.event WHERE turn_id = t.turn_id AND "offset" > a.after ORDER BY "offset" LIMIT %(limit)s
) e ON e.before < %(bytes)s
ORDER BY a.place, e."offset"

-- name: prune_events
-- Deletes a batch of events of the turns that ended longest ago, at most `events` of at most `turns` turns. A batch
-- that is not full holds all that these turns had left: they are done. Skips a turn that somebody changes meanwhile;
-- one that a Reset revived is no longer ended when its lock is granted.
WITH ended AS (
    SELECT turn_id FROM turns.turn
    WHERE status NOT IN ('pending', 'running') AND (pruned_at IS NULL OR pruned_at < updated_at)
      AND updated_at < now() - make_interval(secs => %(age_seconds)s)
    ORDER BY updated_at LIMIT %(turns)s FOR UPDATE SKIP LOCKED
), old AS (
    SELECT e.turn_id, e."offset" FROM ended JOIN turns.event e USING (turn_id) LIMIT %(events)s
), gone AS (
    DELETE FROM turns.event e USING old WHERE e.turn_id = old.turn_id AND e."offset" = old."offset" RETURNING 1
), done AS (
    UPDATE turns.turn t SET pruned_at = now() FROM ended
    WHERE t.turn_id = ended.turn_id AND (SELECT count(*) FROM old) < %(events)s RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS events, (SELECT count(*) FROM done) AS turns

-- name: shown_keys
-- What a turn has shown already; read once by an attempt that repeats an earlier one.
SELECT DISTINCT event, key FROM turns.event WHERE turn_id = %(turn_id)s

-- name: shown_messages
SELECT DISTINCT key FROM turns.event WHERE turn_id = %(turn_id)s AND starts_with(event, 'messages') AND key IS NOT NULL

-- name: streamed_tasks
-- Who streamed tokens or custom events; read once by an attempt that repeats an earlier one.
SELECT DISTINCT task FROM turns.event WHERE turn_id = %(turn_id)s AND task IS NOT NULL

-- name: take_back
-- Deletes what a task, or one inside of it, streamed, and tells of each message in it by its last event. Offsets that
-- are gone are passed over by readers, as those of pruned events are.
WITH gone AS (
    DELETE FROM turns.event
    WHERE turn_id = %(turn_id)s AND (task = %(task)s OR starts_with(task, %(task)s || '|'))
    RETURNING "offset", event, key, data
), last AS (
    SELECT DISTINCT ON (event, key) "offset", event, key, data FROM gone
    WHERE starts_with(event, 'messages') AND key <> '' ORDER BY event, key, "offset" DESC
)
SELECT event, key, data FROM last ORDER BY "offset"

-- ---------------------------------------------------------------- effects

-- name: start_effect
-- `before` is the state that the attempt found: in mode "once", "started" means that nobody knows.
WITH old AS (SELECT state, started_at FROM turns.effect WHERE key = %(key)s)
INSERT INTO turns.effect AS e (key, thread_id, turn_id, name, node, mode, compensate)
VALUES (%(key)s, %(thread_id)s, %(turn_id)s, %(name)s, %(node)s, %(mode)s, %(compensate)s)
ON CONFLICT (key) DO UPDATE SET updated_at = now(),
    -- Whoever carries it out answers for it; one that is done stays with who did it.
    turn_id = CASE WHEN e.state IN ('started', 'failed') THEN excluded.turn_id ELSE e.turn_id END, compensate = excluded.compensate,
    attempts = e.attempts + (e.state IN ('started', 'failed', 'finished'))::integer,
    state = CASE WHEN e.state IN ('started', 'failed') THEN 'started' ELSE e.state END
RETURNING state, attempts, settled, result_type, result, started_at, (SELECT state FROM old) AS before

-- name: finish_effect
UPDATE turns.effect SET state = 'finished', result_type = %(result_type)s, result = %(result)s, error = NULL,
    updated_at = now(), finished_at = coalesce(finished_at, clock_timestamp())
WHERE key = %(key)s AND state IN ('started', 'failed', 'finished')

-- name: settle_effect
-- started ► finished | failed, by a person; noted, so that the node asks at the same place when it runs again.
UPDATE turns.effect SET state = %(state)s, settled = true, result_type = %(result_type)s, result = %(result)s,
    updated_at = now(), finished_at = CASE WHEN %(state)s = 'finished' THEN clock_timestamp() END
WHERE key = %(key)s AND state = 'started'

-- name: fail_effect
UPDATE turns.effect SET state = 'failed', error = %(error)s, updated_at = now()
WHERE key = %(key)s AND state = 'started'

-- name: list_effects
-- Of one thread or of all, the newest first.
-- `unsettled` says why nobody knows the outcome. An attempt that a running turn made may still tell: its turn is the
-- effect's own, or began before the effect last changed. A question to a person holds the effect's key.
SELECT * FROM (
    SELECT e.key, e.thread_id, e.turn_id, e.name, e.node, e.mode, e.state, e.attempts, e.compensations, e.error,
           e.started_at, e.updated_at, CASE
        WHEN e.state = 'uncompensated' THEN 'uncompensated'
        WHEN e.state NOT IN ('started', 'compensating') OR EXISTS (
            SELECT 1 FROM turns.turn o WHERE o.thread_id = e.thread_id AND o.status IN ('pending', 'running')
              AND (o.turn_id = e.turn_id OR (o.status = 'running' AND o.updated_at <= e.updated_at))) THEN NULL
        WHEN e.state = 'compensating' THEN 'compensating'
        WHEN position(e.key IN h.interrupts::text) > 0 THEN 'asked'
        ELSE 'unknown' END AS unsettled
    FROM turns.effect e JOIN turns.thread h USING (thread_id)
    WHERE %(thread_id)s::uuid IS NULL OR e.thread_id = %(thread_id)s
) found
WHERE NOT %(unsettled)s OR unsettled IS NOT NULL
ORDER BY started_at DESC, key DESC LIMIT %(limit)s

-- name: compensable_effects
-- Whether there are finished effects with a compensation: of one turn, or also of the turns that it continued, back to
-- the one that ended for good. `plan_compensation` asks the same.
WITH me AS (
    SELECT turn_id, thread_id, origin, seq FROM turns.turn WHERE turn_id = %(turn_id)s
), mine AS (
    SELECT t.turn_id FROM turns.turn t, me WHERE t.turn_id = me.turn_id OR (
        %(continued)s AND t.thread_id = me.thread_id AND t.origin = me.origin AND t.seq < me.seq
        AND t.seq > coalesce((SELECT max(d.seq) FROM turns.turn d WHERE d.thread_id = me.thread_id
            AND d.seq < me.seq AND d.status = 'success' AND NOT d.waits), 0))
)
SELECT e.key FROM turns.effect e JOIN mine USING (turn_id)
WHERE e.compensate IS NOT NULL AND e.state = 'finished' LIMIT 1

-- name: plan_compensation
-- finished ► compensating, for all effects that a turn's failure or rollback undoes. From now on neither the turn nor
-- those that it continued can be retried or continued.
WITH me AS (
    SELECT turn_id, thread_id, origin, seq FROM turns.turn WHERE turn_id = %(turn_id)s
), mine AS (
    SELECT t.turn_id FROM turns.turn t, me WHERE t.turn_id = me.turn_id OR (
        %(continued)s AND t.thread_id = me.thread_id AND t.origin = me.origin AND t.seq < me.seq
        AND t.seq > coalesce((SELECT max(d.seq) FROM turns.turn d WHERE d.thread_id = me.thread_id
            AND d.seq < me.seq AND d.status = 'success' AND NOT d.waits), 0))
), planned AS (
    UPDATE turns.effect e SET state = 'compensating', undone_by = %(turn_id)s, updated_at = now()
    FROM mine WHERE e.turn_id = mine.turn_id AND e.compensate IS NOT NULL AND e.state = 'finished' RETURNING 1
)
UPDATE turns.turn t SET undone = true FROM mine
WHERE t.turn_id = mine.turn_id AND EXISTS (SELECT 1 FROM planned)

-- name: effects_to_undo
-- The last finished first.
SELECT key, name, node, mode, compensate, compensations, result_type, result FROM turns.effect
WHERE undone_by = %(turn_id)s AND state = 'compensating' ORDER BY finished_at DESC, key

-- name: start_compensation
-- compensating ► compensating; counted before the call, so that calls whose process dies are counted, too.
UPDATE turns.effect SET compensations = compensations + 1, updated_at = now()
WHERE key = %(key)s AND state = 'compensating'

-- name: end_compensation
-- compensating ► compensated | uncompensated
UPDATE turns.effect SET state = %(state)s, error = %(error)s, updated_at = now()
WHERE key = %(key)s AND state = 'compensating'

-- ---------------------------------------------------------------- abandoned work

-- name: abandoned_threads
-- Reads turns that ended badly from the newest on, until the page is full, then the effects of the page. A turn that
-- continued others (a resume) left their effects behind, too. Threads of stateless runs are nobody's to go on with:
-- they count as long as they exist and did something.
WITH page AS (
    SELECT t.thread_id, t.turn_id, t.seq, t.origin, t.status, t.error ->> 'error' AS error, t.updated_at AS ended_at
    FROM turns.turn t JOIN turns.thread h USING (thread_id)
    WHERE t.status IN ('error', 'interrupted', 'timeout') AND (t.status <> 'interrupted' OR t.origin IS NOT NULL)
      -- Not busy; not idle, which is what an edit of the state leaves that nothing is left to run in.
      AND h.status IN ('error', 'interrupted')
      AND NOT EXISTS (SELECT 1 FROM turns.turn l WHERE l.thread_id = t.thread_id AND l.seq > t.seq
          AND (l.status <> 'interrupted' OR l.origin IS NOT NULL))
      AND (NOT h.metadata ? 'turns_temporary'
          OR EXISTS (SELECT 1 FROM turns.effect e WHERE e.thread_id = t.thread_id))
      AND (%(only)s::jsonb[] IS NULL OR h.metadata @> ANY (%(only)s::jsonb[]))
    ORDER BY t.updated_at DESC, t.turn_id LIMIT %(limit)s OFFSET %(offset)s
)
SELECT p.thread_id, p.turn_id, p.status, p.error, p.ended_at, coalesce(e.effects, '[]') AS effects
FROM page p LEFT JOIN LATERAL (
    SELECT jsonb_agg(jsonb_build_object('run_id', e.turn_id, 'name', e.name, 'node', e.node, 'key', e.key,
        'state', e.state, 'attempts', e.attempts) ORDER BY e.started_at, e.key) AS effects
    FROM turns.turn o JOIN turns.effect e USING (turn_id)
    WHERE o.thread_id = p.thread_id AND (o.turn_id = p.turn_id OR (o.origin = p.origin AND o.seq < p.seq
        AND o.seq > coalesce((SELECT max(d.seq) FROM turns.turn d WHERE d.thread_id = p.thread_id
            AND d.seq < p.seq AND d.status = 'success' AND NOT d.waits), 0)))
) e ON true
ORDER BY p.ended_at DESC, p.turn_id

-- ---------------------------------------------------------------- node errors

-- name: store_node_error
INSERT INTO turns.node_error (thread_id, task_id, module, qualname, kind, arguments)
VALUES (%(thread_id)s, %(task_id)s, %(module)s, %(qualname)s, %(kind)s, %(arguments)s)
ON CONFLICT (thread_id, task_id) DO UPDATE SET module = excluded.module, qualname = excluded.qualname,
    kind = excluded.kind, arguments = excluded.arguments

-- name: load_node_errors
SELECT task_id, module, qualname, kind, arguments FROM turns.node_error
WHERE thread_id = %(thread_id)s AND task_id = ANY (%(task_ids)s)
