"""Tables over all of a client's customers, and the jobs that work through them."""
