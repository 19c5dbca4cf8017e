"""The console: pages at `/` for the people of a lender. Read this page, then write a page.

    router = APIRouter(route_class=PageRoute, include_in_schema=False)

    @router.get("/customers/{customer_id}/notes")
    async def show_notes(page: SignedIn, customer_id: str) -> Response:
        notes = await page.get("customer", customer_id, "notes", page=1, count=20)
        return page.show("notes.html", notes=notes, customer_id=customer_id)

    @router.post("/customers/{customer_id}/notes")
    async def add_note(page: SignedIn, customer_id: str) -> Response:
        form = await page.form()
        await page.post("customer", customer_id, "notes", json={"text": form["text"]})
        return page.to(f"/customers/{customer_id}/notes", "The note is stored.")

**The console is a client of the HTTP API.** A page calls documented routes in this process (`calls`), as the signed-in
user, with the scopes of the user's role. So a page can do nothing that the API can't, tenants are kept apart in one
place, and everything is recorded with the user's id. A page that needs more gets a route first.

- `visits.Page` is one request of a signed-in user: `get`, `post`, `put`, `delete` call the API; `may(scope)` says what
  to offer; `form()` reads a form of at most FORM_BYTES and checks its CSRF token, `check_form()` only does the latter;
  `show` renders a template; `to` redirects with a sentence that the next page shows. A refusal of the API ends the page
  with that problem as a page; to show it beside a form instead, catch `calls.Correctable`. `names` says who is meant by
  the ids of responses.
- Pages work without JavaScript. Attributes of htmx improve some: they fetch the same pages and select a part of them
  (`hx-select`), so there are no partial templates. Whatever such a request may show must be in that part, also faults
  and the sentence that nothing was found. If the page is refused, the part shows the reason (`routes.IN_PLACE`). The
  content policy allows no inline script or style.
- `templates/layout.html` is the frame; `templates/kit.html` has the macros for forms, badges and pages of a list.
  Filters write money, days and numbers (`rendering`), the same way as the reports.
- `routes.PageRoute` sends people to sign in, and shows refusals as pages.
- A module of `pages` per subject; all are listed in `pages.ROUTERS`.
"""
