"""Views as sources of streams. Their change sets are in `streamql.sources.views`."""
