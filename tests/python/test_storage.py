# SPDX-License-Identifier: Apache-2.0
"""Storage that nobody names: the family that fits best, by name, and no value for nodes of which nothing is known."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from study_inputs import changed, write

from iocast.calibrate.recipe import family_document
from iocast.calibrate.storage import DEFAULT, LOCAL, Storage, best_family, storage_of
from iocast.errors import InputError
from iocast.platforms.fitted import Fitted
from iocast.platforms.documents import Document
from iocast.forecasts.answer import predict

UNKNOWN = "no family is known for the file system 'gpfs'"


@pytest.mark.parametrize(("scores", "won"), [((0.4, 0.5), 0), ((0.5, 0.4), 1), ((0.4, 0.4), 0)])
def test_the_family_that_fits_best_is_taken_and_named(scores: tuple[float, float], won: int) -> None:
    by_family = dict(zip(DEFAULT, scores, strict=True))

    def fit(family: str) -> Document:
        return {"fitted": {"family": family, "score": by_family[family], "notes": []}}

    fitted = best_family(Storage(DEFAULT, UNKNOWN), fit)["fitted"]
    assert fitted["family"] == fitted["by_default"]["family"] == DEFAULT[won]
    assert fitted["by_default"]["scores"] == by_family and UNKNOWN in fitted["by_default"]["because"]
    assert f"'{DEFAULT[won]}' is a default" in fitted["notes"][0] and DEFAULT[1 - won] in fitted["notes"][0]
    known = best_family(Storage(DEFAULT[:1]), fit)["fitted"]
    assert "by_default" not in known and not known["notes"]


def test_no_default_brings_storage_with_nodes() -> None:
    """Only storage that is known to be local does."""
    assert not LOCAL & {"nfs", "nfs4", "gpfs", "wekafs", "lustre", "9p", "virtiofs", "cifs", "smb3", "fuse", "unknown"}
    for family in DEFAULT:
        assert any(one.get("per") != "node" for one in family_document(family)["stations"].values())


@pytest.mark.parametrize(("nodes", "family"), [((1, 1), "service"), ((1, 2), "network"), ((2, 2), "network")])
def test_a_service_with_clients_on_several_nodes_is_no_machine_of_theirs(nodes: tuple[int, ...], family: str) -> None:
    """In the family `service` each further node would bring cores of the server's."""
    environment = {"environment": {"service": {"type": "s3"}}}
    points = [
        SimpleNamespace(
            quantities=lambda: ["rate", "stat.q50"], first=SimpleNamespace(json=environment, placement=(count, 4))
        )
        for count in nodes
    ]
    storage = storage_of(cast(Any, points))
    assert storage.families == (family,) and "'s3'" in storage.unknown
    shared = [one.get("per") != "node" for one in family_document(family)["stations"].values()]
    assert any(shared) == (family == "network")


def _fitted(directory: Path, nodes: tuple[int, ...], default: bool) -> Path:
    """A platform file with what a refusal looks at."""
    tutorial = Path(__file__).parents[2] / "examples" / "tutorial" / "fitted.yaml"
    document: dict[str, Any] = yaml.safe_load(tutorial.read_text())
    for i, point in enumerate(document["fitted"]["campaign"]["points"]):
        point["nodes"] = nodes[i % len(nodes)]
    if default:
        document["fitted"]["by_default"] = {"because": UNKNOWN, "family": "local", "scores": {"local": 0.4}}
    file = directory / "fitted.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


@pytest.mark.parametrize(
    ("nodes", "default", "requested", "refused"),
    [((1,), True, 2, True), ((1,), True, 1, False), ((1, 2), True, 40, False), ((1,), False, 40, False)],
)
def test_a_default_has_no_value_for_more_nodes_than_the_one_number_that_was_measured(
    nodes: tuple[int, ...], default: bool, requested: int, refused: bool, tmp_path: Path
) -> None:
    fitted = Fitted.open(str(_fitted(tmp_path, nodes, default)))
    if not refused:
        fitted.require_nodes(requested)
        return
    with pytest.raises(InputError, match="There is no value for 2 nodes.*A run on 2 nodes settles it"):
        predict(fitted, None, {}, requested, 1)


def test_a_study_of_a_default_asks_for_no_more_nodes(iocast: Any, tmp_path: Path) -> None:
    file = _fitted(tmp_path, (1,), True)
    axes = {"cores": {"two": {}, "four": {"edit": {"stations.cpu.servers": 4}}}}
    study = changed(platform=str(file), axes=axes, levels=["rate(create) >= 3k/s"], uncertainty=None)
    done = iocast("study", write(tmp_path, study), "--out", tmp_path / "answer", "--workers", "1")
    assert done.returncode == 2 and "There is no value for 16 nodes" in done.stderr
