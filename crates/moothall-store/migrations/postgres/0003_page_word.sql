-- What a page sends beside its session cookie is a second random secret; it used to be derived from
-- the cookie. Browsers sign in again.
DELETE FROM sessions;
ALTER TABLE sessions ADD COLUMN page_word text NOT NULL DEFAULT '';
