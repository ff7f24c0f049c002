# SPDX-License-Identifier: Apache-2.0
"""What the nox sessions and the CI jobs call.

Each module does one job, can be run as ``python -m ci.<module>`` from the root of a checkout, and
has its tests in ``tests/unit/test_ci_<module>.py``. The noxfile only composes these modules.
"""

import sys
from pathlib import Path

# A checkout is enough: `tritonserver_jax` is read from the source, not from an installed wheel.
_SOURCE = str(Path(__file__).resolve().parent.parent / "backend" / "python")
if _SOURCE not in sys.path:
    sys.path.insert(0, _SOURCE)
