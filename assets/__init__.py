"""Act: Dagster's assets, schedules and sensors, and the workers that run them."""
