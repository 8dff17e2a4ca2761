"""A first plan gets the network and the settings of an NVFlare job."""

import sys
from pathlib import Path

import pytest

from overheard.core.errors import PlanError
from overheard.planning.apps.flower_app import read_flower_app
from overheard.planning.apps.nvflare_app import read_nvflare_app
from overheard.planning.training_facts import read_training_facts
from tests.doctor.source.test_nvflare_job import SERVER, written

NET = "raise SystemExit('was run')\nfrom torch import nn\nclass Net(nn.Module): ...\n"


def test_takes_the_network_of_the_persistor_and_the_training(tmp_path: Path) -> None:
    app = read_nvflare_app(written(tmp_path, **{"app_site/custom/net.py": NET}))
    assert app.networks == ("net:Net",)
    assert app.arguments == {"net:Net": (("width", 3),)}
    assert app.folder == tmp_path / "app_site" / "custom"
    assert app.rounds == 7
    training = read_training_facts(None, app)
    assert training.settings["rate"].value == 0.05
    assert "config_fed_client of the NVFlare job" in training.settings["rate"].source
    assert "FedAvg" in app.notes[0]
    assert "SVTPrivacy on train" in app.notes[1]
    assert "net" not in sys.modules


def test_a_network_outside_of_the_job_is_proposed_and_not_taken(tmp_path: Path) -> None:
    text = SERVER.replace('"net.Net"', '"os.abort"')
    names = {
        "app_server/config/config_fed_server.conf": text,
        "app_site/custom/net.py": "x = 1\n",
    }
    app = read_nvflare_app(written(tmp_path, **names))
    assert app.networks == ()
    assert "--model os:abort" in app.notes[-1]


def test_a_job_given_as_a_flower_app_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="name it by --nvflare"):
        read_flower_app(written(tmp_path))
