# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas (2020-12) of documents that iocast writes: `python -m iocast.records.schemas DIRECTORY`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any, Union

import msgspec

from iocast.ground.files import write_json
from iocast.records.campaign import CampaignDocument
from iocast.records.codes import KINDS
from iocast.records.comparison import ComparisonDocument
from iocast.records.fitted import FittedSection
from iocast.records.forecast import ForecastDocument
from iocast.records.knee import KneeDocument
from iocast.records.run import Run
from iocast.records.study import StudyDocument
from iocast.records.utilisation import UtilisationDocument
from iocast.records.validation import SelftestDocument, ValidationDocument

DOCUMENTS: dict[str, Any] = {
    "campaign": CampaignDocument,
    "comparison": ComparisonDocument,
    "fitted": FittedSection,
    "forecast": ForecastDocument,
    "knee": KneeDocument,
    "run": Run,
    "selftest": SelftestDocument,
    "study": StudyDocument,
    "utilisation": UtilisationDocument,
    "validation": ValidationDocument,
}
"""By name: each is NAME.schema.json."""
DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
CAUTION = "caution.schema.json"


def schemas() -> dict[str, dict[str, Any]]:
    """By file name; `cautions` of all documents are those of one file."""
    found = {f"{name}.schema.json": DIALECT | _schema(kind) for name, kind in DOCUMENTS.items()}
    (codes,), parts = msgspec.json.schema_components([Union[tuple(KINDS.values())]])
    for kind in KINDS.values():
        code = parts[kind.__name__]
        code["properties"]["text"] = {"type": "string"}
        code["required"].append("text")
    found |= {CAUTION: DIALECT | {"anyOf": codes["anyOf"], "$defs": parts}}
    return {name: made_plain(schema) for name, schema in found.items()}


def _schema(kind: Any) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.schema(kind, schema_hook=lambda _: {"description": "any value"})
    for part in made["$defs"].values():
        if "cautions" in part.get("properties", {}):
            part["properties"]["cautions"]["items"] = {"$ref": CAUTION}
    return made


def made_plain(part: Any) -> Any:
    """With docstrings as inspect.cleandoc() has them: msgspec indents their lines up to 0.22 and not from 0.23 on."""
    if isinstance(part, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else made_plain(value)
            for key, value in part.items()
        }
    return [made_plain(one) for one in part] if isinstance(part, list) else part


if __name__ == "__main__":
    for name, schema in schemas().items():
        write_json(Path(sys.argv[1]) / name, schema)
