# SPDX-License-Identifier: Apache-2.0
"""Write a model that the server runs without any code of its author: model.jaxexport.

    python examples/exported/make.py                       # examples/exported/1
    python examples/exported/make.py --output /srv/models/exported

The weights are random, and the same for the same seed: what matters here is the way they take.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from tritonserver_jax.repository import save_exported, save_safetensors, write_config

EXAMPLE = Path(__file__).resolve().parent


def predict(params: dict[str, Any], X: jax.Array) -> dict[str, jax.Array]:
    """Run a network with a hidden layer on a batch of shape [batch, 4].

    This is what a model.py would hold. Here it is traced now, and the server gets the program; so
    it may use packages that the server does not have.
    """
    hidden = jnp.tanh(X @ params["hidden"]["kernel"] + params["hidden"]["bias"])
    return {"Y": hidden @ params["output"]["kernel"] + params["output"]["bias"]}


def new_params(seed: int) -> dict[str, Any]:
    """Return random weights."""
    first, second = jax.random.split(jax.random.key(seed))
    return {
        "hidden": {"kernel": jax.random.normal(first, (4, 32)), "bias": jnp.zeros(32)},
        "output": {"kernel": jax.random.normal(second, (32, 3)), "bias": jnp.ones(3)},
    }


def make(model_directory: Path, seed: int = 0) -> Path:
    """Write a model directory that a server can load; returns the path of the artifact."""
    version_directory = model_directory / "1"
    version_directory.mkdir(parents=True, exist_ok=True)
    write_config(model_directory)
    params = new_params(seed)
    # The weights stay outside of the artifact, so they can be replaced without another export.
    save_safetensors(version_directory, params)
    return save_exported(
        version_directory,
        predict,
        {"X": ("FP32", [4])},
        params=params,
        platforms=("cpu", "cuda"),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the weights of the exported example.")
    parser.add_argument(
        "--output",
        type=Path,
        default=EXAMPLE,
        metavar="DIR",
        help="model directory to write (default: examples/exported itself)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the weights (default: 0)")
    options = parser.parse_args(arguments)
    try:
        path = make(options.output, options.seed)
    except OSError as error:
        print(f"make.py: {error}", file=sys.stderr)
        return 1
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
