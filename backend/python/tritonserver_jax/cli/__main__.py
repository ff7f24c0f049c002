# SPDX-License-Identifier: Apache-2.0
"""``python -m tritonserver_jax.cli``: the command line, where its script is not on PATH."""

from tritonserver_jax.cli import main

if __name__ == "__main__":
    main()
