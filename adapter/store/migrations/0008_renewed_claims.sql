-- Claims of a run that goes on: see adapter/writer.py.

-- Gives an attempt the claim of a thread that an earlier activity of the same turn held, in the same worker. Raises TF002
-- if anything happened to the thread since; each of the statements sees what was committed before it, also while the
-- first one waited.
CREATE FUNCTION turns.renew_claim(
    thread uuid, turn uuid, run text, head text, old bigint, old_attempt integer, mine bigint, mine_attempt integer
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE turns.fence SET token = mine, attempt = mine_attempt
    WHERE thread_id = thread AND scope = '' AND token = old AND attempt = old_attempt
      AND (old, old_attempt) < (mine, mine_attempt);
    IF NOT FOUND OR NOT EXISTS (
        SELECT 1 FROM turns.turn t WHERE t.turn_id = turn AND t.status = 'running' AND NOT t.undone AND t.run_id = run
    ) OR head IS DISTINCT FROM (
        SELECT checkpoint_id FROM checkpoints WHERE thread_id = thread::text AND checkpoint_ns = ''
        ORDER BY checkpoint_id DESC LIMIT 1
    ) THEN
        RAISE EXCEPTION 'thread % is not as attempt %/% left it for %/%', thread, old, old_attempt, mine, mine_attempt
            USING ERRCODE = 'TF002';
    END IF;
    -- Whoever watches the thread's progress.
    PERFORM pg_notify('turns_thread', thread::text);
END $$;
