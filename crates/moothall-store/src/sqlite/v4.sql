-- Whom everything in a server belongs to. `local` is whoever uses the program on their own machine.
CREATE TABLE teams (
    name TEXT PRIMARY KEY,
    created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO teams (name, created_at_ms) VALUES ('local', 0);

-- Only hashes of secrets are kept: whoever reads the file cannot call the server.
CREATE TABLE tokens (
    token_id TEXT PRIMARY KEY,
    team TEXT NOT NULL REFERENCES teams,
    label TEXT NOT NULL,
    secret_sha256 TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    limits TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    last_used_at_ms INTEGER,
    revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;

-- What a browser has after it signed in with a token, or with a login code and so without one.
CREATE TABLE sessions (
    secret_sha256 TEXT PRIMARY KEY,
    team TEXT NOT NULL REFERENCES teams,
    token_id TEXT REFERENCES tokens,
    scopes TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Each is exchanged once for a session.
CREATE TABLE login_codes (
    secret_sha256 TEXT PRIMARY KEY,
    team TEXT NOT NULL REFERENCES teams,
    scopes TEXT NOT NULL,
    expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The runs that are there were started on the machine. SQLite adds no column that refers to another
-- table and has a default, so whoever makes a run looks for its team.
ALTER TABLE runs ADD COLUMN team TEXT NOT NULL DEFAULT 'local';
ALTER TABLE runs ADD COLUMN token_id TEXT;
ALTER TABLE runs ADD COLUMN cap_micro_usd INTEGER;

CREATE INDEX runs_by_team ON runs (team, created_at_ms, run_id);
CREATE INDEX runs_by_token ON runs (token_id, created_at_ms) WHERE token_id IS NOT NULL;

-- A request to start a run that is made again finds the run that it started.
CREATE TABLE requests (
    team TEXT NOT NULL,
    key TEXT NOT NULL,
    request_sha256 TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    PRIMARY KEY (team, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_run ON requests (run);
