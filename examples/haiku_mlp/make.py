# SPDX-License-Identifier: Apache-2.0
"""Write the weights of the Haiku network, as safetensors.

    python examples/haiku_mlp/make.py                       # examples/haiku_mlp/1
    python examples/haiku_mlp/make.py --output /srv/models/haiku_mlp

The weights are random, and the same for the same seed: what matters here is the way they take.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from tritonserver_jax.repository import save_safetensors, write_config

EXAMPLE = Path(__file__).resolve().parent


def make(model_directory: Path, seed: int = 0) -> Path:
    """Write a model directory that a server can load; returns the path of the weights."""
    version_directory = model_directory / "1"
    version_directory.mkdir(parents=True, exist_ok=True)
    write_config(model_directory)
    code = EXAMPLE / "1" / "model.py"
    if version_directory.resolve() != code.parent:
        shutil.copyfile(code, version_directory / code.name)
    model = runpy.run_path(str(code))
    params = model["NETWORK"].init(jax.random.key(seed), np.zeros((1, 4), np.float32))
    return save_safetensors(version_directory, params)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Write the weights of the haiku_mlp example.")
    parser.add_argument(
        "--output",
        type=Path,
        default=EXAMPLE,
        metavar="DIR",
        help="model directory to write (default: examples/haiku_mlp itself)",
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
