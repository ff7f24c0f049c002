# SPDX-License-Identifier: Apache-2.0
"""The images: scikit-learn's handwritten digits, split once and for all.

1,797 images of 8 x 8 pixels between 0 and 16 with their labels. They come with scikit-learn:
nothing is downloaded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

HELD_OUT_SHARE = 0.2
SPLIT_SEED = 2024  # of the split alone: training with another seed keeps the same held-out set


class Digits(NamedTuple):
    """Images as the model takes them, and what they show."""

    images: NDArray[np.float32]
    """[count, 8, 8, 1], 0 to 16."""
    labels: NDArray[np.int64]
    """[count], 0 to 9."""


def training() -> Digits:
    """Return the images to learn from: four of five."""
    return _split()[0]


def held_out() -> Digits:
    """Return the images that training never sees: one of five, always the same ones."""
    return _split()[1]


def _split() -> tuple[Digits, Digits]:
    pixels, labels = load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8, 1).astype(np.float32)
    order = np.random.default_rng(SPLIT_SEED).permutation(len(images))
    held_out_count = round(HELD_OUT_SHARE * len(images))
    held, learn = order[:held_out_count], order[held_out_count:]
    labels = labels.astype(np.int64)
    return Digits(images[learn], labels[learn]), Digits(images[held], labels[held])
