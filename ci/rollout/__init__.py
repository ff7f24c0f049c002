# SPDX-License-Identifier: Apache-2.0
"""A rehearsal of what a cluster does when it replaces servers, without a cluster.

`pod` runs the image as the chart says, and ends it as a kubelet does. `proxy` is a real HAProxy, to
which servers are added and from which they are taken away as endpoints are. `load` sends requests
all the while and keeps what became of each. `rehearsal` puts these together.
"""
