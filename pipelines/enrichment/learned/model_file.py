"""Read and write a model as one file: arrays in numpy's format (`.npz`), without pickle, so a file can't run code.

Weights are stored sparse and in half precision, because most are 0 or close to it. The fingerprint is the SHA-256 of
the content. It names the model and detects a damaged file.
"""

import hashlib
import json
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.enrichment.learned import features
from pipelines.enrichment.learned.calibration import EVIDENCE, Calibration
from pipelines.enrichment.learned.features import BLOCKS, BUCKET_BITS
from pipelines.enrichment.learned.model import Linear, Model
from pipelines.enrichment.learned.vectors import SCALES, Vocabulary
from pipelines.vocabulary.errors import Unprocessable

FORMAT = "tidemark-categories-1"
MAX_BYTES = 1 << 30  # unpacked
NAME_LETTERS = 12
SETTINGS = {
    "features": features.VERSION,
    "bucketBits": BUCKET_BITS,
    "pieces": list(features.PIECES),
    "mostLetters": features.MAX_LETTERS,
    "scales": SCALES,
    "evidence": list(EVIDENCE),
}

Arrays = Mapping[str, NDArray[Any]]

# All errors of zipfile and numpy for content that they can't read. NotImplementedError: an unknown compression;
# SyntaxError and TokenError: numpy reads an array's header as Python.
_UNREADABLE = (
    *(OSError, ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),
)


def dumps(model: Model) -> bytes:
    """Return the content of a model's file. The same model gives the same bytes."""
    arrays = _pack_arrays(model)
    described = _describe(model)
    head = {**described, "fingerprint": _hash_content(described, arrays)}
    buffer = BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, head=np.frombuffer(_encode_json(head), np.uint8), **arrays)
    return buffer.getvalue()


def loads(content: bytes) -> Model:
    """Return the model in a file's content.

    Raises:
        Unprocessable: the content is damaged, is not a model, or belongs to another version.
    """
    arrays = _unpack(content)
    head = _read_head(arrays.pop("head", None))
    if head.get("settings") != json.loads(_encode_json(SETTINGS)):
        raise _refusal("it was trained by another version of Tidemark, which uses other features; train it again")
    described = {name: value for name, value in head.items() if name != "fingerprint"}
    if head.get("fingerprint") != _hash_content(described, arrays):
        raise _refusal("it is damaged: its content is not what was written")
    try:
        return _build_model(head, arrays)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _refusal(f"its parts don't fit together ({error})") from error


def fingerprint(model: Model) -> str:
    """Return the fingerprint of a model's content: 64 hexadecimal digits."""
    return _hash_content(_describe(model), _pack_arrays(model))


@cache
def load_base() -> Model:
    """Load the model that ships with Tidemark. Its labels are the taxonomy's categories."""
    return loads(files("pipelines.enrichment.learned").joinpath("base.npz").read_bytes())


def _describe(model: Model) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "settings": SETTINGS,
        "labels": list(model.labels),
        "contexts": list(model.contexts),
        "calibration": {"sharpness": model.calibration.sharpness, "bias": model.calibration.bias},
        "facts": dict(model.facts),
    }


def _pack_arrays(model: Model) -> dict[str, NDArray[Any]]:
    linear = model.linear
    vocabulary = {
        name: values
        for block, buckets, rarity in zip(BLOCKS, linear.vocabulary.buckets, linear.vocabulary.rarity, strict=True)
        for name, values in (
            (f"buckets_{block}", np.diff(buckets, prepend=0)),
            (f"rarity_{block}", _to_half_precision(rarity)),
        )
    }
    return {
        **vocabulary,
        "per_feature": np.diff(linear.weights.indptr).astype(np.uint16),
        "weight_labels": linear.weights.indices.astype(np.uint16),
        "weights": _to_half_precision(linear.weights.data),
        "bias": linear.bias,
        "evidence_weights": model.calibration.weights,
    }


def _build_model(head: Mapping[str, Any], arrays: Arrays) -> Model:
    from scipy import sparse  # noqa: PLC0415  # 15 MB and a tenth of a second, only for processes that predict

    labels: Sequence[str] = head["labels"]
    buckets = [np.cumsum(arrays[f"buckets_{block}"], dtype=np.int32) for block in BLOCKS]
    rarity = [arrays[f"rarity_{block}"].astype(np.float32) for block in BLOCKS]
    begins = np.concatenate([[0], np.cumsum(arrays["per_feature"], dtype=np.int32)])
    stored = arrays["weights"].astype(np.float32), arrays["weight_labels"].astype(np.int32), begins
    weights = sparse.csr_array(stored, shape=(len(begins) - 1, len(labels)))
    calibration = Calibration(weights=arrays["evidence_weights"], **head["calibration"])
    linear = Linear(Vocabulary(buckets, rarity), weights, arrays["bias"])
    name = str(head["fingerprint"])[:NAME_LETTERS]
    return Model(labels, head["contexts"], linear, calibration, head["facts"], name)


def _unpack(content: bytes) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(BytesIO(content)) as packed:
            if sum(each.file_size for each in packed.infolist()) > MAX_BYTES:
                raise _refusal("it is too large to be a model")
        with np.load(BytesIO(content), allow_pickle=False) as loaded:
            return {name: loaded[name] for name in loaded.files}
    except _UNREADABLE as error:
        raise _refusal("it is damaged, or not a model") from error


def _read_head(packed: NDArray[Any] | None) -> dict[str, Any]:
    try:
        head = json.loads(packed.tobytes()) if packed is not None else None
    except ValueError:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise _refusal("it is not a model of Tidemark")
    return head


def _hash_content(described: Mapping[str, Any], arrays: Arrays) -> str:
    digest = hashlib.sha256(_encode_json(described))
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes())
    return digest.hexdigest()


def _encode_json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


def _to_half_precision(values: NDArray[Any]) -> NDArray[np.float16]:
    return values.astype(np.float16)


def _refusal(reason: str) -> Unprocessable:
    return Unprocessable("Model.Unreadable", f"The model can't be used: {reason}.")
