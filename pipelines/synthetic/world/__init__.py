"""Names, brands, merchants and days of the synthetic world."""
