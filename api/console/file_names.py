"""The names of the files in a form that is passed on: the API's refusals never repeat what was sent."""

from collections.abc import AsyncIterator

from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from pipelines.intake.statement_rows import shown_name


class PassingForm:
    """The body of a request, to be passed on once. `file_names` has the names of its files so far, fit to be shown.

    A body that isn't a form has no names, and is passed on all the same: the API refuses it.
    """

    def __init__(self, request: Request) -> None:
        self.file_names: list[str] = []
        self._request = request
        self._header = (bytearray(), bytearray())  # name and value so far

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parser = self._start_parser()
        async for chunk in self._request.stream():
            if parser is not None:
                try:
                    parser.write(chunk)
                except ValueError:
                    parser = None
            yield chunk

    def _start_parser(self) -> MultipartParser | None:
        _, options = parse_options_header(self._request.headers.get("content-type"))
        try:
            return MultipartParser(
                options.get(b"boundary", b""),
                {
                    "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
                    "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
                    "on_header_end": self._read_header,
                },
            )
        except ValueError:
            return None

    def _read_header(self) -> None:
        name, value = self._header
        self._header = (bytearray(), bytearray())
        if name.lower() == b"content-disposition":
            _, options = parse_options_header(value.decode("latin-1"))
            if options.get(b"name") == b"file":
                self.file_names.append(shown_name(options.get(b"filename", b"").decode(errors="replace")))
