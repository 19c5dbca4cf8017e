"""Tables of all of a client's customers, and jobs over them."""
