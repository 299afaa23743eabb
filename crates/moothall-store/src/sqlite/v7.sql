-- What happened after a consultation: answers to its forecasts, and moves that the company took.
ALTER TABLE runs ADD COLUMN later_outcomes TEXT;
