-- What several workers of a run have reserved of its budget. Its row has one writer at a time, so it
-- is the one owner of the money.
ALTER TABLE runs ADD COLUMN purse text;
