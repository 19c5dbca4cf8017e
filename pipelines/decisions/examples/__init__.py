"""Three complete policies as documents: the demo uses them, and authors can start from them."""

from importlib.resources import files
from typing import Any

from pipelines.vocabulary.rule_files import parse


def load() -> dict[str, dict[str, Any]]:
    """Return the documents by slug."""
    documents = [parse(text, name) for name, text in texts().items()]
    return {document["slug"]: document for document in documents}


def texts() -> dict[str, str]:
    """Return the files' YAML, including comments, by name."""
    listed = sorted(files(__name__).iterdir(), key=lambda file: file.name)
    return {file.name: file.read_text("utf-8") for file in listed if file.name.endswith(".yaml")}
