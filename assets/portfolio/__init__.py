"""What is made by night, by week or on request for all customers, a bucket at a time."""
