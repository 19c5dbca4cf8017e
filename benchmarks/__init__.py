"""`make bench`: measure the service, and compare it with named peers in the same run."""
