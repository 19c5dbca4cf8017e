"""A scorecard as one JSON file: everything in it is readable, and reading it can't run code.

The fingerprint is the SHA-256 of the content. It identifies the scorecard and reveals a damaged file.
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
    """Return the scorecard's file, readable by people. The same scorecard gives the same bytes."""
    content = _content(scorecard)
    return (json.dumps({**content, "fingerprint": _fingerprint(content)}, indent=1, ensure_ascii=False) + "\n").encode()


def loads(file: bytes) -> Scorecard:
    """Read a scorecard from a file. Its version is the start of its fingerprint.

    Raises:
        Unprocessable: the file is damaged, not a scorecard, or not usable.
    """
    try:
        content = json.loads(file)
        stated = content.pop("fingerprint")
        if content.get("format") != FORMAT:
            raise _refusal("it is not a scorecard file of this version of Tidemark")
        if stated != _fingerprint(content):
            raise _refusal("it is damaged: its content differs from what was written")
        return _scorecard(content, stated)
    except (KeyError, TypeError, ValueError, AttributeError, InvalidOperation) as error:
        raise _refusal(f"its parts don't fit together ({str(error)[:100]})") from error


def fingerprint(scorecard: Scorecard) -> str:
    """Return the fingerprint: 64 hexadecimal digits."""
    return _fingerprint(_content(scorecard))


def _content(scorecard: Scorecard) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": scorecard.name,
        "calibration": scorecard.calibration,
        "link": {"evenPoints": str(scorecard.link.even), "doublingPoints": str(scorecard.link.doubling)},
        "features": [_feature_content(feature) for feature in scorecard.features],
        "facts": dict(scorecard.facts),
    }


def _feature_content(feature: Feature) -> dict[str, Any]:
    return {
        "metric": feature.metric,
        "moreIsBetter": feature.more_is_better,
        "bands": [[None if band.limit is None else str(band.limit), str(band.points)] for band in feature.bands],
        "missing": str(feature.missing),
        "step": str(feature.step),
        "stepped": feature.stepped,
        "reason": feature.reason,
    }


def _scorecard(content: Mapping[str, Any], stated: str) -> Scorecard:
    if content["calibration"] not in ("none", "synthetic", "client"):
        raise ValueError("the calibration is unknown")
    link = content["link"]
    return Scorecard(
        name=str(content["name"]),
        version=stated[:_VERSION_LETTERS],
        calibration=content["calibration"],
        features=tuple(_feature(each) for each in content["features"]),
        link=Link(Decimal(link["evenPoints"]), Decimal(link["doublingPoints"])),
        facts=dict(content["facts"]),
    )


def _feature(content: Mapping[str, Any]) -> Feature:
    bands = (Band(None if limit is None else Decimal(limit), Decimal(points)) for limit, points in content["bands"])
    return Feature(
        metric=str(content["metric"]),
        more_is_better=content["moreIsBetter"] is True,
        bands=tuple(bands),
        reason=str(content["reason"]),
        missing=Decimal(content["missing"]),
        step=Decimal(content["step"]),
        stepped=content["stepped"] is True,
    )


def _fingerprint(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _refusal(reason: str) -> Unprocessable:
    return Unprocessable("RiskModel.Unusable", f"The risk model can't be used: {reason}.")
