# SPDX-License-Identifier: Apache-2.0
"""Runs what the guides show.

Every block of code in ``README.md`` and ``docs/`` is run in the order of its page, or says beside
it why it cannot be (`blocks.REASONS`). ``python -m ci.guides`` lists how many of each there are;
``tests/docs`` runs them.
"""
