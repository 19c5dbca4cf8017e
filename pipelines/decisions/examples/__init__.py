"""Three complete policies to start from, as documents: the demo uses them, and so may whoever writes their first."""

from importlib.resources import files
from typing import Any

from pipelines.vocabulary.rule_files import parse


def load() -> dict[str, dict[str, Any]]:
    """The documents by slug."""
    documents = [parse(text, name) for name, text in texts().items()]
    return {document["slug"]: document for document in documents}


def texts() -> dict[str, str]:
    """The files' YAML by name, comments and all."""
    here = sorted(files(__name__).iterdir(), key=lambda file: file.name)
    return {file.name: file.read_text("utf-8") for file in here if file.name.endswith(".yaml")}
