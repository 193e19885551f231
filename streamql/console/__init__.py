"""What the command line and the features' commands share: options, output, statements of scripts, and jobs."""
