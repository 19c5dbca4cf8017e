"""The warm processes of a worker, and the calls that other processes make to a worker."""
