# SPDX-License-Identifier: Apache-2.0
"""What the demo says; the rest of it is shown by running it."""

from __future__ import annotations

import re

from ci.demo import NEXT, shown_metrics
from ci.process import ROOT

PAGE = """\
# HELP jax_batch_rows Rows
# TYPE jax_batch_rows histogram
jax_batch_rows_count{model="m",version="1"} 3
jax_batch_rows_sum{model="m",version="1"} 9
jax_batch_rows_bucket{model="m",version="1",le="1"} 1
jax_batch_rows_bucket{model="m",version="1",le="+Inf"} 3
jax_predict_calls{model="a_bucket",version="1"} 3
nv_inference_count{model="m",version="1"} 9
nv_cpu_utilization 0.5
"""


def test_metrics_are_shown_without_buckets() -> None:
    assert [line.partition("{")[0] for line in shown_metrics(PAGE)] == [
        "jax_batch_rows_count",
        "jax_batch_rows_sum",
        "jax_predict_calls",
        "nv_inference_count",
    ]


def test_what_comes_next_is_there() -> None:
    pages = re.findall(r"docs/\w+\.md", NEXT)
    assert pages
    assert all((ROOT / page).is_file() for page in pages)
