"""What every asset is made with: runs, batches, checks, processes."""
