"""Read a file's pages, and decide which of them belong to one document or account, and in which order."""
