"""The larger test targets are divided into parts that omit nothing."""

from tests.parts import group_files, is_unchanged_since


def test_every_file_is_in_exactly_one_part() -> None:
    files = [
        "tests/api/core/test_contract.py",
        "tests/api/webhooks/test_listen.py",
        "tests/faults/test_kills.py",
        "tests/faults/test_disk.py",
        "tests/faults/test_fleet.py::test_killed_at_random[worker of machine one]",
        "tests/flows/test_portfolio.py",
        "tests/pipelines/enrichment/matching/test_steps.py",
        "tests/pipelines/enrichment/learned/test_model.py",
        "tests/test_parts.py",
    ]
    assert group_files(files) == {
        "api": ["tests/api/core/test_contract.py", "tests/api/webhooks/test_listen.py"],
        "faults/test_kills": ["tests/faults/test_kills.py"],
        "faults/test_disk": ["tests/faults/test_disk.py"],
        "faults/test_fleet/test_killed_at_random-worker-of-machine-one": [
            "tests/faults/test_fleet.py::test_killed_at_random[worker of machine one]"
        ],
        "flows": ["tests/flows/test_portfolio.py"],
        "pipelines/enrichment": [
            "tests/pipelines/enrichment/matching/test_steps.py",
            "tests/pipelines/enrichment/learned/test_model.py",
        ],
        ".": ["tests/test_parts.py"],
    }


def test_a_part_that_never_passed_or_passed_on_an_unknown_commit_is_run() -> None:
    for commit in ("", "0" * 40, "HEAD with changes"):
        assert not is_unchanged_since(commit), commit
