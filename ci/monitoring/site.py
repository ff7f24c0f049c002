# SPDX-License-Identifier: Apache-2.0
"""A site as an operator has it, small and quick: models, and the Prometheus that watches them.

Prometheus reads our own ``prometheus.yml`` with other addresses, every second; and our own rules,
which look back over seconds where those in ``packaging/monitoring`` look over minutes.
"""

from __future__ import annotations

import contextlib
import importlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from ci.monitoring.files import CONFIG
from ci.monitoring.programs import ProgramError, blackbox_exporter, prometheus_server
from ci.monitoring.prometheus import Prometheus
from ci.monitoring.records import Timing
from ci.monitoring.rules import rules_file
from tritonserver_jax.repository import CONFIG_NAME, write_config
from tritonserver_jax.server import TritonServer

__all__ = ["DIGITS", "QUICK", "SERVER_ARGS", "WINDOW", "adapted_config", "watched", "write_models"]

DIGITS: Final = "digits"
#: What each model with trouble is made of.
SOURCES: Final = {
    "faulty": "faulty",
    "growing": "growing",
    "sized": "sized",
    "slow": "sleeper",
    "stuck": "sleeper",
}
_MODELS: Final = Path(__file__).resolve().parent / "models"

#: Options of the server that the dashboard and the alerts want, and some that save time here.
SERVER_ARGS: Final = (
    "--metrics-config=summary_latencies=true",
    "--metrics-interval-ms=1000",
    "--model-control-mode=explicit",
    "--load-model=*",
)

_SCRAPE: Final = "1s"
#: What Grafana puts for $__rate_interval where Prometheus reads every second.
WINDOW: Final = "10s"
#: The rules' timing on the site.
QUICK: Final = Timing(window="5s", past="20s", hold="1s")

_PHASES: Final = """\
parameters {
  key: "phase_times"
  value { string_value: "true" }
}
"""


def write_models(repository: Path, names: Iterable[str] = tuple(SOURCES)) -> None:
    """Train ``digits``, which measures its phases, and write the models that have trouble.

    Args:
        repository: Where they go.
        names: Those that have trouble.

    Raises:
        ProgramError: ``digits`` was not trained.
    """
    train = importlib.import_module("examples.digits.train")
    if train.main(["--output", str(repository / DIGITS)]) != 0:
        raise ProgramError("the digits example was not trained; its output is above")
    with (repository / DIGITS / CONFIG_NAME).open("a", encoding="utf-8") as config:
        config.write(_PHASES)
    for name in names:
        version = repository / name / "1"
        version.mkdir(parents=True)
        shutil.copyfile(_MODELS / f"{SOURCES[name]}.py", version / "model.py")
        write_config(repository / name)


def adapted_config(server: str, ready: list[str], blackbox: str) -> dict[str, Any]:
    """Return our configuration of Prometheus for other addresses, and every second.

    Args:
        server: The address of a server's metrics.
        ready: The URLs to ask whether something is ready.
        blackbox: The address of the blackbox exporter.
    """
    config: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    config["global"] = dict.fromkeys(config["global"], _SCRAPE)
    servers, probes = config["scrape_configs"]
    servers["static_configs"] = [{"targets": [server]}]
    probes["static_configs"] = [{"targets": ready}]
    probes["relabel_configs"][-1]["replacement"] = blackbox
    return config


@contextlib.contextmanager
def watched(server: TritonServer, folder: Path, timing: Timing = QUICK) -> Iterator[Prometheus]:
    """A Prometheus that watches a server which is live.

    Args:
        server: The server.
        folder: For configuration, data and logs.
        timing: Of the rules.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted({state.name for state in server.model_index()})
    ready = [f"http://{server.http_url}/v2/models/{name}/ready" for name in names]
    (folder / "rules.yml").write_text(rules_file(timing), encoding="utf-8")
    with blackbox_exporter(folder) as blackbox:
        config = adapted_config(server.metrics_url, ready, blackbox)
        (folder / CONFIG.name).write_text(yaml.safe_dump(config), encoding="utf-8")
        with prometheus_server(folder / CONFIG.name, folder) as address:
            yield Prometheus(address)
