# SPDX-License-Identifier: Apache-2.0
# The images of every release, for docker buildx bake. Made from releases.toml by
# `python -m ci.image_plan`; do not edit.
#
#   docker buildx bake --file packaging/docker/docker-bake.hcl artifacts-24-10   # to dist/24.10
#   docker buildx bake --file packaging/docker/docker-bake.hcl cpu-24-10
#
# `python -m ci.images build 24.10` builds the same.

variable "REGISTRY" {
  default = ""
}

variable "SOURCE_COMMIT" {
  default = ""
}

variable "SOURCE_DATE_EPOCH" {
  default = "1704067200"
}

variable "CREATED" {
  default = "2024-01-01T00:00:00Z"
}

target "_all" {
  context    = "."
  dockerfile = "packaging/docker/Dockerfile"
  platforms  = ["linux/amd64"]
  args = {
    CREATED           = CREATED
    SOURCE_COMMIT     = SOURCE_COMMIT
    SOURCE_DATE_EPOCH = SOURCE_DATE_EPOCH
  }
}

group "default" {
  targets = [
    "cpu-24-10",
  ]
}

group "cpu" {
  targets = [
    "cpu-23-04",
    "cpu-23-05",
    "cpu-23-06",
    "cpu-23-07",
    "cpu-23-08",
    "cpu-23-09",
    "cpu-23-10",
    "cpu-23-11",
    "cpu-23-12",
    "cpu-24-01",
    "cpu-24-02",
    "cpu-24-03",
    "cpu-24-04",
    "cpu-24-05",
    "cpu-24-06",
    "cpu-24-07",
    "cpu-24-08",
    "cpu-24-09",
    "cpu-24-10",
    "cpu-24-11",
    "cpu-24-12",
    "cpu-25-01",
    "cpu-25-02",
    "cpu-25-03",
    "cpu-25-04",
    "cpu-25-05",
    "cpu-25-06",
    "cpu-25-07",
    "cpu-25-08",
    "cpu-25-09",
    "cpu-25-10",
    "cpu-25-11",
    "cpu-25-12",
    "cpu-26-01",
    "cpu-26-02",
    "cpu-26-03",
    "cpu-26-04",
    "cpu-26-05",
    "cpu-26-06",
    "cpu-26-07",
    "cpu-26-08",
  ]
}

group "cuda12" {
  targets = [
    "cuda12-24-04",
    "cuda12-24-05",
    "cuda12-24-06",
    "cuda12-24-07",
    "cuda12-24-08",
    "cuda12-24-09",
    "cuda12-24-10",
    "cuda12-24-11",
    "cuda12-24-12",
    "cuda12-25-01",
    "cuda12-25-02",
    "cuda12-25-03",
    "cuda12-25-04",
    "cuda12-25-05",
    "cuda12-25-06",
    "cuda12-25-07",
  ]
}

group "cuda13" {
  targets = [
    "cuda13-25-08",
    "cuda13-25-09",
    "cuda13-25-10",
    "cuda13-25-11",
    "cuda13-25-12",
    "cuda13-26-01",
    "cuda13-26-02",
    "cuda13-26-03",
    "cuda13-26-04",
    "cuda13-26-05",
    "cuda13-26-06",
    "cuda13-26-07",
  ]
}

target "cpu-23-04" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.33.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.04", "${REGISTRY}tritonserver-jax:23.04"]
}

target "build-23-04" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.33.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.04-build"]
}

target "artifacts-23-04" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.33.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.04"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-05" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.34.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.05", "${REGISTRY}tritonserver-jax:23.05"]
}

target "build-23-05" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.34.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.05-build"]
}

target "artifacts-23-05" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.34.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.05"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-06" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.35.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.06", "${REGISTRY}tritonserver-jax:23.06"]
}

target "build-23-06" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.35.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.06-build"]
}

target "artifacts-23-06" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.35.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.06"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-07" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.36.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.07", "${REGISTRY}tritonserver-jax:23.07"]
}

target "build-23-07" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.36.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.07-build"]
}

target "artifacts-23-07" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.36.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.07"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-08" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.37.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.08", "${REGISTRY}tritonserver-jax:23.08"]
}

target "build-23-08" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.37.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.08-build"]
}

target "artifacts-23-08" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.37.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.08"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-09" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.38.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.09"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.09", "${REGISTRY}tritonserver-jax:23.09"]
}

target "build-23-09" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.38.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.09"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.09-build"]
}

target "artifacts-23-09" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.38.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.09"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-10" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.39.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.10"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.10", "${REGISTRY}tritonserver-jax:23.10"]
}

target "build-23-10" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.39.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.10"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.10-build"]
}

target "artifacts-23-10" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.39.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.10"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-11" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.40.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.11"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.11", "${REGISTRY}tritonserver-jax:23.11"]
}

target "build-23-11" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.40.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.11"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.11-build"]
}

target "artifacts-23-11" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.40.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.11"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-23-12" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.41.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.12"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.12", "${REGISTRY}tritonserver-jax:23.12"]
}

target "build-23-12" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.41.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.12"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton23.12-build"]
}

target "artifacts-23-12" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:23.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:23.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.41.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton23.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "23.12"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-24-01" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.42.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.01"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.01", "${REGISTRY}tritonserver-jax:24.01"]
}

target "build-24-01" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.42.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.01"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.01-build"]
}

target "artifacts-24-01" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.42.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.01"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-24-02" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.43.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.02"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.02", "${REGISTRY}tritonserver-jax:24.02"]
}

target "build-24-02" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.43.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.02"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.02-build"]
}

target "artifacts-24-02" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.43.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.02"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-24-03" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.44.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.03"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.03", "${REGISTRY}tritonserver-jax:24.03"]
}

target "build-24-03" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.44.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.03"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.03-build"]
}

target "artifacts-24-03" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.44.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.03"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cpu-24-04" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.45.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.04", "${REGISTRY}tritonserver-jax:24.04"]
}

target "build-24-04" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.45.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.04-build"]
}

target "artifacts-24-04" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.45.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.04"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-04" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.45.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.04"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.04-cuda12", "${REGISTRY}tritonserver-jax:24.04-cuda12"]
}

target "cpu-24-05" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.46.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.05", "${REGISTRY}tritonserver-jax:24.05"]
}

target "build-24-05" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.46.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.05-build"]
}

target "artifacts-24-05" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.46.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.05"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-05" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.46.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.05"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.05-cuda12", "${REGISTRY}tritonserver-jax:24.05-cuda12"]
}

target "cpu-24-06" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.47.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.06", "${REGISTRY}tritonserver-jax:24.06"]
}

target "build-24-06" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.47.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.06-build"]
}

target "artifacts-24-06" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.47.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.06"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-06" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.47.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.06"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.06-cuda12", "${REGISTRY}tritonserver-jax:24.06-cuda12"]
}

target "cpu-24-07" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.48.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.07", "${REGISTRY}tritonserver-jax:24.07"]
}

target "build-24-07" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.48.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.07-build"]
}

target "artifacts-24-07" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.48.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.07"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-07" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.48.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.07"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.07-cuda12", "${REGISTRY}tritonserver-jax:24.07-cuda12"]
}

target "cpu-24-08" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.49.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.08", "${REGISTRY}tritonserver-jax:24.08"]
}

target "build-24-08" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.49.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.08-build"]
}

target "artifacts-24-08" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.49.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.08"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-08" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.49.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.08"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.08-cuda12", "${REGISTRY}tritonserver-jax:24.08-cuda12"]
}

target "cpu-24-09" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.50.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.09"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.09", "${REGISTRY}tritonserver-jax:24.09"]
}

target "build-24-09" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.50.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.09"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.09-build"]
}

target "artifacts-24-09" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.50.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.09"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-09" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.50.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.09"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.09-cuda12", "${REGISTRY}tritonserver-jax:24.09-cuda12"]
}

target "cpu-24-10" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.51.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.10"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.10", "${REGISTRY}tritonserver-jax:24.10"]
}

target "build-24-10" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.51.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.10"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.10-build"]
}

target "artifacts-24-10" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.51.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.10"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-10" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/opt/tritonserver/backends/jax/python/cpython-3.12.14-linux-x86_64-gnu/bin/python3.12"
    PYTHON_SOURCE   = "standalone"
    PYTHON_VERSION  = "3.12.14"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.51.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.10"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.10-cuda12", "${REGISTRY}tritonserver-jax:24.10-cuda12"]
}

target "cpu-24-11" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.52.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.11"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.11", "${REGISTRY}tritonserver-jax:24.11"]
}

target "build-24-11" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.52.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.11"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.11-build"]
}

target "artifacts-24-11" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.52.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.11"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-11" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.52.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.11"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.11-cuda12", "${REGISTRY}tritonserver-jax:24.11-cuda12"]
}

target "cpu-24-12" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.53.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.12"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.12", "${REGISTRY}tritonserver-jax:24.12"]
}

target "build-24-12" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.53.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.12"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.12-build"]
}

target "artifacts-24-12" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.53.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.12"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-24-12" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:24.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:24.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.53.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton24.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "24.12"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton24.12-cuda12", "${REGISTRY}tritonserver-jax:24.12-cuda12"]
}

target "cpu-25-01" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.54.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.01"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.01", "${REGISTRY}tritonserver-jax:25.01"]
}

target "build-25-01" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.54.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.01"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.01-build"]
}

target "artifacts-25-01" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.54.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.01"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-25-01" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.54.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.01"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.01-cuda12", "${REGISTRY}tritonserver-jax:25.01-cuda12"]
}

target "cpu-25-02" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.55.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.02"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.02", "${REGISTRY}tritonserver-jax:25.02"]
}

target "build-25-02" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.55.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.02"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.02-build"]
}

target "artifacts-25-02" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.55.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.02"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-25-02" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.55.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.02"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.02-cuda12", "${REGISTRY}tritonserver-jax:25.02-cuda12"]
}

target "cpu-25-03" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.56.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.03"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.03", "${REGISTRY}tritonserver-jax:25.03"]
}

target "build-25-03" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.56.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.03"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.03-build"]
}

target "artifacts-25-03" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.56.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.03"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-25-03" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.56.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.03"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.03-cuda12", "${REGISTRY}tritonserver-jax:25.03-cuda12"]
}

target "cpu-25-04" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.57.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.04", "${REGISTRY}tritonserver-jax:25.04"]
}

target "build-25-04" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.57.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.04-build"]
}

target "artifacts-25-04" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.57.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.04"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-25-04" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.57.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.04"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.04-cuda12", "${REGISTRY}tritonserver-jax:25.04-cuda12"]
}

target "cpu-25-05" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.58.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.05", "${REGISTRY}tritonserver-jax:25.05"]
}

target "build-25-05" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.58.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.05-build"]
}

target "artifacts-25-05" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.58.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.05"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-25-05" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.58.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.05"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.05-cuda12", "${REGISTRY}tritonserver-jax:25.05-cuda12"]
}

target "cpu-25-06" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.59.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.06", "${REGISTRY}tritonserver-jax:25.06"]
}

target "build-25-06" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.59.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.06-build"]
}

target "artifacts-25-06" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.59.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.06"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-25-06" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.59.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.06"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.06-cuda12", "${REGISTRY}tritonserver-jax:25.06-cuda12"]
}

target "cpu-25-07" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.59.1"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.07", "${REGISTRY}tritonserver-jax:25.07"]
}

target "build-25-07" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.59.1"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.07-build"]
}

target "artifacts-25-07" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.59.1"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.07"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda12-25-07" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda12-py312.txt"
    SERVER_VERSION  = "2.59.1"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.07"
    VARIANT         = "cuda12"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.07-cuda12", "${REGISTRY}tritonserver-jax:25.07-cuda12"]
}

target "cpu-25-08" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.60.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.08", "${REGISTRY}tritonserver-jax:25.08"]
}

target "build-25-08" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.60.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.08-build"]
}

target "artifacts-25-08" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.60.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.08"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-25-08" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.60.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.08"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.08-cuda13", "${REGISTRY}tritonserver-jax:25.08-cuda13"]
}

target "cpu-25-09" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.61.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.09"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.09", "${REGISTRY}tritonserver-jax:25.09"]
}

target "build-25-09" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.61.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.09"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.09-build"]
}

target "artifacts-25-09" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.61.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.09"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-25-09" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.09-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.09-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.61.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.09-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.09"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.09-cuda13", "${REGISTRY}tritonserver-jax:25.09-cuda13"]
}

target "cpu-25-10" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.62.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.10"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.10", "${REGISTRY}tritonserver-jax:25.10"]
}

target "build-25-10" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.62.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.10"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.10-build"]
}

target "artifacts-25-10" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.62.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.10"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-25-10" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.10-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.10-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.62.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.10-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.10"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.10-cuda13", "${REGISTRY}tritonserver-jax:25.10-cuda13"]
}

target "cpu-25-11" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.63.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.11"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.11", "${REGISTRY}tritonserver-jax:25.11"]
}

target "build-25-11" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.63.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.11"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.11-build"]
}

target "artifacts-25-11" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.63.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.11"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-25-11" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.11-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.11-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.63.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.11-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.11"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.11-cuda13", "${REGISTRY}tritonserver-jax:25.11-cuda13"]
}

target "cpu-25-12" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.64.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.12"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.12", "${REGISTRY}tritonserver-jax:25.12"]
}

target "build-25-12" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.64.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.12"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.12-build"]
}

target "artifacts-25-12" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.64.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.12"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-25-12" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:25.12-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:25.12-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.64.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton25.12-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "25.12"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton25.12-cuda13", "${REGISTRY}tritonserver-jax:25.12-cuda13"]
}

target "cpu-26-01" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.65.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.01"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.01", "${REGISTRY}tritonserver-jax:26.01"]
}

target "build-26-01" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.65.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.01"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.01-build"]
}

target "artifacts-26-01" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.65.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.01"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-26-01" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.01-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.01-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.65.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.01-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.01"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.01-cuda13", "${REGISTRY}tritonserver-jax:26.01-cuda13"]
}

target "cpu-26-02" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.66.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.02"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.02", "${REGISTRY}tritonserver-jax:26.02"]
}

target "build-26-02" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.66.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.02"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.02-build"]
}

target "artifacts-26-02" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.66.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.02"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-26-02" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.02-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.02-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.66.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.02-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.02"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.02-cuda13", "${REGISTRY}tritonserver-jax:26.02-cuda13"]
}

target "cpu-26-03" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.67.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.03"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.03", "${REGISTRY}tritonserver-jax:26.03"]
}

target "build-26-03" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.67.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.03"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.03-build"]
}

target "artifacts-26-03" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.67.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.03"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-26-03" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.03-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.03-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.67.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.03-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.03"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.03-cuda13", "${REGISTRY}tritonserver-jax:26.03-cuda13"]
}

target "cpu-26-04" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.68.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.04", "${REGISTRY}tritonserver-jax:26.04"]
}

target "build-26-04" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.68.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.04"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.04-build"]
}

target "artifacts-26-04" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.68.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.04"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-26-04" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.04-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.04-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.68.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.04-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.04"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.04-cuda13", "${REGISTRY}tritonserver-jax:26.04-cuda13"]
}

target "cpu-26-05" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.69.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.05", "${REGISTRY}tritonserver-jax:26.05"]
}

target "build-26-05" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.69.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.05"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.05-build"]
}

target "artifacts-26-05" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.69.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.05"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-26-05" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.05-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.05-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.69.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.05-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.05"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.05-cuda13", "${REGISTRY}tritonserver-jax:26.05-cuda13"]
}

target "cpu-26-06" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.70.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.06", "${REGISTRY}tritonserver-jax:26.06"]
}

target "build-26-06" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.70.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.06"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.06-build"]
}

target "artifacts-26-06" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.70.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.06"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-26-06" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.06-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.06-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.70.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.06-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.06"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.06-cuda13", "${REGISTRY}tritonserver-jax:26.06-cuda13"]
}

target "cpu-26-07" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.71.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.07", "${REGISTRY}tritonserver-jax:26.07"]
}

target "build-26-07" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.71.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.07"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.07-build"]
}

target "artifacts-26-07" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.71.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.07"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}

target "cuda13-26-07" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.07-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.07-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = "requirements-cuda13-py312.txt"
    SERVER_VERSION  = "2.71.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.07-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.07"
    VARIANT         = "cuda13"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.07-cuda13", "${REGISTRY}tritonserver-jax:26.07-cuda13"]
}

target "cpu-26-08" {
  inherits = ["_all"]
  target   = "runtime"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.72.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.08", "${REGISTRY}tritonserver-jax:26.08"]
}

target "build-26-08" {
  inherits = ["_all"]
  target   = "build-environment"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.72.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.08"
    VARIANT         = "cpu"
  }
  tags = ["${REGISTRY}tritonserver-jax:0.1.0-triton26.08-build"]
}

target "artifacts-26-08" {
  inherits = ["_all"]
  target   = "artifacts"
  args = {
    BASE_DIGEST     = ""
    BASE_IMAGE      = "nvcr.io/nvidia/tritonserver:26.08-py3"
    BASE_NAME       = "nvcr.io/nvidia/tritonserver:26.08-py3"
    PROJECT_VERSION = "0.1.0"
    PYTHON          = "/usr/bin/python3.12"
    PYTHON_SOURCE   = "base"
    PYTHON_VERSION  = "3.12"
    REQUIREMENTS    = ""
    SERVER_VERSION  = "2.72.0"
    SOURCE_URL      = "https://gitlab.com/tritonserver-jax/tritonserver-jax"
    TARBALL         = "tritonserver-jax-0.1.0-triton26.08-linux-x86_64.tar.gz"
    TRITON_RELEASE  = "26.08"
    VARIANT         = "cpu"
  }
  output = ["type=local,dest=dist"]
}
