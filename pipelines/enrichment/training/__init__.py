"""Training a model of categories from labelled rows, and measuring it."""
