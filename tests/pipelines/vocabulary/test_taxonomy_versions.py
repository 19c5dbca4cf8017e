"""A fitted model states the version of the taxonomy that its labels or metrics mean."""

from pipelines.vocabulary.taxonomy import VERSION, describe_other_version


def test_model_of_another_version_of_the_taxonomy_is_described() -> None:
    message = describe_other_version({"taxonomy": VERSION - 1})
    assert message == (
        f"It was fitted with version {VERSION - 1} of the taxonomy; the present one is {VERSION}. Fit it again."
    )


def test_model_of_this_version_or_of_an_unknown_one_is_not() -> None:
    assert describe_other_version({"taxonomy": VERSION}) is None
    assert describe_other_version({}) is None
