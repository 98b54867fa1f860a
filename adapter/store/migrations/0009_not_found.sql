-- For statements that a transaction is to fail with when they find nothing: nobody has to wait for their result.
CREATE FUNCTION turns.not_found(what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', what USING ERRCODE = 'TF003';
END $$;
