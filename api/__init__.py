"""Act: the HTTP API, the console and the commands."""
