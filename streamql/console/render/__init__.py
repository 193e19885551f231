"""Text for stdout and stderr: values, rows, streams, and the lines of progress and errors."""
