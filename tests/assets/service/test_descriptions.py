"""What Dagster's pages say of assets, jobs, schedules and sensors."""

from collections.abc import Iterator

from assets.definitions import definitions


def descriptions() -> Iterator[tuple[str, str | None]]:
    repository = definitions().get_repository_def()
    for spec in definitions().resolve_all_asset_specs():
        yield spec.key.to_user_string(), spec.description
    for each in (*repository.get_all_jobs(), *repository.schedule_defs, *repository.sensor_defs):
        if not each.name.startswith("__"):  # Dagster's own job
            yield each.name, each.description


def test_descriptions_are_text() -> None:
    """They are Markdown, in which an indented line, such as of a docstring, is code and is cut off."""
    described = dict(descriptions())
    assert len(described) > 20
    for name, description in described.items():
        assert description, name
        assert not any(line.startswith("    ") for line in description.splitlines()), name
