"""A year of flights through three table streams: a replica, a summary and an audit table, proved right after every step."""
