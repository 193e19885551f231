"""Tasks, their schedules, their graphs and the runs of these, as data. Pure."""
