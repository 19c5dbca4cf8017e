"""What the API adds to FastAPI, in one package. Read this page, then write a route as FastAPI's documentation does.

    router = APIRouter(route_class=Route, prefix="/v1/things", tags=["Things"])
    Reader = Annotated[Caller, Depends(Allow("things:read", "things:write"))]
    Writer = Annotated[Caller, Depends(Allow("things:write"))]

    @router.get("/{thingId}", response_model=enveloped(ThingView))
    def get_thing(caller: Reader, thing_id: ThingId, query: Annotated[WhichVersion, Query()]) -> Response:
        with caller.reading() as r:
            return answer(ThingView.of(things.get(r, caller.client_id, as_uuid(thing_id), query.version)))

    @router.post(
        "",
        status_code=201,
        response_model=enveloped(ThingView),
        responses=refuses("Thing.TooMany"),
        dependencies=[IDEMPOTENT],
    )
    def create_thing(caller: Writer, sent: NewThing) -> Response:
        with caller.writing() as w:
            made = things.create(w, caller.client_id, sent.record(), caller.now)
            return caller.keep(w, answer(ThingView.of(made), status=201, headers=...))

A query and a body are pydantic models whose fields have a `Rule` (`api.core.schemas.rules`): how a value is read, and
the code and sentence of its refusal. The OpenAPI document follows from the signature and the decorator; what holds for
every operation is added in `api.service.openapi`.

The concepts, each in the module of its name:

- `route.Route` keeps the contract's order: 401, 403, 415 and 413, then the body, 404, 400. FastAPI would receive and
  validate a body before any dependency. `Route` checks the key first, receives the body within its limits, and gives
  FastAPI the validated model; when a query or body is invalid, it looks for what the path names before it answers 400.
  Work that needs a thread waits for the client's turn.
- `dependencies.Caller` is who asks, with what is theirs; `Allow` names the scopes of which a key needs one. An id in a
  path says by `Named` how it is looked for, the code of its 404, and which operation gives it.
- `bodies` receives JSON within limits, decodes it strictly with exact decimals (large bodies in a child process), and
  reads it as its model: all faults at once, each with a pointer. `uploads` does the same for files.
- `idempotency.IDEMPOTENT` lets a POST honour `Idempotency-Key`; `caller.keep` stores the answer in the transaction
  that creates.
- `answers` encodes `{data, message}`: decimals as numbers with their digits, long lists streamed slice by slice.
- `problems` answers every error as RFC 9457; `documented.refuses` names in a decorator the codes that only this route
  answers with, out of the catalogue of all public codes (`pipelines/vocabulary/codes.yaml`).
- `unknown` collects the names that nobody knows, for the answer's `message`.
"""
