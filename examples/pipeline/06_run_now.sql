-- Runs the tasks now, without waiting for the scheduler.

EXECUTE TASK keep_planes;
