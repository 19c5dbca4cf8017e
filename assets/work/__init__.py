"""Work of people that goes on by itself."""
