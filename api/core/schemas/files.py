"""Files as callers send them, in JSON or as a form: PDF statements, and attachments of any type."""

import base64
from typing import Annotated, Any

from pydantic import Field

from api.core.schemas.common import Received
from api.core.schemas.rules import ListItem, Rule, count_between, optional_text
from storage.core.settings import Settings
from storage.work.attachments import MAX_BYTES

MAX_FILES = 20
MAX_PASSWORD_BYTES = 1024
ANY_TYPE = "application/octet-stream"
BASE64_OF_A_BYTE = 4  # characters


def _base64(value: Any) -> bytes:
    if type(value) is not str:
        raise ValueError
    return base64.b64decode(value, validate=True)


def _any_text(value: Any) -> str:
    if value is None:
        return ""
    if type(value) is not str:
        raise ValueError
    return value


def _name_rule(code: str) -> Rule:
    schema = {"type": ["string", "null"], "description": "For display only; cut to 255 characters."}
    return Rule(_any_text, code, "fileName is text.", schema)


def _content_rule(code: str, media_type: str, **limits: int) -> Rule:
    schema = {"type": "string", "contentEncoding": "base64", "contentMediaType": media_type, **limits}
    schema["description"] = "The file in Base64, with padding and without line breaks."
    return Rule(_base64, code, "contentBase64 is a file in Base64.", schema)


class SentPdf(Received):
    file_name: Annotated[str, _name_rule("Statement.InvalidFileName")] = ""
    content_base64: Annotated[bytes, _content_rule("Statement.InvalidContent", "application/pdf")]
    password: Annotated[
        str | None,
        optional_text(
            "password",
            "Statement.InvalidPassword",
            MAX_PASSWORD_BYTES,
            "Stored encrypted, until the file has been read.",
        ),
    ] = None


class SentFiles(Received):
    """Files of one customer, of any of its accounts and banks: PDF statements, and in uploads also exports."""

    files: Annotated[
        list[Annotated[SentPdf, ListItem()]],
        count_between(1, MAX_FILES, "Statement.WrongCount", f"A request must have 1 to {MAX_FILES} files."),
    ] = Field(description=f"At most {MAX_FILES}.", json_schema_extra={"minItems": 1, "maxItems": MAX_FILES})


class SentAttachment(Received):
    """A file of any type."""

    file_name: Annotated[str, _name_rule("Attachment.InvalidFileName")] = ""
    content_base64: Annotated[bytes, _content_rule("Attachment.InvalidContent", ANY_TYPE, minLength=BASE64_OF_A_BYTE)]


def _default_mib(setting: str) -> int:
    default: int = Settings.model_fields[setting].default
    return default // 2**20


# The body of the same request as a form.
FORM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_FILES,
            "items": {"type": "string", "contentMediaType": "application/pdf", "format": "binary"},
            "description": f"PDF files, by default at most {_default_mib('max_file_bytes')} MiB each and "
            f"{_default_mib('max_multipart_bytes')} MiB together.",
        },
        "password": {
            "type": "array",
            "maxItems": MAX_FILES,
            "items": {"type": "string", "maxLength": MAX_PASSWORD_BYTES},
            "description": "One password for all files, or one for each file in order. An empty one means no password.",
        },
    },
}

ATTACHMENT_FORM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {
            "type": "string",
            "contentMediaType": ANY_TYPE,
            "format": "binary",
            "minLength": 1,
            "description": f"A file of 1 byte to {MAX_BYTES // 2**20} MiB.",
        },
    },
}
