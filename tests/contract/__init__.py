# SPDX-License-Identifier: Apache-2.0
"""What the native libraries promise to servers that they were not built with."""
