"""A fitted scorecard as one JSON file: everything that it knows is readable, and reading it can't run anything.

The fingerprint is the SHA-256 of the content; it names the scorecard, and tells a damaged file.
"""

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from pipelines.scorecards.scorecard import Band, Feature, Link, Scorecard
from pipelines.vocabulary.errors import Unprocessable

FORMAT = "tidemark-risk-1"
_VERSION_LETTERS = 12


def dumps(scorecard: Scorecard) -> bytes:
    """The scorecard's file, readable by people. The same scorecard gives the same bytes."""
    content = _content(scorecard)
    return (json.dumps({**content, "fingerprint": _fingerprint(content)}, indent=1, ensure_ascii=False) + "\n").encode()


def loads(file: bytes) -> Scorecard:
    """The scorecard of a file. Its version is the start of its fingerprint.

    Raises:
        Unprocessable: the file is damaged, is no scorecard, or one that can't be used.
    """
    try:
        content = json.loads(file)
        stated = content.pop("fingerprint")
        if content.get("format") != FORMAT:
            raise _refused("it is none of this version's")
        if stated != _fingerprint(content):
            raise _refused("it is damaged: its content is not what was written")
        return _scorecard(content, stated)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidOperation) as error:
        raise _refused(f"its parts don't fit together ({str(error)[:100]})") from error


def fingerprint(scorecard: Scorecard) -> str:
    """64 hexadecimal digits."""
    return _fingerprint(_content(scorecard))


def _content(scorecard: Scorecard) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": scorecard.name,
        "calibration": scorecard.calibration,
        "link": {"evenPoints": str(scorecard.link.even), "doublingPoints": str(scorecard.link.doubling)},
        "features": [_of_feature(feature) for feature in scorecard.features],
        "facts": dict(scorecard.facts),
    }


def _of_feature(feature: Feature) -> dict[str, Any]:
    return {
        "metric": feature.metric,
        "moreIsBetter": feature.more_is_better,
        "bands": [[None if band.limit is None else str(band.limit), str(band.points)] for band in feature.bands],
        "missing": str(feature.missing),
        "step": str(feature.step),
        "reason": feature.reason,
    }


def _scorecard(content: Mapping[str, Any], stated: str) -> Scorecard:
    if content["calibration"] not in ("synthetic", "client"):
        raise ValueError("its calibration is unknown")
    link = content["link"]
    return Scorecard(
        name=str(content["name"]),
        version=stated[:_VERSION_LETTERS],
        calibration=content["calibration"],
        features=tuple(_feature(each) for each in content["features"]),
        link=Link(Decimal(link["evenPoints"]), Decimal(link["doublingPoints"])),
        facts=dict(content["facts"]),
    )


def _feature(each: Mapping[str, Any]) -> Feature:
    bands = (Band(None if limit is None else Decimal(limit), Decimal(points)) for limit, points in each["bands"])
    return Feature(
        metric=str(each["metric"]),
        more_is_better=each["moreIsBetter"] is True,
        bands=tuple(bands),
        reason=str(each["reason"]),
        missing=Decimal(each["missing"]),
        step=Decimal(each["step"]),
    )


def _fingerprint(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _refused(reason: str) -> Unprocessable:
    return Unprocessable("RiskModel.Unusable", f"The risk model can't be used: {reason}.")
