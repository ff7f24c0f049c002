# SPDX-License-Identifier: Apache-2.0
"""The variables that say where to publish, and with which passwords.

GitLab sets most of them in every job. Passwords are `SecretStr`: they are not shown where one of
these objects is printed. An empty variable is one that is not there, as GitLab means it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from ci.deploy.errors import DeployError

__all__ = [
    "PUBLIC_KEY_FILE",
    "DeployVariables",
    "IndexVariables",
    "ProjectVariables",
    "RegistryVariables",
    "variable_descriptions",
]

#: The public key that artifacts have to be signed with; `ci.sign` has the private one's.
PUBLIC_KEY_FILE: Final = "TRITONSERVER_JAX_PUBLIC_KEY_FILE"

#: Indexes that are read elsewhere than they are written to.
_KNOWN_INDEXES: Final = {
    "https://upload.pypi.org/legacy": "https://pypi.org/simple/",
    "https://test.pypi.org/legacy": "https://test.pypi.org/simple/",
}


class DeployVariables(BaseModel):
    """Some variables that belong together."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, str_strip_whitespace=True
    )

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Self:
        """Read them, all or none.

        Raises:
            DeployError: One is missing or wrong; no value is shown.
        """
        given = {name: value for name, value in variables.items() if value.strip()}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            problems = [
                f"{'.'.join(map(str, one['loc']))}: "
                + ("expected a value, got none" if one["type"] == "missing" else one["msg"])
                for one in error.errors(include_input=False, include_url=False)
            ]
            raise DeployError(
                "; ".join(problems) + "; docs/releasing.md says where each comes from"
            ) from None


class ProjectVariables(DeployVariables):
    """GitLab's project: its package registry and its releases."""

    api_url: str = Field(
        alias="CI_API_V4_URL", pattern=r"^https?://.+/api/v4$", description="GitLab's API"
    )
    project_id: str = Field(
        alias="CI_PROJECT_ID", pattern=r"^\d+$", description="the project's number"
    )
    project_url: str = Field(
        alias="CI_PROJECT_URL", pattern=r"^https?://", description="the project's page"
    )
    token: SecretStr = Field(
        alias="CI_JOB_TOKEN", description="the token of the job, for packages and the release"
    )

    def package_url(self, package: str, version: str, file: str) -> str:
        """Return where a file of the package registry is."""
        project = f"{self.api_url}/projects/{self.project_id}"
        return f"{project}/packages/generic/{package}/{version}/{file}"


class RegistryVariables(DeployVariables):
    """The container registry."""

    host: str = Field(alias="CI_REGISTRY", description="the container registry")
    repository: str = Field(
        alias="CI_REGISTRY_IMAGE", description="the repository of the images in it"
    )
    user: str = Field(alias="CI_REGISTRY_USER", description="who pushes images")
    password: SecretStr = Field(alias="CI_REGISTRY_PASSWORD", description="the password for that")

    @field_validator("host", "repository")
    @classmethod
    def _without_scheme(cls, value: str) -> str:
        if "://" in value:
            raise ValueError("expected a host, and a path for a repository, without https://")
        return value.rstrip("/").lower()


class IndexVariables(DeployVariables):
    """The package index; the project's own where no other is named."""

    upload_url: str = Field(
        alias="TWINE_REPOSITORY_URL",
        pattern=r"^https?://[^@]+$",
        description="where twine uploads to; the project's own package index if it is not set",
    )
    user: str = Field(alias="TWINE_USERNAME", description="who uploads; `gitlab-ci-token` there")
    password: SecretStr = Field(
        alias="TWINE_PASSWORD", description="the password for that; the job's token there"
    )
    index_url: str | None = Field(
        default=None,
        alias="TRITONSERVER_JAX_INDEX_URL",
        pattern=r"^https?://[^@]+$",
        description="where pip reads what was uploaded, if that is not `simple/` below it",
    )

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Self:
        """Read them; those of the project's own index follow from the project's."""
        given = dict(variables)
        if not given.get("TWINE_REPOSITORY_URL", "").strip():
            project = ProjectVariables.read(variables)
            given["TWINE_REPOSITORY_URL"] = (
                f"{project.api_url}/projects/{project.project_id}/packages/pypi"
            )
            given["TWINE_USERNAME"] = "gitlab-ci-token"
            given["TWINE_PASSWORD"] = project.token.get_secret_value()
        return super().read(given)

    @property
    def simple_url(self) -> str:
        """Where pip finds what was uploaded."""
        if self.index_url is not None:
            return self.index_url
        upload = self.upload_url.rstrip("/")
        return _KNOWN_INDEXES.get(upload, f"{upload}/simple/")


def variable_descriptions() -> list[tuple[str, str]]:
    """Return the name and the meaning of each variable, for the documentation."""
    found = [
        (str(field.alias), str(field.description))
        for group in (ProjectVariables, RegistryVariables, IndexVariables)
        for field in group.model_fields.values()
    ]
    found.append(
        (PUBLIC_KEY_FILE, "a file with the public key that artifacts have to be signed with")
    )
    return found
