# SPDX-License-Identifier: Apache-2.0
"""What all pictures have in common. matplotlib draws them, where it is installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

__all__ = ["load_pyplot", "save", "style"]


def load_pyplot() -> Any | None:
    """Return matplotlib's ``pyplot``, which draws without a screen; None if it is not installed."""
    try:
        mpl: Any = importlib.import_module("matplotlib")
    except ImportError:
        return None
    mpl.use("Agg")
    return importlib.import_module("matplotlib.pyplot")


def style(axes: Any, *, grid: str = "both") -> None:
    """Give axes a faint grid below what is drawn, and no frame above and on the right.

    Args:
        axes: matplotlib's.
        grid: Along which axis: ``x``, ``y`` or ``both``.
    """
    axes.grid(axis=grid, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(plt: Any, figure: Any, path: Path) -> None:
    """Write a figure, and close it.

    Args:
        plt: What `load_pyplot` returned.
        figure: The picture.
        path: The file to write; its ending says as what.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    plt.close(figure)
