"""Computations over all of a lender's customers: a comparison of two releases of the enrichment."""
