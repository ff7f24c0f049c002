# SPDX-License-Identifier: Apache-2.0
"""Makes models: of a Python object, a checkpoint, an exported program, or nothing but a template.

* `inputs` reads how inputs are written on the command line;
* `objects` finds a Python object, and says what kind of model it is;
* `code` is the text of a model.py;
* `new_model` writes the model, `exporting` turns one into an artifact of ``jax.export``.
"""
