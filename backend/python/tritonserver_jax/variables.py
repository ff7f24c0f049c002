# SPDX-License-Identifier: Apache-2.0
"""The environment variables that the tools read, each declared once."""

from __future__ import annotations

from typing import Final

__all__ = ["ARTIFACT", "CACHE", "RELEASES_PAGE", "VARIABLES"]

CACHE: Final = "TRITONSERVER_JAX_CACHE"
ARTIFACT: Final = "TRITONSERVER_JAX_ARTIFACT"
RELEASES_PAGE: Final = "TRITONSERVER_JAX_RELEASES_PAGE"

#: What each is for: shown in the documentation.
VARIABLES: Final = {
    ARTIFACT: "the artifact to install, where no option or argument names one",
    CACHE: "where servers, downloaded artifacts and the backends of `serve` are kept, in place of "
    "`~/.cache/tritonserver-jax`",
    RELEASES_PAGE: "the page where artifacts are published, which messages name",
}
