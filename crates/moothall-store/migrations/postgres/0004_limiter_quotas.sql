-- Requests and tokens per minute that all processes share. `next` is the time at which the quota is
-- completely unused again.
CREATE TABLE limiter_quotas (
    name text PRIMARY KEY,
    next timestamptz NOT NULL
);
