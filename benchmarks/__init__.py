"""`make bench`: what the service does in a second, beside a named peer in the same run."""
