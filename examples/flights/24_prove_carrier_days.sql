-- Is the dynamic table what its query gives, at the versions that it was refreshed at?

VERIFY DYNAMIC TABLE carrier_days;
