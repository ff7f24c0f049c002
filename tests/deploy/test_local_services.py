# SPDX-License-Identifier: Apache-2.0
"""The services of this machine are as strict as those that they stand for."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests

from ci.deploy.packages import download_package, published_files
from ci.deploy.plan import ArtifactFolder
from ci.deploy.project import open_project
from ci.deploy.variables import IndexVariables, ProjectVariables
from ci.local_services import LocalServices, local_services
from ci.process import ROOT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with local_services(tmp_path_factory.mktemp("services")) as running:
        yield running


def api(services: LocalServices, method: str, path: str, **options: Any) -> requests.Response:
    variables = services.variables
    headers = {"JOB-TOKEN": options.pop("token", variables["CI_JOB_TOKEN"])}
    project = options.pop("project", variables["CI_PROJECT_ID"])
    url = f"{variables['CI_API_V4_URL']}/projects/{project}{path}"
    return requests.request(method, url, headers=headers, timeout=10, **options)


GENERIC = "/packages/generic"


@pytest.mark.parametrize(
    "path",
    ["/a b/1.0/file", "/name/1..0/file", "/name/1.0/~file", "/name/1.0/fi le", "/na$me/1.0/file"],
)
def test_names_have_to_be_as_gitlab_wants_them(shared: LocalServices, path: str) -> None:
    answer = api(shared, "PUT", f"{GENERIC}{path}", data=b"content")
    assert answer.status_code == 400
    assert "is invalid" in answer.json()["message"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", f"{GENERIC}/a/1.0/b"),
        ("GET", f"{GENERIC}/a/1.0/b"),
        ("GET", "/packages"),
        ("GET", "/packages/1/package_files"),
        ("POST", "/releases"),
        ("GET", "/releases/v1"),
        ("GET", "/releases/v1/assets/links"),
        ("POST", "/releases/v1/assets/links"),
        ("GET", "/releases/v1/downloads/24.10/file"),
    ],
)
def test_every_request_needs_the_token_and_the_project(
    shared: LocalServices, method: str, path: str
) -> None:
    assert api(shared, method, path, data=b"{}", token="wrong").status_code == 401  # noqa: S106
    answer = api(shared, method, path, data=b"{}", project="7")
    assert (answer.status_code, answer.json()["message"]) == (404, "404 Project Not Found")
    assert "a/1.0/b" not in shared.gitlab.uploads


def test_a_second_file_of_the_same_name_is_a_conflict(shared: LocalServices) -> None:
    answers = [api(shared, "PUT", f"{GENERIC}/twice/1.0/file", data=b"one") for _ in range(2)]
    assert [one.status_code for one in answers] == [201, 409]
    assert api(shared, "GET", f"{GENERIC}/twice/1.0/file").content == b"one"


def test_links_of_a_release_have_names_and_urls_of_their_own(shared: LocalServices) -> None:
    link = {"name": "file", "url": "https://example.com/file", "direct_asset_path": "/24.10/file"}
    release = {"tag_name": "v1", "name": "one", "description": "first", "assets": {"links": [link]}}
    assert api(shared, "POST", "/releases", json=release).status_code == 201
    assert api(shared, "POST", "/releases", json=release).status_code == 409
    links = "/releases/v1/assets/links"
    for other in (
        {"name": "file", "url": "https://example.com/other"},
        {"name": "other", "url": "https://example.com/file"},
        {**link, "name": "other", "url": "https://example.com/other"},
    ):
        assert api(shared, "POST", links, json=other).status_code == 400
    bad = {"name": "bad", "url": "https://example.com/bad", "direct_asset_path": "no-slash"}
    assert api(shared, "POST", links, json=bad).status_code == 422
    assert [one["name"] for one in api(shared, "GET", links).json()] == ["file"]


def test_a_permanent_link_leads_to_the_file(shared: LocalServices) -> None:
    variables = shared.variables
    file = f"{GENERIC}/linked/1.0/SHA256SUMS"
    assert api(shared, "PUT", file, data=b"the sums").status_code == 201
    url = f"{variables['CI_API_V4_URL']}/projects/{variables['CI_PROJECT_ID']}{file}"
    link = {"name": "sums", "url": url, "direct_asset_path": "/24.10/SHA256SUMS"}
    release = {"tag_name": "v2", "name": "two", "description": "x", "assets": {"links": [link]}}
    assert api(shared, "POST", "/releases", json=release).status_code == 201
    # As docs/verify.md has it, and by the API.
    page = f"{variables['CI_PROJECT_URL']}/-/releases/v2/downloads"
    there = requests.get(f"{page}/24.10/SHA256SUMS", timeout=10, allow_redirects=False)
    assert (there.status_code, there.headers["Location"]) == (302, url)
    token = {"JOB-TOKEN": variables["CI_JOB_TOKEN"]}
    followed = requests.get(f"{page}/24.10/SHA256SUMS", timeout=10, headers=token)
    assert followed.content == b"the sums"
    assert api(shared, "GET", "/releases/v2/downloads/24.10/SHA256SUMS").content == b"the sums"
    for path in ("24.10/other", "SHA256SUMS"):
        assert requests.get(f"{page}/{path}", timeout=10).status_code == 404
        assert api(shared, "GET", f"/releases/v2/downloads/{path}").status_code == 404
    other = f"{variables['CI_PROJECT_URL']}/-/releases/v3/downloads/24.10/SHA256SUMS"
    assert requests.get(other, timeout=10).status_code == 404


def test_lists_come_in_pages_and_all_of_them_are_read(
    shared: LocalServices, tmp_path: Path
) -> None:
    folder = ArtifactFolder(tmp_path / "python", None, "1.0")
    names = sorted([*folder.required, *(f"file-{number:02}" for number in range(18))])
    for name in names:
        api(shared, "PUT", f"{GENERIC}/tritonserver-jax-python/1.0/{name}", data=name.encode())
    identifier = shared.gitlab.packages["tritonserver-jax-python", "1.0"].identifier
    assert len(api(shared, "GET", f"/packages/{identifier}/package_files").json()) == 20
    with open_project(ProjectVariables.read(shared.variables)) as project:
        assert sorted(published_files(project, folder.package, "1.0")) == names
        download_package(project, folder)
    assert {path.name: path.read_text() for path in folder.path.iterdir()} == {
        name: name for name in names
    }


def test_registry_and_index_want_a_password(shared: LocalServices) -> None:
    registry = f"http://{shared.variables['CI_REGISTRY']}/v2/"
    index = IndexVariables.read(shared.variables).simple_url
    user = shared.variables["CI_REGISTRY_USER"]
    for url, name in ((registry, "CI_REGISTRY_PASSWORD"), (index, "TWINE_PASSWORD")):
        assert requests.get(url, timeout=10).status_code == 401
        assert requests.get(url, timeout=10, auth=(user, "wrong")).status_code in (401, 403)
        known = (user, shared.variables[name])
        assert requests.get(url, timeout=10, auth=known).status_code == 200


def test_what_fails_on_demand_fails_so_often_and_no_more(shared: LocalServices) -> None:
    url = f"http://{shared.variables['CI_REGISTRY']}/v2/"
    shared.registry.fail_next(2, 503)
    assert [requests.get(url, timeout=10).status_code for _ in range(3)] == [503, 503, 401]
    assert shared.registry.failures_left == 0


def test_the_command_prints_the_variables_and_ends_with_everything_that_it_started(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-u", "-m", "ci.local_services", "--directory", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        given = {}
        for line in process.stdout:
            if line.startswith("#"):
                break
            name, _, value = line.removeprefix("export ").partition("=")
            given[name] = shlex.split(value)[0]
        url = f"http://{given['CI_REGISTRY']}/v2/"
        auth = (given["CI_REGISTRY_USER"], given["CI_REGISTRY_PASSWORD"])
        assert requests.get(url, timeout=10, auth=auth).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=10)
    programs = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert str(tmp_path) not in programs.stdout
