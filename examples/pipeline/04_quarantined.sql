-- The reports that the stream left out, and why.

SELECT tailnum, dest, delay, __expectation, coalesce(left(__error, 20), 'FALSE or NULL') AS why
FROM checked_reports_quarantine
ORDER BY tailnum;
