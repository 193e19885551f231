"""The job of `streamql run`: one run of a script, the series of its runs, their events, and the signals that end them."""
