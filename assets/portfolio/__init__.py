"""Assets and jobs over all customers: nightly, weekly or on request, one bucket at a time."""
