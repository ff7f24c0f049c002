# SPDX-License-Identifier: Apache-2.0
"""A real tritonserver, for tests, the demo and the health session.

Get the server of a release, start it on free ports, wait for a model, stop it::

    from tritonserver_jax.releases import find_release
    from tritonserver_jax.server import TritonServer, obtain_server

    distribution = obtain_server(find_release("24.10"))
    with TritonServer(
        distribution, [Path("examples")], backend_directory=Path("build/backends")
    ) as server:
        server.wait_model("add_sub", timeout=60)
        print(server.http_url)

Everything here uses the standard library only.
"""

from tritonserver_jax.server.distribution import ServerDistribution, obtain_server
from tritonserver_jax.server.errors import ServerError
from tritonserver_jax.server.process import ModelState, TritonServer

__all__ = [
    "ModelState",
    "ServerDistribution",
    "ServerError",
    "TritonServer",
    "obtain_server",
]
