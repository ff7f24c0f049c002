# SPDX-License-Identifier: Apache-2.0
"""Train the digits model and write its weights where the server finds them.

    python examples/digits/train.py                             # examples/digits/1/params.msgpack
    python examples/digits/train.py --output /srv/models/digits # a whole model directory

The same seed gives the same weights on the same machine. Needs jax, flax, optax and scikit-learn.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax  # type: ignore[import-untyped]

if not __package__:  # run as a file rather than by `python -m examples.digits.train`
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.digits import data, reference
from tritonserver_jax.repository import save_params, write_config

VERSION_DIRECTORY = Path(__file__).resolve().parent / "1"
REQUIRED_ACCURACY = 0.97
BATCH = 64
EPOCHS = 25
LEARNING_RATE = 3e-3

Params = dict[str, Any]


class Trained(NamedTuple):
    """What training gives."""

    params: Params
    """Nested dict of arrays, as `params.msgpack` holds it."""
    accuracy: float
    """The share of held-out images classified correctly."""


def train(
    *, seed: int = 0, epochs: int = EPOCHS, report: Callable[[str], None] | None = print
) -> Trained:
    """Train from scratch; `report` gets one line of text per epoch."""
    model = reference.load_module(VERSION_DIRECTORY)
    learn, held = data.training(), data.held_out()
    steps_per_epoch = len(learn.images) // BATCH
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, epochs * steps_per_epoch))

    def loss_of(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
        # `predict` itself, so that what is trained is what is served. Smoothed labels keep the
        # network from being sure beyond reason.
        logits = model.predict(params, IMAGE=images)["LOGITS"]
        targets = optax.smooth_labels(jax.nn.one_hot(labels, 10), 0.1)
        return jnp.mean(optax.softmax_cross_entropy(logits, targets))

    @jax.jit
    def step(
        params: Params, state: optax.OptState, images: jax.Array, labels: jax.Array
    ) -> tuple[Params, optax.OptState, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(params, images, labels)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    @jax.jit
    def accuracy_of(params: Params) -> jax.Array:
        logits = model.predict(params, IMAGE=held.images)["LOGITS"]
        return jnp.mean(jnp.argmax(logits, axis=-1) == held.labels)

    params: Params = model.DigitsNetwork().init(jax.random.key(seed), learn.images[:1])["params"]
    state = optimizer.init(params)
    shuffle = np.random.default_rng(seed)
    accuracy = float(accuracy_of(params))
    for epoch in range(1, epochs + 1):
        started = time.perf_counter()
        order = shuffle.permutation(len(learn.images))
        losses = []
        for rows in np.split(order[: steps_per_epoch * BATCH], steps_per_epoch):
            params, state, loss = step(params, state, learn.images[rows], learn.labels[rows])
            losses.append(loss)
        accuracy = float(accuracy_of(params))
        if report is not None:
            report(
                f"epoch {epoch:2d}/{epochs}  loss {float(np.mean(losses)):.4f}  "
                f"held-out accuracy {accuracy:.4f}  {time.perf_counter() - started:.2f} s"
            )
    return Trained(jax.tree.map(np.asarray, params), accuracy)


def write_model(model_directory: Path, params: Params) -> Path:
    """Write a model directory that a server can load as it is; returns the path of the weights.

    `model_directory`'s last part is the name under which the model is served.
    """
    version_directory = model_directory / VERSION_DIRECTORY.name
    version_directory.mkdir(parents=True, exist_ok=True)
    write_config(model_directory)
    if version_directory.resolve() != VERSION_DIRECTORY:
        shutil.copyfile(VERSION_DIRECTORY / "model.py", version_directory / "model.py")
    return save_params(version_directory, params)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Train the digits model.")
    parser.add_argument(
        "--output",
        type=Path,
        default=VERSION_DIRECTORY.parent,
        metavar="DIR",
        help="model directory to write: config.pbtxt, 1/model.py, 1/params.msgpack "
        "(default: examples/digits itself)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and order (default: 0)")
    parser.add_argument("--epochs", type=_positive, default=EPOCHS, help=f"default: {EPOCHS}")
    options = parser.parse_args(arguments)

    trained = train(seed=options.seed, epochs=options.epochs)
    print(f"held-out accuracy {trained.accuracy:.4f} (required: {REQUIRED_ACCURACY})")
    if trained.accuracy < REQUIRED_ACCURACY:
        print(
            f"train.py: held-out accuracy {trained.accuracy:.4f} is below {REQUIRED_ACCURACY}; "
            "nothing was written; train longer with --epochs, or with another --seed",
            file=sys.stderr,
        )
        return 1
    try:
        path = write_model(options.output, trained.params)
    except OSError as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    print(f"wrote {path} ({path.stat().st_size:,} bytes)")
    return 0


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


if __name__ == "__main__":
    sys.exit(main())
