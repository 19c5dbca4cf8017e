"""What the API adds to FastAPI, in one package. Read this page, then write a route as FastAPI's documentation does.

    router = APIRouter(route_class=Route, prefix="/v1/things", tags=["Things"])
    Reader = Annotated[Caller, Depends(Allow("things:read", "things:write"))]
    Writer = Annotated[Caller, Depends(Allow("things:write"))]

    @router.get("/{thingId}", response_model=envelope(ThingView))
    def get_thing(caller: Reader, thing_id: ThingId, query: Annotated[VersionQuery, Query()]) -> Response:
        with caller.reading() as r:
            return respond(ThingView.of(things.get(r, caller.client_id, as_uuid(thing_id), query.version)))

    @router.post(
        "",
        status_code=201,
        response_model=envelope(ThingView),
        responses=refuses("Thing.TooMany"),
        dependencies=[IDEMPOTENT],
    )
    def create_thing(caller: Writer, sent: NewThing) -> Response:
        with caller.writing() as w:
            made = things.create(w, caller.client_id, sent.record(), caller.now)
            return caller.store_response(w, respond(ThingView.of(made), status=201, headers=...))

A query and a body are pydantic models whose fields have a `Rule` (`api.core.schemas.rules`), which says how a value is
parsed and with which code and sentence it is refused. The OpenAPI document follows from the signature and the
decorator; `api.service.openapi` adds what applies to every operation.

The concepts, each in the module of its name:

- `route.Route` keeps the contract's order: 401, 403, 415 and 413, then the body, 404, 400. FastAPI would receive and
  validate a body before any dependency. `Route` checks the key first, receives the body within its limits, and calls
  the function with the validated model. When a query or body is invalid, it first looks up the ids in the path, and
  responds with 404 rather than 400 if one doesn't exist. Work that needs a thread waits for the client's turn.
- `dependencies.Caller` is the client that asks, and gives access to its data. `Allow` lists scopes; a key needs one of
  them. `Named` says how an id in a path is looked up, the code of its 404, and which operation returns such ids.
- `bodies` receives JSON within limits, decodes it strictly with exact decimals (large bodies in a child process), and
  validates it against its model. It reports all faults at once, each with a pointer. `uploads` does the same for files.
- `idempotency.IDEMPOTENT` lets a POST honour `Idempotency-Key`; `caller.store_response` stores the response in
  the transaction that creates the resource.
- `four_eyes` requests an action instead of performing it, if the client requires a second person or key for it.
- `responses` encodes `{data, message}`: decimals as numbers with all their digits, long lists streamed slice by slice.
- `problems` turns every error into a response (RFC 9457). `documented.refuses` lists in a decorator the codes that only
  this route answers with, from the catalogue of all public codes (`pipelines/vocabulary/codes.yaml`).
- `unknown` collects unknown fields and parameters, for the response's `message`.
"""
