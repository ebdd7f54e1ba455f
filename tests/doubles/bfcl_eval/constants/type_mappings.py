"""What types of functions are called in a schema."""

GORILLA_TO_OPENAPI = {"dict": "object", "float": "number"}
