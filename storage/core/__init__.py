"""What every subject stores with: database, lake, leases, vault, settings."""
