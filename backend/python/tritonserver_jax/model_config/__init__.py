# SPDX-License-Identifier: Apache-2.0
"""config.pbtxt without a server: read into what Triton gives a backend, and written.

* `schema`: the fields that a model configuration can have.
* `text`: the text of one, as JSON's types and back.
"""

from tritonserver_jax.model_config.text import ConfigTextError, config_text, parse_config

__all__ = ["ConfigTextError", "config_text", "parse_config"]
