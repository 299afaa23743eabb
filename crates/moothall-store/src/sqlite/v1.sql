-- "Moot": says whose file this is.
PRAGMA application_id = 1299148660;

-- `run` is a short key for the tables below; nobody outside sees it.
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    workflow TEXT NOT NULL,
    title TEXT NOT NULL,
    input TEXT NOT NULL,
    model TEXT NOT NULL,
    build TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    head INTEGER NOT NULL,
    outcome TEXT,
    spent TEXT
) STRICT;

CREATE INDEX runs_by_time ON runs (created_at_ms, run_id);

-- Without rowid: events are read in ranges of (run, seq), so they lie in that order.
CREATE TABLE events (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    key TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, seq),
    UNIQUE (run, key)
) STRICT, WITHOUT ROWID;

-- With rowid: results are long, and a tree of short keys finds them faster.
CREATE TABLE journal (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    effect_id TEXT NOT NULL,
    request_sha256 TEXT NOT NULL,
    latency_ms INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    result TEXT NOT NULL,
    UNIQUE (run, effect_id)
) STRICT;

CREATE TABLE wishes (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    wish TEXT NOT NULL,
    PRIMARY KEY (run, wish)
) STRICT, WITHOUT ROWID;

-- With rowid: artefacts are long. One row for a content, however many files of a run have it.
CREATE TABLE artifacts (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    content BLOB NOT NULL,
    UNIQUE (run, sha256)
) STRICT;
