# SPDX-License-Identifier: Apache-2.0
"""The benchmark: this backend beside its limit and its alternatives, on real servers, in one run.

``python -m benchmarks`` runs it; the session ``bench`` does so. What is compared is in
`benchmarks.competitors`, how often and how long in `benchmarks.plan`.
"""
