"""Who the other party is, and which category follows from that."""
