# SPDX-License-Identifier: Apache-2.0
"""What an operator watches servers with: rules and alerts of Prometheus, a dashboard of Grafana.

``packaging/monitoring`` has the files that are used. Those that name metrics are made here, so that
a metric which is renamed cannot be forgotten in one of them:

=============== ==========================================================================
`metrics`       which metrics there are: ours, as the core declares them, and Triton's
`thresholds`    from where on something is wrong
`records`       what Prometheus records
`alerts`        when it raises which alert
`rules`         both of them as Prometheus reads them
`panels`        what the dashboard shows
`dashboard`     that as Grafana reads it
`files`         writes these files, and says where they are out of date
=============== ==========================================================================

The others try all of it on a real server: `programs` and `prometheus` start what Debian has of
Prometheus, `site` serves models that have every kind of trouble, `rehearsal` watches the alerts
come, and `picture` draws the dashboard. ``python -m ci.monitoring.session`` does so.
"""
