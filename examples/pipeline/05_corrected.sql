-- The quarantined reports come again, corrected.

INSERT INTO reports
SELECT tailnum, dest, scheduled, coalesce(nullif(regexp_extract(replace(delay, 'O', '0'), '[0-9]+', 0), ''), '0')
FROM checked_reports_quarantine;

DELETE FROM checked_reports_quarantine;
