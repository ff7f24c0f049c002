# SPDX-License-Identifier: Apache-2.0
"""Looks at a model as the server will, before there is a server.

A model is loaded by the very code that the server runs, in a process of its own, and then given
batches, as the core would give them:

* `process` starts that process, and `worker` is what runs in it;
* `repository` finds the models and versions, `rules` says what Triton refuses of a configuration;
* `trial` loads a model and runs batches, of the data that `data` makes;
* `rows` compares answers, `wrapping` looks for numbers that do not fit their types, and `steps`
  runs a program an operation at a time, to say which line is to blame;
* `results` is what is reported, `display` how it is shown.
"""
