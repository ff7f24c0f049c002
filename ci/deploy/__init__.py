# SPDX-License-Identifier: Apache-2.0
"""Publishing a version: what it consists of, what is checked before, and where each part goes.

``python -m ci.deploy`` publishes, `ci.deploy.post_deploy` tries what was published, and
`ci.deploy.rollback` moves the moving tags of images back. ``docs/releasing.md`` says how a person
uses them.
"""
