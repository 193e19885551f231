-- Flights to which no plane was ever assigned are withdrawn.

DELETE FROM flights WHERE tailnum IS NULL;
