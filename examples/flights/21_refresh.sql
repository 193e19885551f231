-- Computes the query again, and writes the rows that differ.

REFRESH DYNAMIC TABLE carrier_days;
