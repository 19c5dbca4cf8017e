"""The application that holds all endpoints, its OpenAPI document, and the commands that start processes."""
