# SPDX-License-Identifier: Apache-2.0
"""What the nox sessions and the CI jobs call.

Each module does one job, can be run as ``python -m ci.<module>``, and has its tests in
``tests/unit/test_ci_<module>.py``. The noxfile only composes these modules.
"""
