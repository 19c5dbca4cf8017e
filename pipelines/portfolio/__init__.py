"""What is computed over all of a lender's customers: releases of the enrichment compared."""
