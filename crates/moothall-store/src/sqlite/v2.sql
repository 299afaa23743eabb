-- A person's word on a move of a consultation; the first one stays.
CREATE TABLE approvals (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    move_id TEXT NOT NULL,
    approved_by TEXT NOT NULL,
    note TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (run, move_id)
) STRICT, WITHOUT ROWID;
