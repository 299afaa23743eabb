-- Everything that grows with runs is divided by the hash of the run's id: vacuum, indices and
-- backups then work on pieces, and whoever asks for one run touches one piece of each table.
--
-- Texts sort by their bytes (`COLLATE "C"`), as in every other store, whatever the language of the
-- cluster is. Documents are `text`, not `jsonb`: they are read back as the bytes that were written,
-- and `jsonb` cannot hold the character NUL, which models can write.

-- Whom everything belongs to. `local` is whoever uses the program on their own machine.
CREATE TABLE teams (
    name text COLLATE "C" PRIMARY KEY,
    created_at_ms bigint NOT NULL
);

INSERT INTO teams (name, created_at_ms) VALUES ('local', 0);

-- Only hashes of secrets are kept: whoever reads the database cannot call the server.
CREATE TABLE tokens (
    token_id text COLLATE "C" PRIMARY KEY,
    team text COLLATE "C" NOT NULL REFERENCES teams,
    label text NOT NULL,
    secret_sha256 text COLLATE "C" NOT NULL UNIQUE,
    scopes text NOT NULL,
    limits text NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint,
    last_used_at_ms bigint,
    revoked_at_ms bigint
);

-- What a browser has after it signed in with a token, or with a login code and so without one.
CREATE TABLE sessions (
    secret_sha256 text COLLATE "C" PRIMARY KEY,
    team text COLLATE "C" NOT NULL REFERENCES teams,
    token_id text COLLATE "C" REFERENCES tokens,
    scopes text NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL
);

CREATE INDEX sessions_by_token ON sessions (token_id) WHERE token_id IS NOT NULL;

-- Each is exchanged once for a session.
CREATE TABLE login_codes (
    secret_sha256 text COLLATE "C" PRIMARY KEY,
    team text COLLATE "C" NOT NULL REFERENCES teams,
    scopes text NOT NULL,
    expires_at_ms bigint NOT NULL
);

-- The row of a run is its lock: whoever writes to a run holds it, so that `head` has no gaps.
CREATE TABLE runs (
    run_id uuid PRIMARY KEY,
    team text COLLATE "C" NOT NULL REFERENCES teams,
    token_id text COLLATE "C",
    cap_micro_usd bigint,
    workflow text NOT NULL,
    title text NOT NULL,
    input text NOT NULL,
    model text NOT NULL,
    build text NOT NULL,
    created_at_ms bigint NOT NULL,
    state text NOT NULL,
    updated_at_ms bigint NOT NULL,
    head bigint NOT NULL,
    outcome text,
    spent text
) PARTITION BY HASH (run_id);

CREATE INDEX runs_by_time ON runs (created_at_ms, run_id);
CREATE INDEX runs_by_team ON runs (team, created_at_ms, run_id);
CREATE INDEX runs_by_token ON runs (token_id, created_at_ms) WHERE token_id IS NOT NULL;
CREATE INDEX runs_by_state ON runs (state);

CREATE TABLE events (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    seq bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    at_ms bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (run_id, seq),
    UNIQUE (run_id, key)
) PARTITION BY HASH (run_id);

-- One answer for a question of a run. The hash of the question is beside it, so that an old answer
-- is never given to a new question, and a question that was answered is never paid for again.
CREATE TABLE journal (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    effect_id text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL,
    latency_ms bigint NOT NULL,
    tries bigint NOT NULL,
    result text NOT NULL,
    PRIMARY KEY (run_id, effect_id)
) PARTITION BY HASH (run_id);

-- One row for a content, however many files of a run have it.
CREATE TABLE artifacts (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    sha256 bytea NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (run_id, sha256)
) PARTITION BY HASH (run_id);

-- Pictures and archives are compressed already: trying it again costs time and gains nothing.
ALTER TABLE artifacts ALTER COLUMN content SET STORAGE EXTERNAL;

DO $$
BEGIN
    FOR part IN 0..15 LOOP
        -- Every commit writes the row of its run again; room in its page keeps that out of the
        -- indices.
        EXECUTE format('CREATE TABLE runs_%s PARTITION OF runs
                        FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (fillfactor = 60)',
                       part, part);
        EXECUTE format('CREATE TABLE events_%s PARTITION OF events
                        FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
        EXECUTE format('CREATE TABLE journal_%s PARTITION OF journal
                        FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
        EXECUTE format('CREATE TABLE artifacts_%s PARTITION OF artifacts
                        FOR VALUES WITH (MODULUS 16, REMAINDER %s)', part, part);
    END LOOP;
END $$;

-- What persons say about runs is a few rows a run: not worth dividing.

CREATE TABLE wishes (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    wish text COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, wish)
);

-- A person's word on a move of a consultation; the first one stays.
CREATE TABLE approvals (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    move_id text COLLATE "C" NOT NULL,
    approved_by text NOT NULL,
    note text NOT NULL,
    at_ms bigint NOT NULL,
    PRIMARY KEY (run_id, move_id)
);

-- What persons want changed in the moves of a consultation, until the run is told.
CREATE TABLE changes (
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    seq bigint NOT NULL,
    change text NOT NULL,
    PRIMARY KEY (run_id, seq)
);

-- A request to start a run that is made again finds the run that it started.
CREATE TABLE requests (
    team text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL,
    run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    PRIMARY KEY (team, key)
);

CREATE INDEX requests_by_run ON requests (run_id);
